package executor

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"time"

	"notebox/access"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
)

const (
	// sessionOpenTime bounds the wait for a session to be open: a sandbox that starts
	// on a busy host, a kernel in it, and its files.
	sessionOpenTime = 2 * time.Minute
	// minSessionTime is the shortest that a session may ask for. A shorter one could be over
	// before its answer is read.
	minSessionTime = time.Second
)

// SessionTimes are how long sessions live.
type SessionTimes struct {
	TTL    time.Duration // of one that asks for nothing else; 0 is DefaultSessionTTL
	MaxTTL time.Duration // that one may ask for; 0 is DefaultMaxSessionTTL
	Idle   time.Duration // without a call, of one that asks for nothing else; 0 is DefaultSessionIdle
}

// Defaults of SessionTimes.
const (
	DefaultSessionTTL    = time.Hour        // a conversation, or a piece of work
	DefaultMaxSessionTTL = 24 * time.Hour   // its memory is held all the time
	DefaultSessionIdle   = 15 * time.Minute // a person reads an answer and writes the next question
)

// SessionTimes returns those that hold.
func (x *Executor) SessionTimes() SessionTimes { return x.times }

// SessionOrder is what a session is opened with. What is nil or empty was not given.
type SessionOrder struct {
	Language     *string
	TTL, Idle    *float64 // seconds
	Inputs       Inputs   // for /mnt/data
	Env          map[string]string
	Dependencies []string
	Network      *bool
	Note         map[string]string // see runner.SessionSpec

	// Work is where Inputs are. OpenSession leaves its place when all files are there, and
	// does not clear it. nil if there are no Inputs.
	Work *intake.Workspace
}

// MayOpenSession reports why a caller may open no session now. OpenSession asks too; a
// protocol that reads a large body first asks before it.
func (x *Executor) MayOpenSession(caller *access.Caller) error {
	if err := x.SessionsOffered(); err != nil {
		return err
	}
	return errors.Join(caller.MayOpenSession(len(x.sessions.List(caller.Owner()))), caller.MayUseCPU())
}

// SessionsOffered is a *problem.Error where callers may open no sessions.
func (x *Executor) SessionsOffered() error {
	if x.sessions == nil {
		return problem.Forbidden("this service's operator allows no sessions")
	}
	return nil
}

// OpenSession opens a session of a caller. What it refuses is a *problem.Error.
func (x *Executor) OpenSession(ctx context.Context, caller *access.Caller, o *SessionOrder) (*Session, error) {
	if err := x.MayOpenSession(caller); err != nil {
		return nil, err
	}
	spec, err := x.sessionSpec(caller, o)
	if err != nil {
		return nil, err
	}
	env := x.ByName(spec.Environment.Name)
	packages, err := x.dependenciesOf(env, o.Dependencies)
	if err != nil {
		return nil, err
	}
	if o.Work != nil {
		if spec.Inputs, err = x.Gather(ctx, spec.Owner, &o.Inputs, spec.Limits.DataSize, o.Work); err != nil {
			return nil, err
		}
		o.Work.Leave()
	}
	if err := x.MayOpenSession(caller); err != nil { // others may have been opened since
		return nil, err
	}
	release, err := x.installForSession(ctx, caller, env, packages, &spec)
	if err != nil {
		return nil, x.WhyNot(ctx, err)
	}
	spec.Ended = release
	live, err := x.openSession(ctx, spec)
	if err != nil {
		release()
		return nil, err
	}
	s := &Session{x: x, caller: caller, live: live}
	s.tell(ctx, "session opened", slog.String("environment", spec.Environment.Name), slog.Duration("ttl", spec.TTL), slog.Duration("idle", spec.Idle))
	return s, nil
}

// sessionSpec checks everything in an order that can be checked before a file is
// fetched or a sandbox taken.
func (x *Executor) sessionSpec(caller *access.Caller, o *SessionOrder) (spec runner.SessionSpec, err error) {
	env := &x.environments[0]
	if o.Language != nil {
		if env = x.ByLanguage(*o.Language); env == nil {
			return spec, problem.Unfit("language", "%s is not known; there are: %s; bash runs in a session of each of them",
				problem.Quote(*o.Language), strings.Join(x.Languages(), ", "))
		}
	}
	if err := caller.MayUse(env.Name, env.Language); err != nil {
		return spec, err
	}
	if err := x.MustBeAvailable(env); err != nil {
		return spec, err
	}
	spec = runner.SessionSpec{
		Owner: caller.Owner(), Environment: EnvironmentOf(*env), Limits: LimitsOf(*env, x.limits), MaxOwned: caller.Sessions(), Note: o.Note,
	}
	if spec.Network, err = x.networkOf(o.Network, caller); err != nil {
		return spec, err
	}
	if spec.TTL, err = x.sessionTime("ttl", o.TTL, x.times.TTL); err != nil {
		return spec, err
	}
	if spec.Idle, err = x.sessionTime("idle", o.Idle, min(x.times.Idle, spec.TTL)); err != nil {
		return spec, err
	}
	if spec.Env, err = kernelEnv(o.Env); err != nil {
		return spec, err
	}
	if err := o.Inputs.Check(spec.Limits.DataSize); err != nil {
		return spec, err
	}
	spec.ID, err = NewID("ses_", x.now())
	return spec, err
}

func (x *Executor) sessionTime(field string, asked *float64, fallback time.Duration) (time.Duration, error) {
	if asked == nil {
		return fallback, nil
	}
	f, most := *asked, x.times.MaxTTL
	if math.IsNaN(f) || f < minSessionTime.Seconds() || f > most.Seconds() {
		return 0, problem.Unfit(field, "must be from %v to %v seconds", minSessionTime.Seconds(), most.Seconds())
	}
	return time.Duration(f * float64(time.Second)), nil
}

// openSession opens a session. One whose caller has left meanwhile is nobody's, and closed.
func (x *Executor) openSession(ctx context.Context, spec runner.SessionSpec) (live runner.Session, err error) {
	err = inTime(ctx, sessionOpenTime, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(x.runs, cancel)() // the service ends
		live, err = x.sessions.Open(ctx, spec)
		return err
	})
	var full *runner.Error
	switch {
	case errors.As(err, &full) && full.Code == runner.CodeFull:
		return nil, &problem.Error{Status: problem.StatusTooMany, Text: full.Message, RetryAfter: full.RetryAfter, Cause: err}
	case err != nil:
		return nil, x.WhyNot(ctx, ofInputs(err))
	case ctx.Err() == nil:
		return live, nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionCallTime)
	defer cancel()
	if err := live.Close(last); err != nil {
		x.log.WarnContext(ctx, "a session that nobody knows of is left until its idle time", "session", spec.ID, "error", err)
	}
	return nil, ctx.Err()
}
