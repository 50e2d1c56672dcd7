package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"notebox/runner"
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
	f.DurationVar(&s.ttl, "session-ttl", server.DefaultSessionTTL, "how long a session lives that asks for nothing else, whatever goes on in it")
	f.DurationVar(&s.maxTTL, "max-session-ttl", server.DefaultMaxSessionTTL, "longest life that a session may ask for")
	f.DurationVar(&s.idle, "session-idle", server.DefaultSessionIdle, "how long a session lives that nobody uses and that asks for nothing else")
	f.IntVar(&s.max, "max-sessions", runner.DefaultMaxSessions, "sessions that are open at one time, each with a sandbox of its own; 0: none may be opened, and those of an earlier process are ended")
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
func (p *program) openSessions(ctx context.Context, cfg *server.Config, admission *runner.Admission) error {
	if s := p.settings.sessions; s.max > 0 {
		p.sessions = runner.NewLiveSessions(p.pool, admission, runner.SessionOptions{
			MaxSessions: s.max,
			Shared:      func() bool { return p.keys.Len() > 1 },
			RecordDir:   p.state.path("sessions"),
			Log:         p.log,
		})
		p.onClose(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			return p.sessions.Detach(ctx)
		})
		restoring, cancel := context.WithTimeout(ctx, restoreTimeout)
		defer cancel()
		open, over := p.sessions.Restore(restoring, func(runner.SessionInfo) runner.Network { return cfg.Network })
		if open+over > 0 {
			p.log.Info("sessions of an earlier process", "go_on", open, "lost", over)
		}
		cfg.Sessions = p.sessions
		cfg.SessionTTL, cfg.MaxSessionTTL, cfg.SessionIdle = s.ttl, s.maxTTL, s.idle
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
	if p.reaped, err = p.engine.Reap(ctx); err == nil && p.reaped > 0 {
		p.log.Info("removed sandboxes that an earlier process left behind", "count", p.reaped)
	}
	return err
}
