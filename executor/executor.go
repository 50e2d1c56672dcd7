package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"notebox/environments"
	"notebox/executor/fetch"
	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/runner"
)

// Config is what an Executor is made of. Runner, Store, Environments and Intake must be set.
type Config struct {
	Runner       runner.Runner
	Sessions     runner.Sessions // that callers may open and orders may name; nil: none are offered
	SessionTimes SessionTimes
	Store        Store
	Environments []environments.Environment // the first is the default's language
	// Available reports whether the image of an environment is there; called for each
	// order. nil: all are.
	Available func(environment string) bool
	// Network is what runs reach that ask for one, and may have it; nil: none may.
	Network runner.Network
	// Dependencies gives runs the packages that they ask for; nil: none may ask.
	Dependencies Dependencies

	Limits     runner.Limits  // of a run that asks for nothing else; the zero value is runner.DefaultLimits
	MaxTimeout time.Duration  // that an order may ask for; 0 is DefaultMaxTimeout
	MaxUpload  int64          // bytes of what is fetched; 0 is DefaultMaxUpload
	Fetcher    *fetch.Fetcher // gets the URLs of inputs; nil: from public hosts alone
	Intake     *intake.Intake // of what orders bring
	Detached   *intake.Places // bounds the runs that go on without their caller; nil: as many as there are

	Ledger *ledger.Book // of what outlives a request; nil: one in Store that is no other service's
	// Retention is how long what a run leaves, and what is kept for later runs, stays in
	// Store. 0: nothing of it is removed.
	Retention time.Duration

	// StoreStall is how long Store may take, or give, no byte of a file; 0 is 30 s.
	StoreStall time.Duration

	Stored func(time.Duration) // hears how long each run's notebook and images took to store; may be nil
	Tracer trace.Tracer        // nil: nothing is traced
	Log    *slog.Logger        // nil: nothing is logged
	Now    func() time.Time    // nil: time.Now
}

// Store keeps what runs leave behind; *storage.Store is one.
type Store interface {
	ledger.Store
	// Link returns base + "/v1/files/" + the escaped key and its signature.
	Link(ctx context.Context, key, base string) (link string, expires time.Time, err error)
	// Replay returns content so that Put can begin anew with it, see storage.Store.
	Replay(content io.Reader, tempDir string) io.ReadCloser
	// Sweep removes runs and inputs that were written before that time. Several
	// services may do it at once.
	Sweep(ctx context.Context, before time.Time) (removed int, err error)
}

// Defaults of Config's limits.
const (
	DefaultMaxTimeout = 300 * time.Second // proxies and people give up before
	DefaultMaxUpload  = 512 << 20         // as much as /mnt/data holds
	DefaultResultTTL  = 24 * time.Hour    // as long as the links in a result work
)

// Executor runs orders, and stores what they leave. It knows no protocol.
type Executor struct {
	runner       runner.Runner
	sessions     runner.Sessions
	times        SessionTimes
	transfers    *intake.Places // files of sessions under way
	store        Store
	environments []environments.Environment
	available    func(environment string) bool
	network      runner.Network
	dependencies Dependencies

	limits     runner.Limits
	maxTimeout time.Duration
	maxUpload  int64
	fetcher    *fetch.Fetcher
	intake     *intake.Intake
	stall      time.Duration // DefaultStoreStall; tests have less

	runs       context.Context // ends when CancelRuns is called
	cancelRuns context.CancelFunc
	running    running
	past       past
	book       *ledger.Book
	background sync.WaitGroup
	sharing    sync.Mutex // while a share that is over is removed

	retention time.Duration
	stored    func(time.Duration)
	tracer    trace.Tracer
	log       *slog.Logger
	now       func() time.Time
}

// New returns an Executor.
func New(cfg Config) (*Executor, error) {
	if cfg.Runner == nil || cfg.Store == nil || len(cfg.Environments) == 0 || cfg.Intake == nil {
		return nil, errors.New("executor: Runner, Store, Environments and Intake must be set")
	}
	x := &Executor{
		runner: cfg.Runner, sessions: cfg.Sessions, store: cfg.Store,
		environments: cfg.Environments, available: cfg.Available,
		network: cfg.Network, dependencies: cfg.Dependencies,
		limits:     cfg.Limits,
		maxTimeout: cmp.Or(cfg.MaxTimeout, DefaultMaxTimeout),
		maxUpload:  cmp.Or(cfg.MaxUpload, DefaultMaxUpload),
		intake:     cfg.Intake,
		fetcher:    cfg.Fetcher,
		stall:      cmp.Or(cfg.StoreStall, DefaultStoreStall),
		transfers:  cfg.Intake.Transfers(),
		retention:  cfg.Retention, stored: cfg.Stored,
		tracer: cfg.Tracer, log: cfg.Log, now: cfg.Now,
	}
	x.limits = cmp.Or(x.limits, runner.DefaultLimits())
	x.times.MaxTTL = cmp.Or(cfg.SessionTimes.MaxTTL, DefaultMaxSessionTTL)
	x.times.TTL = min(cmp.Or(cfg.SessionTimes.TTL, DefaultSessionTTL), x.times.MaxTTL)
	x.times.Idle = min(cmp.Or(cfg.SessionTimes.Idle, DefaultSessionIdle), x.times.MaxTTL)
	if x.available == nil {
		x.available = func(string) bool { return true }
	}
	if x.stored == nil {
		x.stored = func(time.Duration) {}
	}
	if x.tracer == nil {
		x.tracer = noop.NewTracerProvider().Tracer("")
	}
	x.log = cmp.Or(x.log, slog.New(slog.DiscardHandler))
	if x.now == nil {
		x.now = time.Now
	}
	x.running.byID = map[string]*execution{}
	if x.running.detached = cfg.Detached; x.running.detached == nil {
		x.running.detached = &intake.Places{Most: math.MaxInt, Share: func() bool { return false }}
	}
	if x.book = cfg.Ledger; x.book == nil {
		x.book = ledger.New(x.store, "", DefaultResultTTL, x.now)
	}
	if x.fetcher == nil {
		var err error
		if x.fetcher, err = fetch.New(nil); err != nil {
			return nil, err
		}
	}
	x.runs, x.cancelRuns = context.WithCancel(context.Background())
	x.background.Go(func() { x.repeat(sweepFirst, sweepEvery, "expired records", x.book.Sweep) })
	x.background.Go(x.sweepRuns)
	return x, nil
}

// Wait returns when no run goes on, those that no client waits for included, or
// with ctx's error.
func (x *Executor) Wait(ctx context.Context) error {
	if err := x.running.wait(ctx); err != nil {
		return fmt.Errorf("runs go on: %w", err)
	}
	return nil
}

// Life ends when CancelRuns is called.
func (x *Executor) Life() context.Context { return x.runs }

// CancelRuns ends every run that goes on, and each that begins after it. Their
// callers still get a result, with what there was until then.
func (x *Executor) CancelRuns() { x.cancelRuns() }

// Close cancels all runs and waits, within closeTime, until nothing of the Executor
// goes on.
func (x *Executor) Close() error {
	x.CancelRuns()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	swept := make(chan struct{})
	go func() { x.background.Wait(); close(swept) }()
	select {
	case <-swept:
	case <-ctx.Done():
	}
	return x.Wait(ctx)
}

// closeTime bounds the end of runs that are cancelled: the sandbox is killed, and
// what there is of a result stored.
const closeTime = 15 * time.Second
