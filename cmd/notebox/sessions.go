package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"notebox/executor"
	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/session"
	"notebox/server"
)

// restoreTimeout bounds how long a start goes on with the sessions of an earlier process:
// those that are not by then are lost.
const restoreTimeout = time.Minute

// sessionSettings are the flags about sessions.
type sessionSettings struct {
	ttl, maxTTL time.Duration
	idle        time.Duration
	max         int
}

func (s *sessionSettings) register(f *flag.FlagSet) {
	f.DurationVar(&s.ttl, "session-ttl", executor.DefaultSessionTTL, "End a session after this time, in use or not, unless it asks for another time.")
	f.DurationVar(&s.maxTTL, "max-session-ttl", executor.DefaultMaxSessionTTL, "Let no session ask for a longer life.")
	f.DurationVar(&s.idle, "session-idle", executor.DefaultSessionIdle, "End a session that nobody has used for this time, unless it asks for another time.")
	f.IntVar(&s.max, "max-sessions", session.DefaultMaxSessions, "Let at most this `number` of sessions be open, each with a sandbox of its own; with 0 none may be opened, and the sessions of an earlier process end.")
}

func (s *sessionSettings) check() error {
	switch {
	case s.ttl <= 0:
		return errors.New("--session-ttl is out of range")
	case s.maxTTL < s.ttl:
		return errors.New("--max-session-ttl (at least --session-ttl) is out of range")
	case s.idle <= 0:
		return errors.New("--session-idle is out of range")
	case s.max < 0:
		return errors.New("--max-sessions is out of range")
	}
	return nil
}

// openSessions goes on with what an earlier process has left of sessions, and removes
// what else it has left.
func (p *program) openSessions(ctx context.Context, cfg *server.Config, admission *admission.Admission) error {
	if s := p.settings.sessions; s.max > 0 {
		p.sessions = session.New(p.pool, admission, session.Options{
			MaxSessions: s.max,
			Shared:      func() bool { return p.keys.Len() > 1 },
			RecordDir:   p.state.path("sessions"),
			Log:         p.log,
		})
		p.onCloseInTime(p.sessions.Detach)
		restoring, cancel := context.WithTimeout(ctx, restoreTimeout)
		defer cancel()
		open, over := p.sessions.Restore(restoring, func(runner.SessionInfo) runner.Network { return cfg.Network })
		if open+over > 0 {
			p.log.Info("sessions of an earlier process", "go_on", open, "lost", over)
		}
		cfg.Sessions = p.sessions
		cfg.SessionTimes = executor.SessionTimes{TTL: s.ttl, MaxTTL: s.maxTTL, Idle: s.idle}
	}
	if err := p.reap(ctx); err != nil {
		return err
	}
	p.pool.Begin()
	return nil
}

// reap removes what an earlier process left behind and nobody goes on with.
func (p *program) reap(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	if p.reaped, err = p.sandboxes.Reap(ctx); err == nil && p.reaped > 0 {
		p.log.Info("removed sandboxes that an earlier process left behind", "count", p.reaped)
	}
	return err
}
