package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"notebox/runner/internal/frame"
)

// restartTimeout is how long a new kernel may take to be up: an interpreter's start,
// on a host where all cores do the same.
const restartTimeout = 60 * time.Second

// ttlSlack is how much longer than its session a sandbox lives by itself, so that it is
// the service that ends it, with what a run has to say.
const ttlSlack = 2 * closeGrace

// LiveSession is a Session in a sandbox.
type LiveSession struct {
	all     *LiveSessions
	spec    SessionSpec
	token   []byte // of the sandbox
	created time.Time
	use     *sessionUse
	link    *sessionLink
	queue   *sessionQueue
	files   chan struct{} // has an element for each file operation that goes on
	gate    chan struct{} // has an element while a job is sent or the kernel restarted

	ended chan struct{} // closed when no process is left

	mu       sync.Mutex
	name     string // to adopt the sandbox by; "" where it is not kept
	kept     bool   // a later process can go on with it
	restarts int
	told     bool // the next outcome may speak of a restart that is counted
	untold   bool // the next outcome will not speak of one that is
}

// newLiveSession returns a session that is to begin in a sandbox.
func newLiveSession(l *LiveSessions, c *conversation, spec SessionSpec) *LiveSession {
	token := make([]byte, frame.TokenSize)
	_, _ = rand.Read(token) // which never fails
	now := time.Now()
	return attachSession(l, c, spec, token, now, now.Add(spec.TTL))
}

// attachSession returns the session of a sandbox, whose frames are not read yet.
func attachSession(l *LiveSessions, c *conversation, spec SessionSpec, token []byte, created, expires time.Time) *LiveSession {
	s := &LiveSession{
		all: l, spec: spec, token: token, created: created,
		use:   newSessionUse(expires, spec.Idle),
		queue: newSessionQueue(),
		files: make(chan struct{}, frame.MaxFileChannels),
		gate:  make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
	s.link = newSessionLink(c, s.lose)
	return s
}

// begin makes the sandbox the session's, and returns when it is open. Where it
// fails, the caller ends the sandbox.
func (s *LiveSession) begin(ctx context.Context, inputs []Input) error {
	starting, cancel := context.WithTimeoutCause(ctx, s.all.pool.options.StartTimeout, errDeadline)
	defer cancel()
	err := s.keep(starting)
	if err == nil {
		err = s.put(ctx, inputs)
		if cause := s.link.over(); cause != nil && ctx.Err() == nil {
			err = cause
		}
	}
	if err == nil {
		err = s.record(ctx)
	}
	if err == nil && !s.open() {
		err = &Error{Code: CodeUnavailable, Message: "the service is going down"}
	}
	if err != nil {
		s.use.stop(&GoneError{Reason: GoneClosed, At: time.Now(), Err: err}, time.Time{})
		s.link.close(err)
		s.unrecord()
	}
	return err
}

// keep sends the session frame and waits for its answer.
func (s *LiveSession) keep(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.link.close(context.Cause(ctx)) })
	defer stop()
	waited := s.link.c.ahead != nil
	answer := s.link.expect(frame.KindKept)
	s.link.serve(s.spec.Network, s.spec.ID)
	hello := frame.Session{Token: s.token, TTLSeconds: (time.Until(s.use.expires) + ttlSlack).Seconds(), Env: s.spec.Env}
	if hello.Env == nil {
		hello.Env = map[string]string{}
	}
	if s.spec.Network != nil {
		hello.Network = &frame.Network{CA: string(s.spec.Network.CA())}
	}
	err := s.link.sendSession(hello)
	if err == nil {
		go s.link.read()
		err = s.link.await(ctx, answer)
	}
	switch exit := (*ExitError)(nil); {
	case errors.As(err, &exit) && waited:
		return fmt.Errorf("%w: %w", errGone, err)
	case errors.Is(err, errDeadline):
		return &Error{Code: CodeUnavailable, Message: "starting a session took too long", Err: err}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// put writes files before the session is open.
func (s *LiveSession) put(ctx context.Context, inputs []Input) error {
	for _, in := range inputs {
		if err := s.putOne(ctx, in); err != nil {
			return fmt.Errorf("input file: %w", err)
		}
	}
	return nil
}

func (s *LiveSession) putOne(ctx context.Context, in Input) error {
	content, err := in.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = s.Write(ctx, in.Path, content)
	return err
}

// open makes the session known, and reports whether it could.
func (s *LiveSession) open() bool {
	if !s.all.add(s) {
		return false
	}
	s.use.watch(func(reason GoneReason, unused time.Time) bool {
		end := &GoneError{Reason: reason, At: time.Now()}
		if reason == GoneIdle {
			return s.endIdle(unused, end)
		}
		s.finish(end)
		return true
	})
	if end := s.link.over(); end != nil { // it ended before it was known
		s.lose(end)
	}
	return true
}

func (s *LiveSession) key() sessionKey { return sessionKey{s.spec.Owner, s.spec.ID} }

// Info implements Session.
func (s *LiveSession) Info() SessionInfo {
	turn, waiting := s.queue.numbers()
	running := s.link.current() != nil
	if turn && !running { // it waits for a place among all runs
		waiting++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return SessionInfo{
		ID: s.spec.ID, Owner: s.spec.Owner, Environment: s.spec.Environment.Name, Network: s.spec.Network != nil,
		Created: s.created, Expires: s.use.expires, Idle: s.spec.Idle, LastUsed: s.use.used(),
		Running: running, Waiting: waiting, KernelRestarts: s.restarts, Note: s.spec.Note,
	}
}

// Interrupt implements Session.
func (s *LiveSession) Interrupt(ctx context.Context) error {
	leave, err := s.use.begin()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.orGone(s.link.send(frame.KindInterrupt))
}

// Restart implements Session. Those that are asked for at one time come one after
// another, and go on where ctx ends.
func (s *LiveSession) Restart(ctx context.Context) error {
	leave, err := s.use.begin()
	if err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		leave()
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer leave()
		defer s.exit()
		done <- s.restart()
	}()
	select {
	case err := <-done:
		return s.orGone(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *LiveSession) restart() error {
	s.mu.Lock()
	s.told = true
	s.mu.Unlock()
	answer := s.link.expect(frame.KindRestarted)
	if err := s.link.send(frame.KindRestart); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.use.over, restartTimeout)
	defer cancel()
	err := s.link.await(ctx, answer)
	if err == nil {
		s.mu.Lock()
		s.restarts++
		s.mu.Unlock()
		s.recordAgain()
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.lose(fmt.Errorf("restart of the kernel: %w", errDeadline))
	}
	return err
}

// restarted counts what an outcome says of kernels, and returns what it is to say.
func (s *LiveSession) restarted(by bool) bool {
	s.mu.Lock()
	counts := by && !s.told
	if counts {
		s.restarts++
	}
	by = by || s.untold
	s.told, s.untold = false, false
	s.mu.Unlock()
	if counts {
		s.recordAgain()
	}
	return by
}

// enter waits until nobody sends a job or restarts the kernel.
func (s *LiveSession) enter(ctx context.Context) error {
	select {
	case s.gate <- struct{}{}:
		return nil
	case <-s.use.over.Done():
		return s.use.end()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *LiveSession) exit() { <-s.gate }

// Close implements Session.
func (s *LiveSession) Close(ctx context.Context) error {
	if !s.finish(&GoneError{Reason: GoneClosed, At: time.Now()}) {
		return s.use.end()
	}
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lose ends a session whose sandbox is no good any more.
func (s *LiveSession) lose(cause error) {
	s.link.close(cause)
	s.finish(&GoneError{Reason: GoneLost, At: time.Now(), Err: cause})
}

// finish ends the session in the background, and reports whether it was open.
func (s *LiveSession) finish(end *GoneError) bool { return s.endIdle(time.Time{}, end) }

// endIdle is finish of a session that was not used since then, if not zero.
func (s *LiveSession) endIdle(unused time.Time, end *GoneError) bool {
	s.all.mu.Lock()
	known := s.all.open[s.key()] == s
	if known && s.use.stop(end, unused) {
		s.all.work.Add(1) // under the lock, which settled's callers had after it
		s.all.mu.Unlock()
		go func() {
			defer s.all.work.Done()
			s.wind(end)
		}()
		return true
	}
	s.all.mu.Unlock()
	return false
}

// wind ends what goes on in a session that is over, and its sandbox.
func (s *LiveSession) wind(end *GoneError) {
	if end.Reason == GoneLost {
		s.all.log.Error("a session was lost", "session", s.spec.ID, "sandbox", s.link.c.sandbox.ID(), "error", explainExitOfRun(end.Err, s.all.log))
	}
	s.recordAgain() // first: where this process is killed now, the sandbox is reaped
	s.queue.drained(closeGrace)
	s.link.close(end)
	s.link.network.wait()
	s.all.pool.done(s.link.c)
	s.all.remove(s, end)
	close(s.ended)
}

// orGone is err, or how the session ended where that is why.
func (s *LiveSession) orGone(err error) error {
	if err == nil {
		return nil
	}
	if cause := s.link.over(); cause != nil { // of which the session is about to be told
		s.lose(cause)
	}
	if end := s.use.end(); end != nil {
		return end
	}
	return err
}
