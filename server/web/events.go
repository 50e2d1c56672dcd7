package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
)

const (
	// headDelay is how long the head of a stream, once the request is accepted,
	// waits for what happens first. A run that is refused at once (nothing starts, the queue is full) still has a
	// status of its own then; a client that waits for its place knows the run's
	// id all the same.
	headDelay = 200 * time.Millisecond
	// keepAlive is the time from one comment to the next, which holds the
	// connection open: proxies end what is silent for 30 s and more.
	keepAlive = 10 * time.Second
	// backlogSlack is what may wait for a client besides what Limits.Output makes:
	// the files' entries.
	backlogSlack = 1 << 20
)

// EventStream tells one client of a run, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): started,
// output, clear, file, and in the end done or error, each with one line of JSON.
// It is a listener.
//
// The run never waits for the client. What the client has not read waits in out, most
// of it on disk, at most as much as a run can put out in all, so that a slow line is no
// reason to lose anything. A client that does not read at all is noticed by the deadline
// of each write (see pace.go), one that is behind by more than that by the bytes.
type EventStream struct {
	response *echo.Response
	out      *Outgoing // response's
	id       string    // of the run
	most     int64     // bytes that wait
	gone     func()    // see StreamRun

	mu      sync.Mutex
	backlog [][]byte
	size    int64     // of backlog
	done    io.Reader // the last event's data, after backlog: a line of JSON; nil: there is none
	begun   bool      // the head is sent, or is about to be
	over    bool      // nothing comes after backlog
	err     error     // why the client did not get all

	right chan struct{} // has one element when the request is accepted
	wake  chan struct{} // has one element where write has something to look at
	ended chan struct{} // write has
}

// errLagging is a client whose backlog is full.
var errLagging = errors.New("the events wait for a client that does not read them")

// StreamRun is Stream of a run.
func (k *Kit) StreamRun(c echo.Context, id string, limits runner.Limits, gone func(), run func(executor.Listener) (io.Reader, error)) error {
	return k.Stream(c, id, 2*limits.Output+backlogSlack, gone, func(e *EventStream) (io.Reader, error) { return run(e) })
}

// Stream answers a request with events. do puts them, and returns the answer, a line of JSON
// which may be read until Stream returns. do must have put all events before it returns. At most so many bytes wait for the client. gone is
// called, perhaps more than once, if the client can get no more: it left, or does not keep
// up. It must not wait.
func (k *Kit) Stream(c echo.Context, id string, most int64, gone func(), do func(*EventStream) (io.Reader, error)) error {
	e := k.newEventStream(c, id, most, gone)
	defer e.end(nil)
	var answer io.Reader
	err := RecoverPanic(func(echo.Context) (err error) {
		answer, err = do(e)
		return err
	})(c)
	if ctx := c.Request().Context(); err != nil || ctx.Err() != nil {
		err = k.Executor.WhyNot(ctx, err)
		e.end(Problem(err))
		return err // which is answered as ever if nothing was sent
	}
	return e.finish(answer)
}

func (k *Kit) newEventStream(c echo.Context, id string, most int64, gone func()) *EventStream {
	e := &EventStream{
		response: c.Response(), out: OutgoingOf(c), id: id, most: most, gone: gone,
		right: make(chan struct{}, 1), wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go e.write(cmp.Or(k.Pace.Head, headDelay), cmp.Or(k.Pace.Alive, keepAlive))
	return e
}

func (e *EventStream) Accepted()                { signal(e.right) }
func (e *EventStream) Install(text string)      { e.Put("install", executor.Installing{Text: text}) }
func (e *EventStream) Output(entry any)         { e.Put("output", entry) }
func (e *EventStream) Clear(cell int)           { e.Put("clear", clearing{cell}) }
func (e *EventStream) File(entry executor.File) { e.Put("file", entry) }

// clearing is the data of a clear event.
type clearing struct {
	Cell int `json:"cell"`
}

// Put adds an event.
func (e *EventStream) Put(name string, data any) {
	raw, err := event(name, data)
	behind := e.out.Waiting()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.over:
	case err != nil:
		e.stop(err)
	case behind+e.size+int64(len(raw)) > e.most:
		e.stop(&problem.Error{Status: http.StatusRequestTimeout, Text: "the events were read too slowly", Cause: errLagging})
	default:
		e.add(raw)
	}
}

// finish adds the event done, whose data is a line of JSON, and waits as end does. The
// event is not bounded: without a stream the reply would be as large.
func (e *EventStream) finish(answer io.Reader) error {
	e.mu.Lock()
	if !e.over {
		e.done = answer
	}
	e.mu.Unlock()
	return e.end(nil)
}

// end waits until everything is on its way. If p is given and anything else was sent, p is
// the last event. The error is why the client does not get all.
func (e *EventStream) end(p *problem.Error) error {
	e.mu.Lock()
	if !e.over && p != nil && (e.begun || len(e.backlog) > 0) {
		e.add(errorEvent(p))
	}
	e.over = true
	signal(e.wake)
	e.mu.Unlock()
	<-e.ended
	return e.err
}

// stop ends the stream with an error in place of what waits.
func (e *EventStream) stop(err error) {
	e.backlog, e.size = nil, 0
	e.add(errorEvent(Problem(err)))
	e.over, e.err = true, err
	e.gone()
}

func (e *EventStream) add(raw []byte) {
	e.backlog = append(e.backlog, raw)
	e.size += int64(len(raw))
	signal(e.wake)
}

// write sends what there is, until it is over. Nothing else uses the response.
func (e *EventStream) write(head, alive time.Duration) {
	defer close(e.ended)
	tick := time.NewTicker(alive)
	defer tick.Stop()
	var first <-chan time.Time
	for over := false; !over; {
		var raw []byte
		select {
		case <-e.wake:
		case <-e.right:
			first = time.After(head)
		case <-first:
			e.send(nil)
		case <-tick.C:
			e.send([]byte(": keep-alive\n\n"))
		}
		for raw, over = e.next(); raw != nil; raw, over = e.next() {
			e.send(raw)
		}
		if over && e.done != nil {
			e.sendDone()
		}
		e.flush()
	}
}

// sendDone sends the event done as it is read. Its end is the stream's.
func (e *EventStream) sendDone() {
	e.mu.Lock()
	lost := e.err != nil
	e.begun = true
	e.mu.Unlock()
	if lost {
		return
	}
	e.send([]byte("event: done\ndata: "))
	if _, err := io.Copy(e.response, e.done); err != nil {
		e.lose(err)
		return
	}
	e.out.EndWithNext()
	e.send([]byte("\n"))
}

// next takes the oldest event. over is whether there will be none after it.
func (e *EventStream) next() (raw []byte, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.backlog) == 0 {
		return nil, e.over
	}
	raw, e.backlog[0] = e.backlog[0], nil
	e.backlog = e.backlog[1:]
	e.size -= int64(len(raw))
	e.begun = true
	return raw, false
}

// send writes raw, after the head if that was not sent yet.
func (e *EventStream) send(raw []byte) {
	if !e.begin() {
		return
	}
	if !e.response.Committed {
		h := e.response.Header()
		h.Set(echo.HeaderContentType, "text/event-stream")
		h.Set(echo.HeaderCacheControl, "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx
		started, _ := event("started", map[string]string{"id": e.id})
		raw = append(started, raw...)
	}
	if _, err := e.response.Write(raw); err != nil {
		e.lose(err)
	}
}

// begin reports whether anything may be sent: not if a refusal, whose status
// is still to be sent, came first.
func (e *EventStream) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = e.begun || !e.over
	return e.begun
}

func (e *EventStream) flush() {
	if !e.response.Committed {
		return
	}
	// Past echo, which has no error to return.
	if err := http.NewResponseController(e.response.Writer).Flush(); err != nil {
		e.lose(&UnsentError{Err: err})
	}
}

// lose ends a stream that nobody reads any more.
func (e *EventStream) lose(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.backlog, e.size = nil, 0
	e.over = true
	if e.err == nil {
		e.err = err
	}
	e.gone()
}

// event is one event, data as one line of JSON.
func event(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// errorEvent is what the answer would have been, had the head not been sent; with
// what its Retry-After would say.
func errorEvent(p *problem.Error) []byte {
	raw, _ := event("error", struct {
		ProblemBody
		RetryAfter int `json:"retry_after,omitempty"` // seconds
	}{
		ProblemBodyOf(p),
		int((p.RetryAfter + time.Second - 1) / time.Second),
	})
	return raw
}
