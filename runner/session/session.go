package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"notebox/runner"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
)

// restartTimeout is how long a new kernel may take to be up: an interpreter's start,
// on a host where all cores do the same.
const restartTimeout = 60 * time.Second

// Session is a runner.Session in a sandbox.
type Session struct {
	all          *Sessions
	spec         runner.SessionSpec
	token        []byte // of the sandbox
	created      time.Time
	use          *use
	conversation *conversation.Conversation
	queue        *queue
	files        chan struct{} // has an element for each file operation that goes on
	gate         chan struct{} // has an element while a job is sent or the kernel restarted

	ended chan struct{} // closed when no process is left

	mu       sync.Mutex
	name     string // to adopt the sandbox by; "" if no later process can go on with it
	restarts int
	told     bool // the next outcome may speak of a restart that is counted
	untold   bool // the next outcome will not speak of one that is
}

// newSession returns a session that is to begin in a sandbox.
func newSession(l *Sessions, c *conversation.Conversation, spec runner.SessionSpec) *Session {
	token := make([]byte, frame.TokenSize)
	_, _ = rand.Read(token) // which never fails
	now := time.Now()
	return attachSession(l, c, spec, token, now, now.Add(spec.TTL))
}

// attachSession returns the session of a sandbox, whose frames are not read yet.
func attachSession(l *Sessions, c *conversation.Conversation, spec runner.SessionSpec, token []byte, created, expires time.Time) *Session {
	return &Session{
		all: l, spec: spec, conversation: c, token: token, created: created,
		use:   newUse(expires, spec.Idle),
		queue: &queue{turn: semaphore.NewWeighted(1)},
		files: make(chan struct{}, frame.MaxFileChannels),
		gate:  make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
}

func (s *Session) key() key { return key{s.spec.Owner, s.spec.ID} }

// Info implements Session.
func (s *Session) Info() runner.SessionInfo {
	turn, waiting := s.queue.numbers()
	running := s.conversation.Job() != nil
	if turn && !running { // it waits for a place among all runs
		waiting++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return runner.SessionInfo{
		ID: s.spec.ID, Owner: s.spec.Owner, Environment: s.spec.Environment.Name, Network: s.spec.Network != nil,
		Created: s.created, Expires: s.use.expires, Idle: s.spec.Idle, LastUsed: s.use.used(),
		Running: running, Waiting: waiting, KernelRestarts: s.restarts, Note: s.spec.Note,
	}
}

// Interrupt implements Session.
func (s *Session) Interrupt(ctx context.Context) error {
	leave, err := s.use.begin()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.orGone(s.conversation.Interrupt())
}

// Restart implements Session. Several restarts come one after another. A restart goes on
// after ctx has ended.
func (s *Session) Restart(ctx context.Context) error {
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

func (s *Session) restart() error {
	job := s.conversation.Job() // there is no other until this is over
	s.mu.Lock()
	s.told = job != nil && !job.HasOutcome()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.use.over, restartTimeout)
	defer cancel()
	err := s.conversation.Restart(ctx)
	if err == nil {
		s.mu.Lock()
		s.restarts++
		s.mu.Unlock()
		s.recordAgain()
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.lose(fmt.Errorf("restart of the kernel: %w", conversation.ErrDeadline))
	}
	return err
}

// restarted counts what an outcome says of kernels, and returns what it is to say.
func (s *Session) restarted(by bool) bool {
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
func (s *Session) enter(ctx context.Context) error {
	select {
	case s.gate <- struct{}{}:
		if end := s.use.end(); end != nil {
			s.exit()
			return end
		}
		return nil
	case <-s.use.over.Done():
		return s.use.end()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) exit() { <-s.gate }
