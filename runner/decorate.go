package runner

import "context"

// DecorateSessions returns Sessions whose runs go through what decorate makes of a
// Runner, as those of single use do. It sees a Spec with the name of the session's
// environment.
func DecorateSessions(next Sessions, decorate func(Runner) Runner) Sessions {
	return &decoratedSessions{next, decorate}
}

type decoratedSessions struct {
	next     Sessions
	decorate func(Runner) Runner
}

// Open implements Sessions.
func (d *decoratedSessions) Open(ctx context.Context, spec SessionSpec) (Session, error) {
	return d.wrap(d.next.Open(ctx, spec))
}

// Find implements Sessions.
func (d *decoratedSessions) Find(owner, id string) (Session, error) {
	return d.wrap(d.next.Find(owner, id))
}

// List implements Sessions.
func (d *decoratedSessions) List(owner string) []SessionInfo { return d.next.List(owner) }

func (d *decoratedSessions) wrap(s Session, err error) (Session, error) {
	if err != nil {
		return nil, err
	}
	return &decoratedSession{Session: s, runner: d.decorate(s)}, nil
}

// decoratedSession is a session with another Run.
type decoratedSession struct {
	Session
	runner Runner
}

// Run implements Session.
func (s *decoratedSession) Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	spec.Environment = Environment{Name: s.Info().Environment}
	return s.runner.Run(ctx, spec, events)
}
