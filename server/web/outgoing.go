package web

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"
)

// outgoingKey is where a request's *Outgoing is kept in its echo.Context.
const outgoingKey = "outgoing"

// Outgoing is an answer on its way to its client. No handler waits for a client to read:
// what it writes is put into a backlog, and sent when the handler has returned, so that
// nothing but the backlog is in memory meanwhile. After a Flush it is sent while the
// handler goes on. Handlers that read a store or a sandbox while they write call Direct.
type Outgoing struct {
	http.ResponseWriter
	log    *slog.Logger
	unread *Unread
	owner  func() string
	gone   context.CancelFunc // ends the request's context

	mu        sync.Mutex
	backlog   Backlog
	counted   waiting // in unread
	isDirect  bool
	streaming bool // send goes on, in a goroutine
	ending    bool // nothing comes after the next Write
	over      bool // nothing comes after what is in backlog
	err       error
	released  bool
	kept      []func()

	wake  chan struct{} // has one element where send has something to look at
	ended chan struct{} // closed when the goroutine of send has returned
}

// Deliver has what a handler writes sent to its client, and answers its error. What waits is
// put into work's folders.
func (u *Unread) Deliver(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, gone := context.WithCancel(c.Request().Context())
		defer gone()
		o := &Outgoing{
			ResponseWriter: c.Response().Writer, log: u.log, unread: u, gone: gone,
			owner:   func() string { return Owner(c) },
			backlog: Backlog{Work: u.intake.Aside()},
			wake:    make(chan struct{}, 1), ended: make(chan struct{}),
		}
		c.SetRequest(c.Request().WithContext(ctx))
		c.Response().Writer = o
		c.Set(outgoingKey, o)
		defer o.close()
		if err := next(c); err != nil {
			c.Error(err)
		}
		return o.finish()
	}
}

func OutgoingOf(c echo.Context) *Outgoing {
	o, _ := c.Get(outgoingKey).(*Outgoing)
	return o
}

// Direct has what a handler writes from now on sent before Write returns. Nothing may
// have been written before.
func Direct(c echo.Context) {
	if o := OutgoingOf(c); o != nil {
		o.isDirect = true
	}
}

// Write takes all of p, or returns why the client gets no more.
func (o *Outgoing) Write(p []byte) (int, error) {
	if o.isDirect {
		return o.ResponseWriter.Write(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	known := o.backlog.Full
	o.backlog.Add(p)
	if o.backlog.Full != nil && known == nil {
		o.log.Warn("a reply that is not read is kept in memory", "error", o.backlog.Full)
	}
	o.over = o.over || o.ending
	o.count()
	signal(o.wake)
	return len(p), nil
}

// EndWithNext says that nothing comes after the next Write.
func (o *Outgoing) EndWithNext() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = true
}

// Waiting is how many bytes are not sent yet.
func (o *Outgoing) Waiting() int64 {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.backlog.Size()
}

// FlushError implements what http.ResponseController looks for.
func (o *Outgoing) FlushError() error {
	if o.isDirect {
		return o.flush()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && !o.streaming {
		o.streaming = true
		go func() {
			defer close(o.ended)
			o.send()
		}()
	}
	signal(o.wake)
	return o.err
}

// Unwrap is for deadlines.
func (o *Outgoing) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *Outgoing) flush() error {
	if err := http.NewResponseController(o.ResponseWriter).Flush(); err != nil {
		return &UnsentError{err}
	}
	return nil
}

// WhenSent calls f before the last piece is sent, or when the client gets no more. That
// piece is left out, so that who has it has what f gives back.
func (o *Outgoing) WhenSent(f func()) {
	if o == nil {
		f()
		return
	}
	o.mu.Lock()
	if !o.released {
		o.kept = append(o.kept, f)
		f = func() {}
	}
	o.mu.Unlock()
	f()
}

func (o *Outgoing) release() {
	o.mu.Lock()
	kept := o.kept
	o.released, o.kept = true, nil
	o.mu.Unlock()
	for _, f := range kept {
		f()
	}
}

// finish returns when all is sent, or why not.
func (o *Outgoing) finish() error {
	o.mu.Lock()
	o.over = true
	streaming := o.streaming
	o.mu.Unlock()
	if streaming {
		signal(o.wake)
		<-o.ended
	} else {
		o.send()
	}
	return o.err
}

// send sends what there is, until it is over. Nothing else uses the ResponseWriter, but
// for its header.
func (o *Outgoing) send() {
	for {
		piece, over, err := o.next()
		if err == nil && over {
			o.release()
		}
		switch {
		case err != nil:
		case len(piece) > 0:
			_, err = o.ResponseWriter.Write(piece)
		case o.streaming:
			err = o.flush()
		}
		if err != nil {
			o.fail(err)
			return
		}
		switch {
		case len(piece) > 0 && (!over || o.streaming):
		case over:
			return
		default:
			<-o.wake
		}
	}
}

// next takes what is to be sent next. over is whether nothing comes after it.
func (o *Outgoing) next() (piece []byte, over bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, true, o.err
	}
	piece, err = o.backlog.Next()
	o.count()
	return piece, o.over && o.backlog.Size() == 0, err
}

// fail is why the client gets no more.
func (o *Outgoing) fail(err error) {
	o.mu.Lock()
	o.err = err
	o.mu.Unlock()
	o.gone()
	o.release()
}

// count tells unread what waits; o.mu is held.
func (o *Outgoing) count() {
	now := waiting{o.counted.replies, o.backlog.spooled()}
	if now.bytes > 0 {
		now.replies = 1
	}
	if now != o.counted {
		o.unread.add(o.owner(), now.replies-o.counted.replies, now.bytes-o.counted.bytes)
		o.counted = now
	}
}

// close is the end of an answer, also of one that was broken off.
func (o *Outgoing) close() {
	o.mu.Lock()
	if o.err == nil {
		o.err = fs.ErrClosed
	}
	streaming := o.streaming
	o.mu.Unlock()
	if streaming {
		signal(o.wake)
		<-o.ended
	}
	o.release()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.backlog.Close(); err != nil {
		o.log.Error("a reply's temporary folder is left", "error", err)
	}
	if o.counted != (waiting{}) {
		o.unread.add(o.owner(), -o.counted.replies, -o.counted.bytes)
		o.counted = waiting{}
	}
}

// signal leaves c with its one element.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
