package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

const (
	// restoreTimeout bounds how long one session may take to be gone on with: a file
	// that its sandbox is just sending, and what a busy host adds.
	restoreTimeout = 20 * time.Second
	// restoreAtOnce of them: they mostly wait.
	restoreAtOnce = 8
)

// errClosing is the cause if the service ends before all go on.
var errClosing = errors.New("the service is going down")

// Restore goes on with the sessions that an earlier process of this service has recorded,
// and remembers the ends of the others. It is called once, before Open and
// before the engine reaps. network returns what the programs of a session reach that
// had a network.
//
//  1. The session's sandbox is adopted by its name, some at a time.
//  2. The token has it begin anew; what ran is cancelled. Its variables and files are
//     as they are.
//  3. Its time is what is left on the sandbox's own clock.
//  4. One that cannot be gone on with in time is lost, and its sandbox ended.
//
// It returns how many sessions go on, and how many do not.
func (l *Sessions) Restore(ctx context.Context, network func(runner.SessionInfo) runner.Network) (open, over int) {
	var some errgroup.Group
	some.SetLimit(restoreAtOnce)
	var all []savedSession
	for _, record := range l.records.load() {
		if record.Gone != nil {
			l.mu.Lock()
			l.gone.add(record.key(), &runner.GoneError{Reason: record.Gone.Reason, At: record.Gone.At})
			l.mu.Unlock()
			continue
		}
		all = append(all, record)
	}
	for _, record := range all {
		some.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
			defer cancel()
			if err := l.restore(ctx, record, network); err != nil {
				l.unrestored(record, err)
			}
			return nil
		})
	}
	_ = some.Wait() // there is no error
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open), len(all) - len(l.open)
}

// restore goes on with one session.
func (l *Sessions) restore(ctx context.Context, record savedSession, network func(runner.SessionInfo) runner.Network) error {
	keeper := l.keeper()
	if keeper == nil {
		return errors.New("the engine keeps no sandboxes")
	}
	sandbox, err := keeper.Adopt(ctx, record.Sandbox)
	if err != nil {
		return err
	}
	c := l.pool.Adopt(sandbox)
	fail := func(err error) error {
		l.pool.Done(c, true) // or the next would wait for the end of this sandbox
		return err
	}
	resumed, err := c.Resume(ctx, record.Token)
	if err != nil {
		return fail(fmt.Errorf("resume: %w", err))
	}
	now := time.Now()
	spec := runner.SessionSpec{
		ID: record.ID, Owner: record.Owner, Environment: runner.Environment{Name: record.Environment},
		Limits: record.Limits, TTL: record.Expires.Sub(record.Created), Idle: record.Idle, Note: record.Note,
	}
	s := attachSession(l, c, spec, record.Token, record.Created, now.Add(timeLeft(resumed, spec.TTL)))
	s.name, s.restarts = record.Sandbox, record.KernelRestarts
	if resumed.KernelRestarted {
		s.restarts, s.untold = s.restarts+1, true
	}
	if record.Network {
		info := s.Info()
		info.Network = true
		s.spec.Network = network(info)
	}
	c.Serve(s.spec.Network, spec.ID)
	if !s.open() {
		s.conversation.Close(errClosing)
		return fail(errClosing)
	}
	return nil
}

// timeLeft of a session, as its sandbox says, which may be hostile: no more than it had.
func timeLeft(r frame.Resumed, ttl time.Duration) time.Duration {
	seconds := min(max(r.TTLSeconds, 0), (ttl + ttlSlack).Seconds()) // else it may not fit
	return time.Duration(seconds*float64(time.Second)) - ttlSlack
}

// unrestored remembers the end of a session that could not be restored.
func (l *Sessions) unrestored(record savedSession, err error) {
	end := &runner.GoneError{Reason: runner.GoneLost, At: time.Now(), Err: err}
	if errors.Is(err, runner.ErrNoSandbox) && !record.Expires.After(end.At) {
		end.Reason, end.At = runner.GoneExpired, record.Expires
	}
	l.log.Warn("a session does not go on", "session", record.ID, "sandbox", record.Sandbox, "reason", end.Reason, "error", err)
	l.mu.Lock()
	l.ended[end.Reason]++
	l.gone.add(record.key(), end)
	l.mu.Unlock()
	record.Sandbox, record.Token, record.Gone = "", nil, &goneRecord{end.Reason, end.At}
	if err := l.records.write(func() savedSession { return record }); err != nil {
		l.log.Warn("the end of a session is not recorded", "session", record.ID, "error", err)
	}
}

func (s savedSession) key() key { return key{s.Owner, s.ID} }
