package server

import (
	"context"
	"net/http"
	"time"

	"notebox/runner"
)

// ticket is what a request has of an execution: its own, which it starts, or one
// that it joins by its Idempotency-Key, here or at another service.
type ticket struct {
	server *Server
	id     string
	owner  string
	limits runner.Limits // of the request
	own    *execution    // nil where one is joined
	joined *execution    // that goes on in this process; else nil
}

// start starts the execution if it is the ticket's own; to hears of it while it goes
// on. Of one that was joined, to hears nothing: all there is to tell is in its reply.
func (t *ticket) start(to listener) {
	if t.own != nil {
		t.server.start(t.own, to)
	}
}

// wait returns how the execution ended. The end of ctx, which is the client's, cancels
// an execution that is not to go on without it; the wait is for its end all the same.
func (t *ticket) wait(ctx context.Context) (*ending, error) {
	e := t.joined
	if t.own != nil {
		e = t.own
	}
	switch {
	case e == nil:
		return t.waitElsewhere(ctx)
	case !e.detached:
		stop := context.AfterFunc(ctx, func() { e.cancel(errClientGone) })
		defer stop()
		<-e.done
	default: // a problem is told at once, a reply when it is stored
		select {
		case <-e.known:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if e.failed() {
			return &ending{problem: e.refusal}, nil
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.ending, nil
}

// waitElsewhere waits by the records. What was sent is not kept for that time: if the
// service that runs it dies, the client has to send it again.
func (t *ticket) waitElsewhere(ctx context.Context) (*ending, error) {
	s := t.server
	tick := time.NewTicker(joinEvery)
	defer tick.Stop()
	for {
		stands, failure, err := s.book.look(ctx, t.owner, t.id)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		case failure != nil:
			return &ending{problem: failure}, nil
		case stands == ended:
			return &ending{key: executionKey(t.owner, t.id, recordReply)}, nil
		case stands != goesOn:
			return nil, &problem{
				status: http.StatusServiceUnavailable, retryAfter: time.Second,
				text: "the service that was to run this has not; send the request again to run it",
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		case <-s.runs.Done():
			return nil, &problem{status: http.StatusServiceUnavailable, text: "the service is ending"}
		}
	}
}

// leave discards an execution that was not started, whatever the reason. It may be
// called again.
func (t *ticket) leave() {
	if e := t.own; e != nil && !e.started {
		t.own = nil
		t.server.discard(e)
	}
}
