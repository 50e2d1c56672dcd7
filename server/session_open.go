package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
)

// sessionRequest is a POST /v1/sessions as it was written, in whichever form. A nil
// field was not given.
type sessionRequest struct {
	Language *body.Text     `json:"language"`
	TTL      *body.Seconds  `json:"ttl"`
	Idle     *body.Seconds  `json:"idle"`
	Files    body.Files     `json:"files"`
	Env      body.Variables `json:"env"`
	Network  *bool          `json:"network"`

	Dependencies body.Packages `json:"dependencies"`

	inputs executor.Inputs // Files, and the file parts of a form
}

// sessionParts are the parts of a form that are fields, in the order in which errors in
// them are told.
var sessionParts = []string{"language", "ttl", "idle", "files", "env", "dependencies", "network"}

func (req *sessionRequest) setPart(name string, raw []byte) (err error) {
	switch name {
	case "language":
		req.Language = new(body.Text(raw))
	case "ttl":
		req.TTL, err = body.ParseSeconds(name, string(raw))
	case "idle":
		req.Idle, err = body.ParseSeconds(name, string(raw))
	case "files":
		err = body.DecodeJSON(name, raw, &req.Files)
	case "env":
		err = body.DecodeJSON(name, raw, &req.Env)
	case "dependencies":
		err = body.DecodeJSON(name, raw, &req.Dependencies)
	case "network":
		req.Network, err = body.ParseBool(name, string(raw))
	}
	return err
}

// readSessionRequest decodes the body in either form; one without a body asks for
// nothing but the defaults.
func (s *Server) readSessionRequest(r *http.Request, work *intake.Workspace) (*sessionRequest, error) {
	if _, err := body.Query(r); err != nil {
		return nil, err
	}
	mediaType, params, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	req := new(sessionRequest)
	switch {
	case r.ContentLength == 0:
		return req, nil
	case mediaType == "application/json":
		err = s.bodies.Object(r, work, req, func() error { return req.takeFiles(work) })
	case mediaType == formType:
		f := &body.Form{Of: s.bodies, Work: work, Names: sessionParts, Inputs: &req.inputs, Set: req.setPart}
		err = f.Read(r, params["boundary"])
	default:
		err = body.UnsupportedMedia("Content-Type: a session is opened with application/json, %s, or no body", formType)
	}
	if err != nil {
		return nil, err
	}
	return req, req.takeFiles(work)
}

// takeFiles moves Files to the inputs.
func (req *sessionRequest) takeFiles(work *intake.Workspace) error {
	err := body.TakeFiles(&req.inputs, req.Files, work)
	req.Files = nil
	return err
}

// openSession answers POST /v1/sessions.
func (s *Server) openSession(c echo.Context) error {
	caller := callerOf(c)
	if s.sessions == nil {
		return errNoSessions()
	}
	mayOpen := func() error { return caller.MayOpenSession(len(s.sessions.List(caller.Owner()))) }
	if err := errors.Join(mayOpen(), caller.MayUseCPU()); err != nil {
		return err // before its body is read
	}
	work := s.intake.Workspace(caller.Owner())
	defer work.Clear(c.Request().Context())
	r := c.Request()
	req, err := s.readSessionRequest(r, work)
	if err != nil {
		return err
	}
	spec, err := s.sessionSpec(c, req)
	if err != nil {
		return err
	}
	env := s.executor.ByName(spec.Environment.Name)
	packages, err := s.executor.DependenciesOf(env, body.Strings(req.Dependencies))
	if err != nil {
		return err
	}
	if spec.Inputs, err = s.executor.Gather(r.Context(), spec.Owner, &req.inputs, spec.Limits.DataSize, work); err != nil {
		return err
	}
	work.Leave()
	if err := mayOpen(); err != nil { // others may have been opened since
		return err
	}
	release, err := s.executor.InstallForSession(r.Context(), caller, env, packages, &spec)
	if err != nil {
		return s.executor.WhyNot(r.Context(), err)
	}
	spec.Ended = release
	session, err := s.open(r.Context(), spec)
	if err != nil {
		release()
		return err
	}
	c.Set(sessionKey, spec.ID)
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "session opened", append(who(c),
		slog.String("environment", spec.Environment.Name), slog.Duration("ttl", spec.TTL), slog.Duration("idle", spec.Idle))...)
	c.Response().Header().Set(echo.HeaderLocation, sessionsPath+"/"+spec.ID)
	return fresh(c, http.StatusCreated, s.aboutSession(session.Info()))
}

// sessionSpec checks everything in a request that can be checked before a file is
// fetched or a sandbox taken.
func (s *Server) sessionSpec(c echo.Context, req *sessionRequest) (spec runner.SessionSpec, err error) {
	caller := callerOf(c)
	env := &s.environments[0]
	if req.Language != nil {
		if env = s.executor.ByLanguage(string(*req.Language)); env == nil {
			return spec, problem.Unfit("language", "%s is not known; there are: %s; bash runs in a session of each of them",
				problem.Quote(string(*req.Language)), strings.Join(s.executor.Languages(), ", "))
		}
	}
	if err := caller.MayUse(env.Name, env.Language); err != nil {
		return spec, err
	}
	if err := s.executor.MustBeAvailable(env); err != nil {
		return spec, err
	}
	spec = runner.SessionSpec{
		Owner: caller.Owner(), Environment: executor.EnvironmentOf(*env), Limits: executor.LimitsOf(*env, s.limits), MaxOwned: caller.Sessions(),
	}
	if req.Network != nil && *req.Network {
		if err := executor.MayNetwork(caller, s.network != nil); err != nil {
			return spec, err
		}
		spec.Network = s.network
	}
	if spec.TTL, err = s.sessionTime("ttl", req.TTL, s.sessions.ttl); err != nil {
		return spec, err
	}
	if spec.Idle, err = s.sessionTime("idle", req.Idle, min(s.sessions.idle, spec.TTL)); err != nil {
		return spec, err
	}
	if spec.Env, err = executor.KernelEnv(req.Env.Strings()); err != nil {
		return spec, err
	}
	if room := spec.Limits.DataSize; req.inputs.Size() > room {
		return spec, executor.TooMuch(room)
	}
	if err := executor.CheckURLs(&req.inputs); err != nil {
		return spec, err
	}
	spec.ID, err = executor.NewSessionID(s.now())
	return spec, err
}

// dataSizeOf is how many bytes a session's /mnt/data holds.
func (s *Server) dataSizeOf(session runner.Session) int64 {
	if env := s.executor.ByName(session.Info().Environment); env != nil {
		return executor.LimitsOf(*env, s.limits).DataSize
	}
	return s.limits.DataSize // its environment is not there any more
}

// minSessionTime is the shortest that a session may ask for: below it, it could be over
// before its answer is read.
const minSessionTime = time.Second

func (s *Server) sessionTime(field string, asked *body.Seconds, fallback time.Duration) (time.Duration, error) {
	if asked == nil {
		return fallback, nil
	}
	f, most := float64(*asked), s.sessions.maxTTL
	if math.IsNaN(f) || f < minSessionTime.Seconds() || f > most.Seconds() {
		return 0, problem.Unfit(field, "must be from %v to %v seconds", minSessionTime.Seconds(), most.Seconds())
	}
	return time.Duration(f * float64(time.Second)), nil
}

// open opens a session. One whose client has left meanwhile is nobody's, and closed.
func (s *Server) open(ctx context.Context, spec runner.SessionSpec) (session runner.Session, err error) {
	err = inTime(ctx, sessionOpenTime, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.executor.Life(), cancel)() // the service ends
		session, err = s.sessions.Open(ctx, spec)
		return err
	})
	var full *runner.Error
	switch {
	case errors.As(err, &full) && full.Code == runner.CodeFull:
		return nil, &problem.Error{Status: http.StatusTooManyRequests, Text: full.Message, RetryAfter: full.RetryAfter, Cause: err}
	case err != nil:
		return nil, s.executor.WhyNot(ctx, executor.OfInputs(err))
	case ctx.Err() == nil:
		return session, nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionCallTime)
	defer cancel()
	if err := session.Close(last); err != nil {
		s.log.WarnContext(ctx, "a session that nobody knows of is left until its idle time", "session", spec.ID, "error", err)
	}
	return nil, ctx.Err()
}
