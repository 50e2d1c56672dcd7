package web

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"notebox/executor/intake"
	"notebox/executor/problem"
)

// What waits on disk for clients that read slowly. A reply that was begun is always
// taken; an owner who is at a bound begins no other request until some is read. So a
// bound can be passed by the requests that were under way, of which admission takes so
// many.
const (
	// maxUnreadBytes is 60 replies of the largest output, once as text and once as
	// outputs: an honest client reads its own within seconds.
	maxUnreadBytes = 1 << 30
	// maxUnread bounds the replies that are too large for memory: each has a file open.
	maxUnread = 500
	// unreadRetry is when to come back: a client on a slow line has read some by then.
	unreadRetry = 10 * time.Second
)

// Unread counts what waits.
type Unread struct {
	share    func() bool // there are several owners: none takes all
	maxBytes int64
	intake   *intake.Intake // has the folders of what waits
	log      *slog.Logger

	mu      sync.Mutex
	all     waiting
	byOwner map[string]waiting // an owner without any is not in it
}

// NewUnread returns one. share reports whether there are several owners, none of whom takes
// all that may wait.
func NewUnread(share func() bool, work *intake.Intake, log *slog.Logger) *Unread {
	return &Unread{share: share, maxBytes: maxUnreadBytes, intake: work, log: log, byOwner: map[string]waiting{}}
}

// waiting is how much waits.
type waiting struct {
	replies int
	bytes   int64
}

func (w waiting) plus(replies int, bytes int64) waiting {
	return waiting{w.replies + replies, w.bytes + bytes}
}

// add changes what waits for an owner.
func (u *Unread) add(owner string, replies int, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = u.all.plus(replies, bytes)
	if u.byOwner[owner] = u.byOwner[owner].plus(replies, bytes); u.byOwner[owner] == (waiting{}) {
		delete(u.byOwner, owner)
	}
}

// Waits is what waits for all.
func (u *Unread) Waits() (bytes int64, replies int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all.bytes, u.all.replies
}

// Bound sets how many bytes may wait.
func (u *Unread) Bound(bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.maxBytes = bytes
}

// MayBegin refuses a request of an owner for whom too much waits: with several owners, as
// much as is left free for others. One for whom nothing waits is not refused for others.
func (u *Unread) MayBegin(owner string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	own, ok := u.byOwner[owner]
	if !ok {
		return nil
	}
	bytes, replies := u.maxBytes-u.all.bytes, maxUnread-u.all.replies // that are free
	if !u.share() {
		own = waiting{}
	}
	if own.bytes < bytes && own.replies < replies {
		return nil
	}
	return &problem.Error{
		Status: http.StatusTooManyRequests, RetryAfter: unreadRetry,
		Text: "too much of the replies to this caller waits to be read; read them, or close their connections",
	}
}
