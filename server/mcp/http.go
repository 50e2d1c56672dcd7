package mcp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"notebox/agent/remote"
	"notebox/agent/tool"
	"notebox/client"
	"notebox/environments"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/server/body"
	"notebox/server/web"
)

// Path is where the protocol is served.
const Path = "/mcp"

// retry is what a client with too many MCP sessions is told to wait.
const retry = time.Minute

// Endpoint is MCP's one address, /mcp.
type Endpoint struct {
	*web.Kit
	Handler *Handler
}

// NewEndpoint returns one.
func NewEndpoint(kit *web.Kit) *Endpoint {
	s := &Endpoint{Kit: kit}
	s.Handler = NewHandler(s.caller)
	if s.Peers != nil {
		s.Handler.mint = s.mint
	}
	return s
}

// Routes are the calls.
func (s *Endpoint) Routes() []web.Route {
	return []web.Route{web.On(http.MethodPost, Path, s.serve), web.On(http.MethodGet, Path, s.serve), web.On(http.MethodDelete, Path, s.serve)}
}

// serve answers a request.
func (s *Endpoint) serve(c echo.Context) error {
	if !s.KnownOrigin(c.Request()) { // the protocol wants it checked in any case
		return problem.Forbidden("pages of this Origin may not call this service")
	}
	if err := s.elsewhere(c); err != nil {
		return err // before its body is read
	}
	work := s.Intake.Workspace(web.Owner(c))
	defer work.Clear(c.Request().Context())
	r, count, err := s.readMessage(c.Request(), work)
	if err != nil {
		return err
	}
	for range count - 1 { // each of a batch is as a request by itself
		if err := web.Caller(c).Request(); err != nil {
			return err
		}
	}
	return s.Handler.Serve(c.Response(), r, web.Owner(c), s.Base(r))
}

// readMessage reads the body of a request as those of other calls are, by way of the disk
// and in a place of its owner's, before the SDK has all of it in memory. A large one keeps
// the place until it is answered: it is in memory until then. count is how many messages
// there are.
func (s *Endpoint) readMessage(r *http.Request, work *intake.Workspace) (own *http.Request, count int, err error) {
	if r.Method != http.MethodPost {
		return r, 1, nil
	}
	own = r.WithContext(r.Context())
	bodies := &body.Reader{Intake: s.Intake, MaxBody: MaxBody}
	err = bodies.Text(r, work, func(raw []byte) error {
		if notebook.ShapeOf(raw).Values > MaxValues {
			return problem.Malformed("", "the message has more than %d values", MaxValues)
		}
		var around int
		if count, around = messages(raw); around > maxAround {
			return problem.TooLarge("", "the message has more than %d bytes besides the arguments of its tool, or these more than %d", maxAround, tool.MaxArguments)
		}
		own.Body = io.NopCloser(bytes.NewReader(raw))
		if len(raw) < executor.LargeProgram {
			work.Leave()
		}
		return nil
	})
	return own, count, err
}

// maxAround is how many bytes a message may have besides the arguments of its tool. They may
// be kept: a session has its client's description, and each word of progress has a token.
const maxAround = 64 << 10

// lenient reads what the SDK reads, too.
var lenient = jsontext.AllowDuplicateNames(true)

// messages is how many messages a body has: those of a batch, up to where it is no JSON.
// around is the most that one has, in bytes, besides the arguments that its tool may have.
func messages(raw []byte) (n, around int) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), lenient)
	if dec.PeekKind() != jsontext.KindBeginArray {
		return 1, len(raw) - len(arguments(raw))
	}
	_, err := dec.ReadToken()
	for ; err == nil && dec.PeekKind() != jsontext.KindEndArray; n++ {
		var message jsontext.Value
		if message, err = dec.ReadValue(); err != nil {
			around = len(raw)
		}
		around = max(around, len(message)-len(arguments(message)))
	}
	return n, around
}

// arguments are those of a message's tool, if it calls one, up to tool.MaxArguments. A file
// that is written may be larger.
func arguments(message []byte) []byte {
	var call struct {
		Params struct {
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &call, lenient) != nil {
		return nil
	}
	if of := call.Params.Arguments; call.Params.Name == writeFile || len(of) < tool.MaxArguments {
		return of
	}
	return call.Params.Arguments[:tool.MaxArguments]
}

// caller is the Service of who sent these headers.
func (s *Endpoint) caller(head http.Header, base string) (Service, error) {
	caller, err := s.Keys.Caller(web.PresentedKey(head))
	if err != nil {
		p := web.NeedsKey()
		return nil, &Refusal{Status: int(p.Status), Detail: p.Detail()}
	}
	var at func(string) Service
	if s.Peers != nil {
		at = func(peer string) Service {
			return API{remote.New(client.Options{BaseURL: "http://" + peer, HTTP: s.Peers.Client(peer, head, base), Once: true})}
		}
	}
	return &Local{
		At:       at,
		Executor: s.Executor, Caller: caller, Base: base, MaxCode: s.MaxBody, Told: s.told, Log: s.Log,
		Languages: func() (tool.About, error) {
			about := s.AboutTool()
			about.Languages = s.LanguagesOf(caller, func(e *environments.Environment) bool { return s.Available(e.Name) })
			return about, nil
		},
	}, nil
}

// told gives an error of a call its public face, and tells the log and the Observer.
func (s *Endpoint) told(ctx context.Context, err error, who ...slog.Attr) *problem.Error {
	p := web.Problem(err)
	s.Refused(p)
	who = append(who, slog.Int("status", int(p.Status)))
	if p.Cause != nil {
		who = append(who, slog.String("error", p.Cause.Error()))
	}
	s.Log.LogAttrs(ctx, web.LevelOf(p), "a call of MCP failed", who...)
	return p
}
