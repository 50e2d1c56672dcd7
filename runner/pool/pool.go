package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

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
	// maxFillPause between starts that fail; the first one is a second.
	maxFillPause = 30 * time.Second
	// killTimeout bounds the wait for a sandbox's end; what takes longer goes on
	// in the background.
	killTimeout = 15 * time.Second
	// fillDelay is how long after a sandbox was taken the next one is started:
	// most runs are over by then, and had the cores for themselves.
	fillDelay = 200 * time.Millisecond
	// removeDelay is how long a sandbox whose run is over is left alone, while the
	// run's reply is made and sent. Its processes are dead already.
	removeDelay = 30 * time.Millisecond
	// DefaultStartTimeout bounds a sandbox's start until it is ready: a second on an
	// idle host, many on one where all cores start one.
	DefaultStartTimeout = 60 * time.Second
	// DefaultMaxAge of a sandbox that waits: what little it collects goes with it.
	DefaultMaxAge = 30 * time.Minute
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
	MaxAge       time.Duration // of one that waits; 0 is DefaultMaxAge
	StartTimeout time.Duration // of a start until the sandbox is ready; 0 is DefaultStartTimeout
	Held         bool          // nothing is started ahead until Begin is called
	Log          *slog.Logger
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
	failing  map[string]failures     // starts that failed since one did not, by environment
	demand   int                     // starts for runs that wait
	room     []chan struct{}         // those who wait for existing to fall, first come first served
	short    func(owner string) bool // see OnShort; may be nil

	closing context.Context
	close   context.CancelFunc
	work    sync.WaitGroup // starts and removals
}

// New returns a pool on the engine and begins to fill it.
func New(engine runner.Engine, o Options) *Pool {
	o.StartTimeout, o.MaxAge = cmp.Or(o.StartTimeout, DefaultStartTimeout), cmp.Or(o.MaxAge, DefaultMaxAge)
	if o.LimitsOf == nil {
		o.LimitsOf = func(string) runner.Limits { return o.Limits }
	}
	p := &Pool{engine: engine, options: o, log: o.Log, stocks: map[stockKey]*stock{}, failing: map[string]failures{}, kept: map[*conversation.Conversation]bool{}}
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
		for _, w := range s.warm {
			p.retire(w.Conversation)
		}
		s.warm = nil
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
	}
	out.Starting = p.existing - out.Warm - out.Running - out.Sessions - out.Removing
	return out
}

// take returns a sandbox that is ready and that nobody else has had. until
// bounds the wait for room; the zero time does not. owner is for whom. The caller gives it
// to Done.
func (p *Pool) take(ctx context.Context, owner string, env runner.Environment, l runner.Limits, until time.Time) (*conversation.Conversation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	s := p.stockFor(env, l)
	c := s.take()
	if c != nil {
		p.running++
		p.fillAfter(fillDelay)
		p.mu.Unlock()
		return c, nil
	}
	s.missed = true
	if s.proven || !s.byUse {
		p.grow(s)
	}
	claim := s.claim()
	if claim == nil {
		p.demand++
	}
	p.mu.Unlock()
	if claim != nil {
		select {
		case got := <-claim:
			if got.err == nil {
				return got.c, nil
			}
		case <-ctx.Done():
			p.offer(s, claim)
			return nil, ctx.Err()
		}
		p.mu.Lock()
		p.demand++
		p.mu.Unlock()
	}
	return p.startFor(ctx, s, owner, env, l, until)
}

// offer leaves the sandbox of a run that has gone, which is being started, to the next run
// that finds none warm. Otherwise callers who come and leave would each have one started, far
// more than may run at one time. If no run wants it, it is ended.
func (p *Pool) offer(s *stock, coming <-chan claimed) {
	f := &filling{hurry: make(chan struct{})}
	p.mu.Lock()
	s.filling = append(s.filling, f)
	p.mu.Unlock()
	p.work.Go(func() {
		got := <-coming
		p.mu.Lock()
		s.filling = slices.DeleteFunc(s.filling, func(o *filling) bool { return o == f })
		claim := f.claim
		p.mu.Unlock()
		if claim != nil {
			claim <- got
			return
		}
		p.giveUp(got)
	})
}

// giveUp ends what a run had claimed that is no more.
func (p *Pool) giveUp(got claimed) {
	if got.err == nil {
		p.Done(got.c, false)
	}
}

// startFor starts a sandbox for a run that waits, which is counted as demand,
// without anything done ahead: what the run needs, it imports.
//
// If the run leaves, the start goes on to its end, for the next run (see offer): so what
// exists is counted at all times.
func (p *Pool) startFor(ctx context.Context, s *stock, owner string, env runner.Environment, l runner.Limits, until time.Time) (*conversation.Conversation, error) {
	defer func() {
		p.mu.Lock()
		p.demand--
		p.fillAfter(fillDelay)
		p.mu.Unlock()
	}()
	if err := p.awaitRoom(ctx, owner, until); err != nil {
		return nil, err
	}
	started := make(chan claimed, 1)
	p.work.Go(func() {
		c, err := p.start(p.closing, cold(env), l, nil)
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.running++
			p.recovered()
			if s.byUse && !s.proven {
				s.proven = true
				p.grow(s)
			}
		}
		started <- claimed{c, err}
	})
	select {
	case got := <-started:
		return got.c, got.err
	case <-ctx.Done():
		p.offer(s, started)
		return nil, ctx.Err()
	}
}

// start returns a sandbox that is ready, in the room that the caller has taken. It
// gives the room back where it fails, and waits for no removal.
func (p *Pool) start(ctx context.Context, env runner.Environment, l runner.Limits, hurry <-chan struct{}) (*conversation.Conversation, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.StartTimeout)
	defer cancel()
	sandbox, err := p.engine.Start(ctx, env, l)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave()
		return nil, p.note(env, fmt.Errorf("start a sandbox: %w", err))
	}
	c := conversation.New(sandbox, p.log)
	err = c.AwaitReady(ctx, env.Kernel, hurry)
	if err != nil {
		err = fmt.Errorf("sandbox %s did not get ready: %w", sandbox.ID(), conversation.ExplainExit(err, p.log))
		if env.Kernel.Packages && errors.Is(ctx.Err(), context.DeadlineExceeded) { // which their caller pays for
			err = &runner.Error{Code: runner.CodePackages, Message: "the kernel does not start with these packages in time", Err: err}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = p.note(env, err); err != nil {
		p.retire(c)
		return nil, err
	}
	return c, nil
}

// Done takes back a sandbox whose run or session is over. It does not wait for its end if
// finished says that no process of a user's is left in it.
func (p *Pool) Done(c *conversation.Conversation, finished bool) {
	p.mu.Lock()
	if p.kept[c] {
		delete(p.kept, c)
	} else {
		p.running--
	}
	delay := removeDelay
	if len(p.room) > 0 || !finished {
		delay = 0
	}
	removed := p.retireAfter(delay, c)
	p.mu.Unlock()
	if finished {
		return
	}
	select {
	case <-removed:
	case <-time.After(killTimeout):
	case <-p.closing.Done():
	}
}

// retire removes a sandbox in the background. The lock is held.
func (p *Pool) retire(c *conversation.Conversation) { p.retireAfter(0, c) }

func (p *Pool) retireAfter(d time.Duration, c *conversation.Conversation) (removed <-chan struct{}) {
	p.removing++
	gone := make(chan struct{})
	p.work.Go(func() {
		defer close(gone)
		p.pause(d)
		c.Close(errRetired)
		p.kill(c.Sandbox)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.removing--
		p.leave()
		p.fill()
	})
	return gone
}

// pause waits, but not for a pool that is being closed.
func (p *Pool) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-p.closing.Done():
	}
}

// errRetired is the cause if the pool has ended a sandbox.
var errRetired = errors.New("the sandbox is removed")

// newPauses are those between tries of what failed: starts and removals.
func newPauses() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: maxFillPause}
}

// kill ends a sandbox, as often as it takes while the pool is open.
func (p *Pool) kill(s runner.Sandbox) {
	for pauses := newPauses(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		err := s.Kill(ctx)
		cancel()
		if err == nil {
			return
		}
		p.log.Error("a sandbox could not be ended", "sandbox", s.ID(), "error", err)
		if p.closing.Err() != nil {
			return
		}
		p.pause(pauses.NextBackOff())
	}
}

// awaitRoom takes room for one more sandbox, the oldest of another stock's if
// need be.
func (p *Pool) awaitRoom(ctx context.Context, owner string, until time.Time) error {
	p.mu.Lock()
	if p.enter() {
		p.mu.Unlock()
		return nil
	}
	short := len(p.room) >= p.removing && !p.evict() // else there will be room in a moment
	mine := make(chan struct{})
	p.room = append(p.room, mine)
	p.mu.Unlock()
	if !until.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = bounded
	}
	if p.awaitTurn(ctx, owner, mine, short) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.room, mine); i >= 0 {
		p.room = slices.Delete(p.room, i, i+1)
	} else {
		p.leave() // it had just been given
	}
	return &runner.Error{Code: runner.CodeFull, Message: "no room for another sandbox", RetryAfter: poolTick, Err: ctx.Err()}
}

// enter takes room if there is some. The lock is held.
func (p *Pool) enter() bool {
	if max := p.options.MaxSandboxes; max > 0 && p.existing >= max {
		return false
	}
	p.existing++
	return true
}

// leave gives room back, to whoever waits for it longest. The lock is held.
func (p *Pool) leave() {
	if len(p.room) > 0 {
		close(p.room[0])
		p.room = p.room[1:]
		return
	}
	p.existing--
}

// evict makes room by the end of a sandbox that waits: the oldest of the largest
// stock, which is another's than that of the run, whose own is empty. It reports whether
// there was one. The lock is held.
func (p *Pool) evict() bool {
	var largest *stock
	for _, s := range p.stocks {
		if largest == nil || len(s.warm) > len(largest.warm) {
			largest = s
		}
	}
	if largest == nil || len(largest.warm) == 0 {
		return false
	}
	p.retire(largest.warm[0].Conversation)
	largest.warm = largest.warm[1:]
	return true
}
