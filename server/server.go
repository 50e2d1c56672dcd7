package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"notebox/access"
	"notebox/environments"
	"notebox/runner"
	"notebox/server/mcp"
	"notebox/server/pages"
	"notebox/storage"
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
	Pool func() runner.PoolStats
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
	Sessions      runner.Sessions
	SessionTTL    time.Duration // of a session that asks for nothing else; 0 is DefaultSessionTTL
	MaxSessionTTL time.Duration // that a session may ask for; 0 is DefaultMaxSessionTTL
	SessionIdle   time.Duration // without a call, of a session that asks for nothing else; 0 is DefaultSessionIdle

	// Network is what runs reach that ask for one, and may have it; nil: none may.
	Network runner.Network

	// Dependencies gives runs the packages that they ask for; nil: none may ask.
	Dependencies Dependencies

	// DifyRunTime is when a run of a Dify agent is interrupted, from its request's
	// arrival; 0 is dify.RunTime.
	DifyRunTime time.Duration
	// Agent answers POST /run; nil: no model is configured, and it says so.
	Agent *AgentConfig

	// ServiceID is what this service is called among those that share Store: one that
	// starts again under its id knows at once that what it ran before is cut off. No
	// two processes may have one at the same time. "": a new one for each start.
	ServiceID string
	ResultTTL time.Duration // of asynchronous and idempotent executions' results; 0 is DefaultResultTTL

	// Retention is how long what a run leaves, and what is kept for later runs, stays in
	// Store. 0: the service removes nothing of it. DefaultRetention is the program's.
	Retention time.Duration

	TempDir string           // a folder of this service alone, for uploads under way
	Log     *slog.Logger     // nil: nothing is logged
	Now     func() time.Time // nil: time.Now
}

// Defaults of Config's limits.
const (
	DefaultMaxTimeout    = 300 * time.Second  // proxies and people give up before
	DefaultMaxBody       = 25 << 20           // a long notebook with its old outputs
	DefaultMaxUpload     = 512 << 20          // as much as /mnt/data holds
	DefaultResultTTL     = 24 * time.Hour     // as long as the links in a result work
	DefaultRetention     = 7 * 24 * time.Hour // a week to look at what went wrong; links end on the first day
	DefaultSessionTTL    = time.Hour          // a conversation, or a piece of work
	DefaultMaxSessionTTL = 24 * time.Hour     // its memory is held all the time
	DefaultSessionIdle   = 15 * time.Minute   // a person reads an answer and writes the next question
	DefaultMaxIntake     = 32                 // at worst 16 GiB of TempDir; more bodies than this compete for the same line
)

// Store keeps what runs leave behind; *storage.Store is one.
type Store interface {
	// Put stores content to its end, or nothing. name is for downloads.
	Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error)
	// Get returns an error that is storage.ErrNotFound for an unknown key.
	Get(ctx context.Context, key string) (*storage.Reader, error)
	// Link returns base + "/v1/files/" + the escaped key and its signature.
	Link(ctx context.Context, key, base string) (link string, expires time.Time, err error)
	// Sign returns the query by which Verify knows a link of another path to key.
	Sign(key string) (query url.Values, expires time.Time, err error)
	// Verify returns nil if q holds a link's signature for key that has not expired.
	Verify(key string, q url.Values) error
	// Replay returns content so that Put can begin anew with it, see storage.Store.
	Replay(content io.Reader, tempDir string) io.ReadCloser
	Ready(ctx context.Context) error
	// Sweep removes runs and inputs that were written before that time. Several
	// services may do it at once.
	Sweep(ctx context.Context, before time.Time) (removed int, err error)
	Records
}

// Server answers the native API.
type Server struct {
	runner       runner.Runner
	store        Store
	environments []environments.Environment
	available    func(environment string) bool
	ready        *readiness
	pool         func() runner.PoolStats
	metrics      http.Handler
	observer     Observer
	tracer       trace.Tracer
	pages        *pages.Pages
	openAPI      []byte // with the environments' media types

	listen    string
	publicURL string // without a slash at its end; may be empty
	keys      *access.Keys
	browsers  *browserRules
	echo      *echo.Echo

	limits       runner.Limits
	maxTimeout   time.Duration
	maxBody      int64
	maxUpload    int64
	fetcher      *fetcher
	sessions     *sessions // nil: none are offered
	mcp          *mcp.Handler
	transfers    places // files of sessions under way
	unread       unread
	connections  *connections
	network      runner.Network    // nil: none
	dependencies Dependencies      // nil: none
	agents       *agents           // nil: no model is configured
	intake       places            // requests that are taken in at one time, see Config.MaxIntake
	decoding     *runner.Admission // large texts that are decoded at one time
	pace         pace

	runs       context.Context // ends when CancelRuns is called
	cancelRuns context.CancelFunc
	running    running
	dify       difyState
	book       *book
	background sync.WaitGroup

	retention time.Duration
	tempDir   string
	log       *slog.Logger
	now       func() time.Time
}

// maxDecoding is how many large texts (above spoolMemory) are decoded at one
// time: it is work for the CPU, and each takes a few times its size of memory.
const maxDecoding = 4

// maxDecodingWaiting texts wait for that, on disk; decodingWait is far longer than it takes.
const (
	maxDecodingWaiting = 1000
	decodingWait       = time.Minute
)

// intakeRetry is when to come back to a service that takes in no more: most
// bodies are there within it.
const intakeRetry = 2 * time.Second

// New returns a Server. It removes what an earlier one left in TempDir.
func New(cfg Config) (*Server, error) {
	if cfg.Runner == nil || cfg.Store == nil || len(cfg.Environments) == 0 || cfg.TempDir == "" {
		return nil, errors.New("server: Runner, Store, Environments and TempDir must be set")
	}
	s := &Server{
		store:        cfg.Store,
		environments: cfg.Environments,
		available:    cfg.Available,
		listen:       cfg.ListenAddr,
		publicURL:    strings.TrimRight(cfg.PublicURL, "/"),
		keys:         cfg.Keys,
		limits:       cfg.Limits,
		maxTimeout:   orDefault(cfg.MaxTimeout, DefaultMaxTimeout),
		maxBody:      orDefault(cfg.MaxBody, DefaultMaxBody),
		maxUpload:    orDefault(cfg.MaxUpload, DefaultMaxUpload),
		decoding:     runner.NewAdmission(nil, runner.AdmissionLimits{MaxRunning: maxDecoding, MaxWaiting: maxDecodingWaiting, MaxWait: decodingWait, ShareWaiting: true}),
		pace:         pace{body: bodyGrace, write: writeGrace},
		network:      cfg.Network,
		dependencies: cfg.Dependencies,
		retention:    cfg.Retention,
		tempDir:      cfg.TempDir,
		log:          cfg.Log,
		now:          cfg.Now,
		metrics:      cfg.Metrics,
		observer:     cfg.Observer,
		tracer:       cfg.Tracer,
	}
	if cfg.Sessions != nil {
		s.sessions = &sessions{Sessions: cfg.Sessions, maxTTL: orDefault(cfg.MaxSessionTTL, DefaultMaxSessionTTL)}
		s.sessions.ttl = min(orDefault(cfg.SessionTTL, DefaultSessionTTL), s.sessions.maxTTL)
		s.sessions.idle = min(orDefault(cfg.SessionIdle, DefaultSessionIdle), s.sessions.maxTTL)
	}
	s.runs, s.cancelRuns = context.WithCancel(context.Background())
	several, intake := func() bool { return s.keys.Len() > 1 }, orDefault(cfg.MaxIntake, DefaultMaxIntake)
	s.intake = places{most: intake, share: several, what: "large requests", are: "are being read", retryAfter: intakeRetry}
	s.transfers = places{most: intake, share: several, what: "files of sessions", are: "are under way", retryAfter: transferRetry}
	s.running.byID = map[string]*execution{}
	s.running.detached = places{most: maxDetached, share: several, what: "runs", are: "go on without a client", retryAfter: detachedRetry}
	s.unread.byOwner, s.unread.maxBytes, s.unread.share = map[string]waiting{}, maxUnreadBytes, several
	s.agents = newAgents(cfg.Agent, several)
	if s.limits == (runner.Limits{}) {
		s.limits = runner.DefaultLimits()
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.available == nil {
		s.available = func(string) bool { return true }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.observer == nil {
		s.observer = unobserved{}
	}
	s.dify.runTime = cfg.DifyRunTime
	if s.tracer == nil {
		s.tracer = noop.NewTracerProvider().Tracer("")
	}
	s.book = &book{
		store: s.store, service: orDefault(cfg.ServiceID, rand.Text()), instance: rand.Text(),
		ttl: orDefault(cfg.ResultTTL, DefaultResultTTL), now: s.now,
	}
	most, err := mostConnections(cfg.MaxConnections)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.connections = newConnections(most, s.log)
	if err := sweepWorkspaces(s.tempDir); err != nil {
		return nil, fmt.Errorf("server: temporary folder: %w", err)
	}
	if s.browsers, err = newBrowserRules(s.keys.Len() > 0, s.listen, s.publicURL, cfg.AllowOrigins); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.fetcher, err = newFetcher(cfg.FetchAllow); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	seen := &witness{next: cfg.Runner, now: s.now}
	s.runner = seen
	s.pool = cfg.Pool
	s.ready = &readiness{runner: cfg.Ready, proven: seen.proven, starts: cfg.Starts, store: s.store.Ready, disk: newDiskProbe(s.tempDir).ready, log: s.log, now: s.now}
	if cfg.Prober != nil {
		if s.ready.prober, err = s.newProber(cfg.Prober, orDefault(cfg.ProbeEvery, DefaultProbeEvery)); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	if s.pages, err = newPages(s.routes()); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.openAPI, err = withMediaTypes(wholeAPI(), s.environments); err != nil {
		return nil, fmt.Errorf("server: the OpenAPI document: %w", err)
	}
	s.echo = s.newEcho(cfg.AllowOrigins)
	s.mcp = mcp.NewHandler(inside{s.echo}, s.log)
	s.background.Go(s.sweepRecords)
	s.background.Go(s.sweepRuns)
	return s, nil
}

// Wait returns when no run goes on, those that no client waits for included, or
// with ctx's error.
func (s *Server) Wait(ctx context.Context) error {
	if err := s.running.wait(ctx); err != nil {
		return fmt.Errorf("server: runs go on: %w", err)
	}
	return nil
}

// CancelRuns ends every run that goes on, and each that begins after it. Their
// callers still get a reply, with what there was until then.
func (s *Server) CancelRuns() { s.cancelRuns() }

// Close cancels all runs and waits, within closeTime, until nothing of the Server
// goes on. Its handler must not be called any more.
func (s *Server) Close() error {
	s.CancelRuns()
	s.mcp.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	swept := make(chan struct{})
	go func() { s.background.Wait(); close(swept) }()
	select {
	case <-swept:
	case <-ctx.Done():
	}
	return s.Wait(ctx)
}

// closeTime bounds the end of runs that are cancelled: the sandbox is killed, and
// what there is of a reply stored.
const closeTime = 15 * time.Second

// Handler is the whole API.
func (s *Server) Handler() http.Handler { return s.echo }

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
