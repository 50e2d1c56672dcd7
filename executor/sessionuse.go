package executor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"notebox/access"
	"notebox/executor/problem"
	"notebox/runner"
)

// sessionCallTime bounds every call of a session but runs and the contents of files, whose
// time is in their bytes. A restart waits for processes to end and for a kernel.
const sessionCallTime = time.Minute

// Session is a session of its caller. Its files are /mnt/data's; their paths are relative to
// it, and clean. Errors of files are *runner.FileError, a session that is over is a
// *runner.GoneError; see ProblemOf.
type Session struct {
	x      *Executor
	caller *access.Caller
	live   runner.Session
}

// SessionInfo is what is known of a session.
type SessionInfo struct {
	runner.SessionInfo
	Language string // "" where its environment is not there any more
}

// FindSession returns a session of a caller. Its error is a *runner.GoneError if the
// session is over, and runner.ErrNoSession if there was none.
func (x *Executor) FindSession(caller *access.Caller, id string) (*Session, error) {
	if err := x.SessionsOffered(); err != nil {
		return nil, err
	}
	if !IsSessionID(id) {
		return nil, runner.ErrNoSession
	}
	live, err := x.sessions.Find(caller.Owner(), id)
	if err != nil {
		return nil, err
	}
	return &Session{x: x, caller: caller, live: live}, nil
}

// SessionsOf returns the open sessions of a caller.
func (x *Executor) SessionsOf(caller *access.Caller) ([]SessionInfo, error) {
	if err := x.SessionsOffered(); err != nil {
		return nil, err
	}
	var all []SessionInfo
	for _, known := range x.sessions.List(caller.Owner()) {
		all = append(all, x.aboutSession(known))
	}
	return all, nil
}

func (x *Executor) aboutSession(known runner.SessionInfo) SessionInfo {
	info := SessionInfo{SessionInfo: known}
	if env := x.ByName(known.Environment); env != nil {
		info.Language = env.Language
	}
	return info
}

// Info returns what is known of it now.
func (s *Session) Info() SessionInfo { return s.x.aboutSession(s.live.Info()) }

// DataSize is how many bytes its /mnt/data holds.
func (s *Session) DataSize() int64 {
	if env := s.x.ByName(s.live.Info().Environment); env != nil {
		return LimitsOf(*env, s.x.limits).DataSize
	}
	return s.x.limits.DataSize // its environment is not there any more
}

// Close ends it. A caller that leaves does not stop that.
func (s *Session) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := inTime(ctx, sessionCallTime, s.live.Close)
	if err == nil {
		s.tell(ctx, "session closed")
	}
	return err
}

// Interrupt interrupts what runs in it.
func (s *Session) Interrupt(ctx context.Context) error {
	return inTime(ctx, sessionCallTime, s.live.Interrupt)
}

// Restart starts its kernel anew. A caller that leaves does not stop that halfway.
func (s *Session) Restart(ctx context.Context) error {
	return inTime(context.WithoutCancel(ctx), sessionCallTime, s.live.Restart)
}

// tell writes a line to the log.
func (s *Session) tell(ctx context.Context, what string, more ...slog.Attr) {
	attrs := []slog.Attr{slog.String("session", s.live.Info().ID)}
	if owner := s.caller.Owner(); owner != "" {
		attrs = append(attrs, slog.String("owner", owner))
	}
	if name := s.caller.Name(); name != "" {
		attrs = append(attrs, slog.String("caller", name))
	}
	s.x.log.LogAttrs(ctx, slog.LevelInfo, what, append(attrs, more...)...)
}

// inTime calls do for a limited time, whose end is a 504.
func inTime(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return &problem.Error{Status: problem.StatusTimeout, Text: "the sandbox did not answer in time", Cause: err}
	}
	return err
}
