package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/internal/conversation"
	"notebox/runner/pool"
)

const (
	// DefaultMaxSessions are open at one time: each pins the memory of an idle kernel.
	DefaultMaxSessions = 50
	// defaultMaxWait is how long opening a session waits for room for its sandbox.
	defaultMaxWait = 10 * time.Second
	// evictAfter is how long a session must have been idle until it may end for want of
	// room: a model thinks that long between two steps.
	evictAfter = time.Minute
	// minSessionRetry is the least that a caller without room is told to wait: sessions
	// are closed by their owners before they expire.
	minSessionRetry = 5 * time.Second
	// closeGrace is how long a run in a session that ends may take to say what it had.
	closeGrace = 5 * time.Second
)

// Options of Sessions. The zero value of a field is its default.
type Options struct {
	MaxSessions int           // open at one time, of all owners; 0 is DefaultMaxSessions
	MaxWait     time.Duration // of Open for room; 0 is defaultMaxWait
	Shared      func() bool   // there are several owners, see share; nil: there is one
	RecordDir   string        // folder of what a later process has to know, see Restore; "": none goes on with them
	Log         *slog.Logger  // nil: slog.Default()
}

// Sessions are runner.Sessions in sandboxes of a Pool.
type Sessions struct {
	pool      *pool.Pool
	admission *admission.Admission
	options   Options
	log       *slog.Logger
	records   *records

	mu      sync.Mutex
	open    map[key]*Session
	opening map[string]int // by owner
	closed  bool
	gone    *goneMemory
	opened  int
	ended   map[runner.GoneReason]int
	work    sync.WaitGroup // ends of sessions
}

// key is what a session is found by: another owner's is none.
type key struct{ owner, id string }

// New returns Sessions whose sandboxes are the pool's, and whose runs take
// their places from the admission, with all others.
func New(pool *pool.Pool, admission *admission.Admission, o Options) *Sessions {
	o.MaxSessions, o.MaxWait = cmp.Or(o.MaxSessions, DefaultMaxSessions), cmp.Or(o.MaxWait, defaultMaxWait)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Shared == nil {
		o.Shared = func() bool { return false }
	}
	l := &Sessions{
		pool: pool, admission: admission, options: o, log: o.Log,
		open: map[key]*Session{}, opening: map[string]int{},
		records: &records{folder: o.RecordDir, log: o.Log},
		gone:    newGoneMemory(), ended: map[runner.GoneReason]int{},
	}
	pool.OnShort(l.evictFor)
	return l
}

// Open implements Sessions. The end of ctx leaves nothing.
func (l *Sessions) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	if err := l.reserve(spec); err != nil {
		return nil, err
	}
	defer l.unreserve(spec.Owner)
	s, err := l.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", spec.ID, err)
	}
	return s, nil
}

// reserve takes the place of a session that is to be opened.
func (l *Sessions) reserve(spec runner.SessionSpec) error {
	if spec.ID == "" || spec.TTL <= 0 {
		return errors.New("open a session: it needs an id and a TTL")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	share := l.share()
	owned := share.owned[spec.Owner]
	switch {
	case l.closed:
		return &runner.Error{Code: runner.CodeUnavailable, Message: "the service is going down"}
	case l.open[key{spec.Owner, spec.ID}] != nil:
		return fmt.Errorf("open session %s: it is open", spec.ID)
	case spec.MaxOwned > 0 && owned >= spec.MaxOwned:
		return &runner.Error{
			Code:       runner.CodeShare,
			Message:    fmt.Sprintf("this caller has %d sessions open and may have %d: close one", owned, spec.MaxOwned),
			RetryAfter: l.nextExpiry(spec.Owner),
		}
	}
	if err := l.makeRoom(spec.Owner, share); err != nil {
		return err
	}
	l.opening[spec.Owner]++
	return nil
}

func (l *Sessions) unreserve(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opening[owner]--; l.opening[owner] == 0 {
		delete(l.opening, owner)
	}
}

// nextExpiry is how long it is until the next session of an owner ends by itself; "" stands
// for all owners. The lock is held.
func (l *Sessions) nextExpiry(owner string) time.Duration {
	next := time.Duration(0)
	for key, s := range l.open {
		if owner != "" && key.owner != owner {
			continue
		}
		if left := time.Until(s.use.expiry()); next == 0 || left < next {
			next = left
		}
	}
	return max(next, minSessionRetry)
}

// start makes the session. It replaces a sandbox that died while it was waiting in the
// pool.
func (l *Sessions) start(ctx context.Context, spec runner.SessionSpec) (*Session, error) {
	until := time.Now().Add(l.options.MaxWait)
	for {
		c, err := l.pool.TakeSession(ctx, spec.Owner, spec.Environment, spec.Limits, until)
		if err != nil {
			return nil, err
		}
		s := newSession(l, c, spec)
		if err = s.begin(ctx, spec.Inputs); err == nil {
			return s, nil
		}
		l.pool.Done(c, false)
		if !errors.Is(err, conversation.ErrGone) {
			return nil, err
		}
	}
}

// add makes a session known, so that Find returns it. It reports false if the service is
// going down.
func (l *Sessions) add(s *Session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[s.key()] = s
	l.opened++
	return true
}

// remove forgets a session that is over, and remembers how it ended.
func (l *Sessions) remove(s *Session, end *runner.GoneError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[s.key()] == s {
		delete(l.open, s.key())
		l.ended[end.Reason]++
		l.gone.add(s.key(), end)
	}
}

// Find implements Sessions.
func (l *Sessions) Find(owner, id string) (runner.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := key{owner, id}
	if s := l.open[key]; s != nil {
		if end := s.use.end(); end != nil {
			return nil, end
		}
		return s, nil
	}
	if end := l.gone.find(key); end != nil {
		return nil, end
	}
	return nil, runner.ErrNoSession
}

// List implements Sessions.
func (l *Sessions) List(owner string) []runner.SessionInfo {
	out := []runner.SessionInfo{}
	for _, s := range l.all() {
		if s.spec.Owner == owner && s.use.end() == nil {
			out = append(out, s.Info())
		}
	}
	slices.SortFunc(out, func(a, b runner.SessionInfo) int { return a.Created.Compare(b.Created) })
	return out
}

func (l *Sessions) all() []*Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.open))
}

// Close ends all sessions, and returns when that is done, or ctx ends. There are no more
// from then on.
func (l *Sessions) Close(ctx context.Context) error {
	l.shut()
	for _, s := range l.all() {
		s.finish(&runner.GoneError{Reason: runner.GoneClosed, At: time.Now()})
	}
	return l.settled(ctx)
}

// shut makes Open refuse.
func (l *Sessions) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// settled returns when all ends of sessions are done.
func (l *Sessions) settled(ctx context.Context) error {
	done := make(chan struct{})
	go func() { l.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the sessions: %w", ctx.Err())
	}
}
