package pool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

const (
	// poolTick is how often a pool looks at the age of what waits in it, and
	// whether demand has fallen.
	poolTick = 10 * time.Second
	// shrinkAfter is how long nobody must have missed a warm sandbox until there
	// is one less: bursts come again within minutes.
	shrinkAfter = 2 * time.Minute
	// fillDelay is how long after a sandbox was taken the next one is started:
	// most runs are over by then, and had the cores for themselves.
	fillDelay = 200 * time.Millisecond
	// DefaultStartTimeout bounds a sandbox's start until it is ready: a second on an
	// idle host, many on one where all cores start one.
	DefaultStartTimeout = 60 * time.Second
	// maxAge of a sandbox that waits: what little it collects goes with it.
	maxAge = 30 * time.Minute
)

// StockOptions say how many sandboxes of an environment are kept ready.
type StockOptions struct {
	Environment runner.Environment
	Min, Max    int // grown from Min to Max while runs find none, and back
}

// Options of a Pool.
type Options struct {
	Limits runner.Limits // of the sandboxes that wait; runs with others start their own
	Stocks []StockOptions
	// LimitsOf are those of the sandboxes of an environment, by its name; nil: Limits.
	LimitsOf func(environment string) runner.Limits
	// ByUse is how many sandboxes may wait in all, of environments without a stock of
	// their own that runs have asked for lately.
	ByUse        int
	MaxSandboxes int           // that exist: starting, warm, running, being removed; 0 is no bound
	FillAtOnce   int           // starts for the stocks at one time while nothing runs; 0 is 1
	StartTimeout time.Duration // of a start until the sandbox is ready; 0 is DefaultStartTimeout
	Held         bool          // nothing is started ahead until Begin is called
	// PerOwner gives each owner of runs sandboxes of its own, see runner.Environment. Those
	// that wait of the Stocks are nobody's then.
	PerOwner bool
	Log      *slog.Logger
}

// Pool is a Runner that gives each run a sandbox of its own. It keeps sandboxes started and
// warm, and bounds how many there are.
type Pool struct {
	engine  runner.Engine
	options Options
	log     *slog.Logger

	mu       sync.Mutex
	stocks   map[stockKey]*stock
	existing int
	running  int
	kept     map[*conversation.Conversation]bool // those of sessions
	removing int
	failing  map[string]failures // starts that failed since one did not, by environment
	demand   int                 // starts for runs that wait
	room     []chan struct{}     // those who wait for existing to fall, first come first served
	short    func(owner string)  // see OnShort

	closing context.Context
	close   context.CancelFunc
	work    sync.WaitGroup // starts and removals
}

// New returns a pool on the engine and begins to fill it.
func New(engine runner.Engine, o Options) *Pool {
	o.StartTimeout = cmp.Or(o.StartTimeout, DefaultStartTimeout)
	if o.LimitsOf == nil {
		o.LimitsOf = func(string) runner.Limits { return o.Limits }
	}
	p := &Pool{engine: engine, options: o, log: o.Log, stocks: map[stockKey]*stock{}, failing: map[string]failures{}, kept: map[*conversation.Conversation]bool{}, short: func(string) {}}
	p.closing, p.close = context.WithCancel(context.Background())
	for _, s := range o.Stocks {
		p.stocks[keyOf(s.Environment)] = newStock(s, o.LimitsOf(s.Environment.Name))
	}
	if o.Held {
		p.demand = 1
	}
	if len(o.Stocks) > 0 || o.ByUse > 0 {
		p.work.Go(p.watch)
		p.mu.Lock()
		p.fill()
		p.mu.Unlock()
	}
	return p
}

// Begin has a pool that was Held fill its stocks. It is called once.
func (p *Pool) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.demand--
	p.fill()
}

// Close removes what waits and returns when nothing is left that the pool has
// started, or ctx ends. Runs must have ended.
func (p *Pool) Close(ctx context.Context) error {
	p.close()
	p.mu.Lock()
	for _, s := range p.stocks {
		p.trim(s, 0)
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { p.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the pool: %w", ctx.Err())
	}
}

// Stats is what a pool holds.
type Stats struct {
	Size      int `json:"size"`      // how many are to be warm
	Warm      int `json:"warm"`      // ready, waiting for a run
	WarmCells int `json:"-"`         // of these, those that are a runner.Cell
	Starting  int `json:"starting"`  // for the stock or for runs
	Running   int `json:"running"`   //
	Sessions  int `json:"sessions"`  // open, whether something runs in them or not
	Removing  int `json:"removing"`  // ended, and not gone yet
	Sandboxes int `json:"sandboxes"` // all that exist
}

// Stats returns what there is now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Stats{Running: p.running, Sessions: len(p.kept), Removing: p.removing, Sandboxes: p.existing}
	for _, s := range p.stocks {
		out.Size += s.target
		out.Warm += len(s.warm)
		for _, w := range s.warm {
			if _, ok := w.Sandbox.(runner.Cell); ok {
				out.WarmCells++
			}
		}
	}
	out.Starting = p.existing - out.Warm - out.Running - out.Sessions - out.Removing
	return out
}
