package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/environments"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/server/peers"
)

// Kit is what every protocol is made of. Its fields are set once.
type Kit struct {
	Executor *executor.Executor
	Intake   *intake.Intake
	Bodies   *body.Reader
	Unread   *Unread
	Store    Store
	Keys     *access.Keys

	Environments []environments.Environment // the first is the default's language
	Available    func(environment string) bool
	Network      runner.Network        // nil: none
	Dependencies executor.Dependencies // nil: none
	Limits       runner.Limits
	MaxTimeout   time.Duration
	MaxBody      int64 // bytes of JSON, code and text parts
	MaxUpload    int64 // bytes of a multipart body, and of what is fetched

	Pace      Pace
	PublicURL string // without a slash at its end; may be empty
	Log       *slog.Logger
	Now       func() time.Time

	Peers *peers.Peers // the services that share sessions with this one; nil: none

	// KnownOrigin reports whether a request comes from no page in a browser, or from one of a
	// site that may call.
	KnownOrigin func(*http.Request) bool
	// Known is told of a request that has shown a good link, whose connection is not
	// closed for others then.
	Known func(context.Context)
	// Refused is told of an error that a protocol answers in a way of its own.
	Refused func(*problem.Error)
}

// Store keeps what runs leave behind; *storage.Store is one.
type Store interface {
	executor.Store
	// Sign returns the query by which Verify knows a link of another path to key.
	Sign(key string) (query url.Values, expires time.Time, err error)
	// Verify returns nil if q holds a link's signature for key that has not expired.
	Verify(key string, q url.Values) error
	Ready(ctx context.Context) error
}

// Route is one call of the API.
type Route struct {
	Method  string
	Path    string
	Handler echo.HandlerFunc
	Open    bool // needs no API key
	Keep    bool // its body may name a session that a peer has
}

// On is a call that needs an API key, if there are any.
func On(method, path string, handler echo.HandlerFunc) Route {
	return Route{Method: method, Path: path, Handler: handler}
}

// WithoutKey is the call for everybody.
func (r Route) WithoutKey() Route {
	r.Open = true
	return r
}

// NamesSession is the call whose body may name a session, so that it is known when the body is read.
func (r Route) NamesSession() Route {
	r.Keep = true
	return r
}

// Base is what links start with. X-Forwarded-* is not looked at: anybody may
// send it, so a service behind a proxy has --public-url.
func (k *Kit) Base(r *http.Request) string {
	if k.PublicURL != "" {
		return k.PublicURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Begin begins a run of a request's caller.
func (k *Kit) Begin(c echo.Context, o *executor.Order) (*executor.Run, error) {
	if o.Session != nil && executor.IsSessionID(*o.Session) {
		NoteSession(c, *o.Session)
	}
	run, err := k.Executor.Begin(c.Request().Context(), Caller(c), o)
	if err == nil {
		ForgetBody(c)
		NoteRun(c, run.ID)
	}
	return run, err
}

// Reader decodes the body of a request for a run. What it keeps of it is in the workspace.
type Reader func(*http.Request, *intake.Workspace) (*executor.Order, error)

// BeginRead reads an order from a request's body, and begins its run. If it returns a run,
// Leave must be called.
//
// Only so many requests that need the disk are taken in at one time, until what they name
// is fetched: clients that send little, however slowly, keep nobody out. The runner admits
// only what is whole.
func (k *Kit) BeginRead(c echo.Context, read Reader) (*executor.Run, error) {
	r := c.Request()
	work := k.Intake.Workspace(Owner(c))
	taken := false
	defer func() {
		if !taken { // by an error, or by a panic
			work.Clear(r.Context())
		}
	}()
	o, err := read(r, work)
	if err != nil {
		return nil, err
	}
	taken, o.Work = true, work
	o.Base, o.Sent = k.Base(r), OutgoingOf(c).WhenSent
	return k.Begin(c, o)
}

// AnswerJoined calls answer, which sends a reply of so many bytes that others have too. Any
// number of requests may wait for one run: when it ends they are answered in turn, and one
// is refused if its caller leaves too much unread by then.
func (k *Kit) AnswerJoined(ctx context.Context, run *executor.Run, size int64, answer func() error) error {
	return k.Intake.InTurn(ctx, run.Owner(), size, func() error {
		if err := k.Unread.MayBegin(run.Owner()); err != nil {
			return err
		}
		return answer()
	})
}
