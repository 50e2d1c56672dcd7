package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"notebox/access"
	"notebox/environments"
	"notebox/executor"
	"notebox/executor/fetch"
	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/runner"
	"notebox/runner/pool"
	"notebox/server/ask"
	"notebox/server/body"
	"notebox/server/dify"
	"notebox/server/functiontool"
	"notebox/server/mcp"
	"notebox/server/native"
	"notebox/server/page"
	"notebox/server/pages"
	"notebox/server/peers"
	"notebox/server/share"
	"notebox/server/status"
	"notebox/server/web"
)

// Config is what a Server is made of. Runner, Store, Environments and TempDir
// must be set.
type Config struct {
	Runner       runner.Runner
	Store        Store
	Environments []environments.Environment // the first is the default's language
	// Available reports whether the image of an environment is there; called for each
	// request. nil: all are.
	Available func(environment string) bool
	// Ready reports why code could not be run now, or nil; called when /readyz
	// is, at most once in readyFor, and not while runs prove it. May be nil.
	Ready func(context.Context) error
	// Starts reports why sandboxes of the default environment keep failing to start, or
	// nil; /readyz is red meanwhile, whatever those that are there do. May be nil.
	Starts func() error
	// Pool tells what sandboxes there are; /readyz shows it to those who may
	// call. May be nil.
	Pool func() pool.Stats
	// Runs tells how many runs of all callers go on, and how many wait for a place; /status shows it.
	// May be nil.
	Runs func() (running, waiting int)
	// Isolation is what sandboxes are; /readyz shows it to those who may call.
	Isolation Isolation
	// Prober is a Runner without admission, by which /readyz proves itself where no
	// good run has ended within ProbeEvery, see probe.go. nil: it asks Ready alone.
	Prober     runner.Runner
	ProbeEvery time.Duration // 0 is DefaultProbeEvery

	Metrics  http.Handler // answers GET /metrics, to those who may call; nil: it does not exist
	Observer Observer     // may be nil
	Tracer   trace.Tracer // nil: nothing is traced

	ListenAddr   string       // host:port that it is going to serve; for the browser rules
	PublicURL    string       // what links start with; "": the request's own scheme and Host
	Keys         *access.Keys // nil: everyone who reaches the service may call, but see browser.go
	AllowOrigins []string     // of pages in browsers, "https://app.example.org"

	Limits         runner.Limits // of a run that asks for nothing else; the zero value is runner.DefaultLimits
	MaxTimeout     time.Duration // that a request may ask for; 0 is DefaultMaxTimeout
	MaxBody        int64         // bytes of JSON, code and text parts; 0 is DefaultMaxBody
	MaxUpload      int64         // bytes of a multipart body, and of what is fetched; 0 is DefaultMaxUpload
	MaxIntake      int           // large requests that are read, or fetched for, at one time; 0 is DefaultMaxIntake
	MaxConnections int           // of clients at one time; 0 is 4096, or half of the files that the process may have open less a reserve
	FetchAllow     []string      // private hosts that files[].url may name; see egress.NewGuard

	// Sessions are what callers may open; nil: none.
	Sessions     runner.Sessions
	SessionTimes executor.SessionTimes

	// Peers are the services that share sessions with this one, whose Sessions are then a
	// *peers.Sessions; nil: none.
	Peers *peers.Peers

	// Network is what runs reach that ask for one, and may have it; nil: none may.
	Network runner.Network

	// Dependencies gives runs the packages that they ask for; nil: none may ask.
	Dependencies executor.Dependencies

	// Agent answers POST /run; nil: no model is configured, and it says so.
	Agent *ask.Config

	// ServiceID is what this service is called among those that share Store: one that
	// starts again under its id knows at once that what it ran before is cut off. No
	// two processes may have one at the same time. "": a new one for each start.
	ServiceID string
	ResultTTL time.Duration // of asynchronous and idempotent executions' results; 0 is executor.DefaultResultTTL

	// StoreStall is how long Store may take, or give, no byte of a file; 0 is 30 s.
	StoreStall time.Duration

	// Retention is how long what a run leaves, and what is kept for later runs, stays in
	// Store. 0: the service removes nothing of it. DefaultRetention is the program's.
	Retention time.Duration

	TempDir string           // a folder of this service alone, for uploads under way
	Log     *slog.Logger     // nil: nothing is logged
	Now     func() time.Time // nil: time.Now
}

// Isolation is what is around runs.
type Isolation struct {
	Kind string `json:"kind"` // container or cell; "" is not told
	// MissingWall is which wall of cells the host does not have, if there were to be cells,
	// and Remedy what an operator can do: both are for strangers.
	MissingWall string `json:"missing_wall,omitempty"`
	Remedy      string `json:"remedy,omitempty"`
}

// Defaults of Config's limits.
const (
	DefaultMaxIntake = 32                 // at worst 16 GiB of TempDir; more bodies than this compete for the same line
	DefaultMaxBody   = 25 << 20           // a long notebook with its old outputs
	DefaultRetention = 7 * 24 * time.Hour // a week to look at what went wrong; links end on the first day
)

// Store keeps what runs leave behind; *storage.Store is one.
type Store = web.Store

// Server answers all calls.
type Server struct {
	*web.Kit
	ready     *readiness
	pool      func() pool.Stats
	isolation Isolation
	metrics   http.Handler
	observer  Observer
	tracer    trace.Tracer
	pages     *pages.Pages
	page      *page.Page
	openAPI   []byte // with the environments' media types

	listen   string
	browsers *browserRules
	echo     *echo.Echo

	mcp         *mcp.Endpoint
	connections *connections

	// What Executor is made of.
	fetcher  *fetch.Fetcher
	book     *ledger.Book
	detached *intake.Places // runs that go on without a client

	calls      []web.Route // the one list of all calls; openapi.json describes each of them
	faces      []web.Face
	background sync.WaitGroup // probes
}

// maxDetached bounds the executions that go on without a client, from their
// acceptance until their result is stored. The runner admits far fewer; this is for
// a store that hangs, while replies wait for it in memory.
const maxDetached = 1000

// detachedRetry is when to come back for a place among them.
const detachedRetry = 10 * time.Second

// New returns a Server. It removes what an earlier one left in TempDir.
func New(cfg Config) (_ *Server, err error) {
	if cfg.Runner == nil || cfg.Store == nil || len(cfg.Environments) == 0 || cfg.TempDir == "" {
		return nil, errors.New("server: Runner, Store, Environments and TempDir must be set")
	}
	s := &Server{
		Kit: &web.Kit{
			Store: cfg.Store, Keys: cfg.Keys,
			Environments: cfg.Environments, Available: cfg.Available, Network: cfg.Network, Dependencies: cfg.Dependencies,
			Limits:     cfg.Limits,
			MaxTimeout: cmp.Or(cfg.MaxTimeout, executor.DefaultMaxTimeout),
			MaxBody:    cmp.Or(cfg.MaxBody, DefaultMaxBody),
			MaxUpload:  cmp.Or(cfg.MaxUpload, executor.DefaultMaxUpload),
			Pace:       web.NewPace(cmp.Or(cfg.StoreStall, executor.DefaultStoreStall)),
			PublicURL:  strings.TrimRight(cfg.PublicURL, "/"),
			Peers:      cfg.Peers,
			Log:        cfg.Log, Now: cfg.Now,
		},
		listen: cfg.ListenAddr, metrics: cfg.Metrics, observer: cfg.Observer, tracer: cfg.Tracer, pool: cfg.Pool, isolation: cfg.Isolation,
	}
	several := func() bool { return s.Keys.Len() > 1 }
	s.Limits = cmp.Or(s.Limits, runner.DefaultLimits())
	s.Log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	if s.Available == nil {
		s.Available = func(string) bool { return true }
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.observer == nil {
		s.observer = unobserved{}
	}
	s.faces = []web.Face{dify.Face{}}
	if s.tracer == nil {
		s.tracer = noop.NewTracerProvider().Tracer("")
	}
	most, err := mostConnections(cfg.MaxConnections)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.connections = newConnections(most, s.Log)
	s.Known = func(ctx context.Context) { s.connections.good(ctx, ofLinks) }
	s.Refused = s.countRefusal
	s.KnownOrigin = func(r *http.Request) bool { return !s.browsers.keys || s.browsers.known(r) }
	if s.browsers, err = newBrowserRules(s.Keys != nil, s.listen, s.PublicURL, cfg.AllowOrigins); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.Intake, err = intake.New(cfg.TempDir, cmp.Or(cfg.MaxIntake, DefaultMaxIntake), several, s.Log); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.Unread = web.NewUnread(several, s.Intake, s.Log)
	s.Bodies = &body.Reader{Intake: s.Intake, MaxBody: s.MaxBody, MaxUpload: s.MaxUpload}
	if s.fetcher, err = fetch.New(cfg.FetchAllow); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.book = ledger.New(cfg.Store, cfg.ServiceID, cmp.Or(cfg.ResultTTL, executor.DefaultResultTTL), s.Now)
	s.detached = &intake.Places{Most: maxDetached, Share: several, What: "runs", Are: "go on without a client", RetryAfter: detachedRetry}
	defer func() {
		if err != nil && s.Executor != nil {
			s.Executor.CancelRuns() // what it does in the background
		}
	}()
	seen := &witness{next: cfg.Runner, now: s.Now}
	if s.Executor, err = executor.New(executor.Config{
		Runner: seen, Sessions: cfg.Sessions, SessionTimes: cfg.SessionTimes, Store: cfg.Store, Environments: cfg.Environments, Available: cfg.Available,
		Network: cfg.Network, Dependencies: cfg.Dependencies, Limits: cfg.Limits, MaxTimeout: cfg.MaxTimeout, MaxUpload: cfg.MaxUpload,
		Intake: s.Intake, Fetcher: s.fetcher, Detached: s.detached, Ledger: s.book,
		Retention: cfg.Retention, StoreStall: cfg.StoreStall, Stored: s.observer.Stored, Tracer: cfg.Tracer, Log: cfg.Log, Now: cfg.Now,
	}); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.ready = &readiness{runner: cfg.Ready, proven: seen.proven, starts: cfg.Starts, store: s.Store.Ready, disk: s.Intake.DiskReady, log: s.Log, now: s.Now}
	if cfg.Prober != nil {
		if s.ready.prober, err = s.newProber(cfg.Prober, cmp.Or(cfg.ProbeEvery, DefaultProbeEvery)); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	if s.pages, err = pages.New(documentTitles...); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.page, err = page.New(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.mcp = mcp.NewEndpoint(s.Kit)
	s.calls = slices.Concat(native.Routes(s.Kit), functiontool.Routes(s.Kit), ask.Routes(s.Kit, cfg.Agent), dify.Routes(s.Kit, answerWith(s.page.Serve)), share.Routes(s.Kit, s.page),
		status.Routes(s.Kit, status.Sources{Pool: cfg.Pool, Runs: cfg.Runs}, answerWith(s.page.ServeStatus)), s.mcp.Routes(), s.own())
	if s.openAPI, err = withMediaTypes(wholeAPI(), s.Environments); err != nil {
		return nil, fmt.Errorf("server: the OpenAPI document: %w", err)
	}
	s.echo = s.newEcho(cfg.AllowOrigins)
	return s, nil
}

// Wait returns when no run goes on, those that no client waits for included, or
// with ctx's error.
func (s *Server) Wait(ctx context.Context) error { return s.Executor.Wait(ctx) }

// CancelRuns ends every run that goes on, and each that begins after it. Their
// callers still get a reply, with what there was until then.
func (s *Server) CancelRuns() { s.Executor.CancelRuns() }

// Close cancels all runs and waits, within a time, until nothing of the Server goes on. Its
// handler must not be called any more.
func (s *Server) Close() error {
	s.CancelRuns()
	s.mcp.Handler.Close()
	err := s.Executor.Close()
	probes := make(chan struct{})
	go func() { s.background.Wait(); close(probes) }()
	select {
	case <-probes:
	case <-time.After(probesEnd):
	}
	return err
}

// probesEnd is what probes may take to end when their runs have been cancelled.
const probesEnd = time.Second

// Handler is the whole API.
func (s *Server) Handler() http.Handler { return s.echo }
