package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/server/body"
	"notebox/server/mcp"
)

// mcpPath is where the Model Context Protocol is served, see package mcp.
const mcpPath = "/mcp"

// mcpRetry is what a client with too many MCP sessions is told to wait.
const mcpRetry = time.Minute

// serveMCP answers the one address of MCP's streamable HTTP.
func (s *Server) serveMCP(c echo.Context) error {
	if s.browsers.keys && !s.browsers.known(c.Request()) { // the protocol wants it checked in any case
		return problem.Forbidden("pages of this Origin may not call this service")
	}
	work := s.intake.Workspace(ownerOf(c))
	defer work.Clear(c.Request().Context())
	r, count, err := s.readMessage(c.Request(), work)
	if err != nil {
		return err
	}
	for range count - 1 { // each of a batch is as a request by itself
		if err := callerOf(c).Request(); err != nil {
			return err
		}
	}
	served, err := s.mcp.Serve(c.Response(), r, ownerOf(c), s.base(r))
	if err == nil && !served {
		return &problem.Error{Status: http.StatusTooManyRequests, Text: "there are too many MCP sessions; close some", RetryAfter: mcpRetry}
	}
	return err
}

// readMessage reads the body of a request as those of other calls are, by way of the disk
// and in a place of its owner's, before the SDK has all of it in memory. A large one keeps
// the place until it is answered: it is in memory until then. count is how many messages
// there are.
func (s *Server) readMessage(r *http.Request, work *intake.Workspace) (own *http.Request, count int, err error) {
	if r.Method != http.MethodPost {
		return r, 1, nil
	}
	sent, err := work.Spool(http.MaxBytesReader(nil, r.Body, mcp.MaxBody))
	if err != nil {
		return nil, 0, body.Problem(err, body.NotWhole)
	}
	own = r.WithContext(r.Context())
	err = s.bodies.WithText(r, work, sent, func(raw []byte) error {
		if notebook.ShapeOf(raw).Values > mcp.MaxValues {
			return problem.Malformed("", "the message has more than %d values", mcp.MaxValues)
		}
		count = messages(raw)
		own.Body = io.NopCloser(bytes.NewReader(raw))
		if len(raw) < executor.LargeProgram {
			work.Leave()
		}
		return nil
	})
	return own, count, err
}

// messages is how many messages a body has: those of a batch, up to where it is no JSON.
func messages(raw []byte) (n int) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != jsontext.KindBeginArray {
		return 1
	}
	for _, err := dec.ReadToken(); err == nil && dec.PeekKind() != jsontext.KindEndArray; n++ {
		err = dec.SkipValue()
	}
	return n
}

// executeForMCP runs code of calls. base is what the first of their clients came to.
func (s *Server) executeForMCP(base string) mcp.Execute {
	return func(ctx context.Context, head http.Header, e mcp.Execution, said func(string)) ([]byte, error) {
		caller, err := s.keys.Caller(presentedKey(head))
		if err != nil {
			p := needsKey()
			return nil, &mcp.Refusal{Status: int(p.Status), Detail: p.Detail()}
		}
		who := []slog.Attr{slog.String("owner", caller.Owner()), slog.String("caller", caller.Name()), slog.String("session", e.Session)}
		run, raw, err := s.runForMCP(ctx, caller, mcp.BaseOf(base, s.publicURL, head), e, said)
		if run != nil {
			who = append(who, slog.String("run", run.ID))
		}
		if err == nil || ctx.Err() != nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "a call of MCP", who...)
			return raw, err
		}
		p := problemOf(err)
		if why := refusalOf(p); why != "" {
			s.observer.Refused(why)
		}
		who = append(who, slog.Int("status", int(p.Status)))
		if p.Cause != nil {
			who = append(who, slog.String("error", p.Cause.Error()))
		}
		s.log.LogAttrs(ctx, levelOf(p), "a call of MCP failed", who...)
		return nil, &mcp.Refusal{Status: int(p.Status), Detail: p.Detail()}
	}
}

func (s *Server) runForMCP(ctx context.Context, caller *access.Caller, base string, e mcp.Execution, said func(string)) (*executor.Run, []byte, error) {
	if err := caller.MayBeginRun(); err != nil {
		return nil, nil, err
	}
	if int64(len(e.Code)) > s.maxBody {
		return nil, nil, problem.TooLarge("code", "is larger than %d bytes", s.maxBody)
	}
	o := &executor.Order{Code: &e.Code, Language: &e.Language, Dependencies: e.Dependencies, Base: base}
	if e.Session != "" {
		o.Session = &e.Session
	}
	if e.Timeout != 0 {
		o.Timeout = &e.Timeout
	}
	run, err := s.executor.Begin(ctx, caller, o)
	if err != nil {
		return nil, nil, err
	}
	defer run.Leave()
	run.Start(sayer(said))
	reply, err := run.Wait(ctx)
	if err != nil {
		return run, nil, err
	}
	return run, reply.Bytes(), nil
}

// sayer hears of the text that a run puts out.
type sayer func(string)

// Install implements executor.Listener.
func (s sayer) Install(text string) { s(text) }

// Output implements executor.Listener.
func (s sayer) Output(entry any) {
	if text, ok := entry.(executor.StreamOutput); ok {
		s(text.Text)
	}
}

// Accepted implements executor.Listener.
func (sayer) Accepted() {}

// Clear implements executor.Listener.
func (sayer) Clear(int) {}

// File implements executor.Listener.
func (sayer) File(executor.File) {}
