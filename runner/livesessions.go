package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// DefaultMaxSessions are open at one time: each pins the memory of an idle kernel.
	DefaultMaxSessions = 50
	// DefaultSessionWait is how long opening a session waits for room for its sandbox.
	DefaultSessionWait = 10 * time.Second
	// DefaultEvictAfter is how long a session must have been idle until it may end for
	// want of room: a model thinks that long between two steps.
	DefaultEvictAfter = time.Minute
	// minSessionRetry is the least that a caller without room is told to wait: sessions
	// are closed by their owners before they expire.
	minSessionRetry = 5 * time.Second
	// closeGrace is how long a run in a session that ends may take to say what it had.
	closeGrace = 5 * time.Second
)

// SessionOptions of LiveSessions. The zero value of a field is its default.
type SessionOptions struct {
	MaxSessions int           // open at one time, of all owners; 0 is DefaultMaxSessions
	MaxWait     time.Duration // of Open for room; 0 is DefaultSessionWait
	EvictAfter  time.Duration // idle, before a session may end for want of room; 0 is DefaultEvictAfter
	Shared      func() bool   // there are several owners, see sessionShare; nil: there is one
	RecordDir   string        // folder of what a later process has to know, see Restore; "": none goes on with them
	Log         *slog.Logger  // nil: slog.Default()
}

// LiveSessions are Sessions in sandboxes of a Pool.
type LiveSessions struct {
	pool      *Pool
	admission *Admission
	options   SessionOptions
	log       *slog.Logger
	records   *sessionRecords

	mu      sync.Mutex
	open    map[sessionKey]*LiveSession
	opening map[string]int // by owner
	closed  bool
	gone    *goneMemory
	opened  int
	ended   map[GoneReason]int
	work    sync.WaitGroup // ends of sessions
}

// sessionKey is what a session is found by: another owner's is none.
type sessionKey struct{ owner, id string }

// NewLiveSessions returns Sessions whose sandboxes are the pool's, and whose runs take
// their places from the admission, with all others.
func NewLiveSessions(pool *Pool, admission *Admission, o SessionOptions) *LiveSessions {
	if o.MaxSessions <= 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultSessionWait
	}
	if o.EvictAfter <= 0 {
		o.EvictAfter = DefaultEvictAfter
	}
	if o.Shared == nil {
		o.Shared = func() bool { return false }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	l := &LiveSessions{
		pool: pool, admission: admission, options: o, log: o.Log,
		open: map[sessionKey]*LiveSession{}, opening: map[string]int{},
		records: &sessionRecords{folder: o.RecordDir, log: o.Log},
		gone:    newGoneMemory(), ended: map[GoneReason]int{},
	}
	pool.OnShort(l.evictFor)
	return l
}

// Open implements Sessions. The end of ctx leaves nothing.
func (l *LiveSessions) Open(ctx context.Context, spec SessionSpec) (Session, error) {
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
func (l *LiveSessions) reserve(spec SessionSpec) error {
	if spec.ID == "" || spec.TTL <= 0 {
		return errors.New("open a session: it needs an id and a TTL")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	share := l.share()
	owned := share.owned[spec.Owner]
	switch {
	case l.closed:
		return &Error{Code: CodeUnavailable, Message: "the service is going down"}
	case l.open[sessionKey{spec.Owner, spec.ID}] != nil:
		return fmt.Errorf("open session %s: it is open", spec.ID)
	case spec.MaxOwned > 0 && owned >= spec.MaxOwned:
		return &Error{
			Code:       CodeShare,
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

func (l *LiveSessions) unreserve(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opening[owner]--; l.opening[owner] == 0 {
		delete(l.opening, owner)
	}
}

// nextExpiry is how long it is until a session of an owner, or of anyone where that is
// "", ends by itself. The lock is held.
func (l *LiveSessions) nextExpiry(owner string) time.Duration {
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

// start makes the session, in place of whose sandbox another is taken where that had
// ended while it waited.
func (l *LiveSessions) start(ctx context.Context, spec SessionSpec) (*LiveSession, error) {
	until := time.Now().Add(l.options.MaxWait)
	for {
		c, err := l.pool.takeSession(ctx, spec.Owner, spec.Environment, spec.Limits, until)
		if err != nil {
			return nil, err
		}
		s := newLiveSession(l, c, spec)
		if err = s.begin(ctx, spec.Inputs); err == nil {
			return s, nil
		}
		l.pool.done(c)
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// add makes a session known, from when on it can be found and ends by itself. It
// reports whether there is to be any.
func (l *LiveSessions) add(s *LiveSession) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.open[s.key()] = s
	l.opened++
	return true
}

// remove forgets a session that is over, but for its end.
func (l *LiveSessions) remove(s *LiveSession, end *GoneError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[s.key()] == s {
		delete(l.open, s.key())
		l.ended[end.Reason]++
		l.gone.add(s.key(), end)
	}
}

// Find implements Sessions.
func (l *LiveSessions) Find(owner, id string) (Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sessionKey{owner, id}
	if s := l.open[key]; s != nil {
		if end := s.use.end(); end != nil {
			return nil, end
		}
		return s, nil
	}
	if end := l.gone.find(key); end != nil {
		return nil, end
	}
	return nil, ErrNoSession
}

// List implements Sessions.
func (l *LiveSessions) List(owner string) []SessionInfo {
	out := []SessionInfo{}
	for _, s := range l.all() {
		if s.spec.Owner == owner && s.use.end() == nil {
			out = append(out, s.Info())
		}
	}
	slices.SortFunc(out, func(a, b SessionInfo) int { return a.Created.Compare(b.Created) })
	return out
}

func (l *LiveSessions) all() []*LiveSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*LiveSession, 0, len(l.open))
	for _, s := range l.open {
		out = append(out, s)
	}
	return out
}

// Close ends all sessions, and returns when that is done, or ctx ends. There are no more
// from then on.
func (l *LiveSessions) Close(ctx context.Context) error {
	l.shut()
	for _, s := range l.all() {
		s.finish(&GoneError{Reason: GoneClosed, At: time.Now()})
	}
	return l.settled(ctx)
}

// shut has Open refuse.
func (l *LiveSessions) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// settled returns when all ends of sessions are done.
func (l *LiveSessions) settled(ctx context.Context) error {
	done := make(chan struct{})
	go func() { l.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the sessions: %w", ctx.Err())
	}
}
