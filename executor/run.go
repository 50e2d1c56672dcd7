package executor

import (
	"bytes"
	"context"
	"io"
	"time"

	"notebox/executor/ledger"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// Run is what a caller has of an order: an execution of its own, which it starts, or one
// that it joins by its Key, here or at another service.
type Run struct {
	ID     string
	Limits runner.Limits // of the order

	executor *Executor
	owner    string
	own      *execution // nil if one is joined
	joined   *execution // that goes on in this process; else nil
}

// Owner is whose run it is.
func (r *Run) Owner() string { return r.owner }

// Joined reports whether the run is that of another request.
func (r *Run) Joined() bool { return r.own == nil }

// Start starts the execution if it is the caller's own; to hears of it while it goes on.
// Of one that was joined, to hears nothing: all there is to tell is in its reply.
func (r *Run) Start(to Listener) {
	if r.own != nil {
		r.executor.start(r.own, to)
	}
}

// Cancel ends the caller's own execution, which still has a result unless cause is ErrClientGone.
func (r *Run) Cancel(cause error) {
	if r.own != nil {
		r.own.cancel(cause)
	}
}

// Cause is why the caller's own execution was cancelled, or nil.
func (r *Run) Cause() error { return context.Cause(r.own.ctx) }

// Done is closed when the caller's own execution has ended.
func (r *Run) Done() <-chan struct{} { return r.own.done }

// Result is that of the caller's own execution, after Wait; nil if it has none.
func (r *Run) Result() *Result { return r.own.answer }

// Language is that of the program.
func (r *Run) Language() string { return r.own.plan.kernel().Language }

// Wait returns the reply of the execution, or why there is none. The end of ctx, which is
// the client's, cancels an execution that is not to go on without it; the wait is for its
// end all the same.
func (r *Run) Wait(ctx context.Context) (*Reply, error) {
	end, err := r.wait(ctx)
	switch {
	case err != nil || ctx.Err() != nil:
		return nil, r.executor.WhyNot(ctx, err)
	case end.problem != nil:
		return nil, end.problem
	}
	return &Reply{end, r.executor.book}, nil
}

func (r *Run) wait(ctx context.Context) (*ending, error) {
	e := r.joined
	if r.own != nil {
		e = r.own
	}
	switch {
	case e == nil:
		return r.waitElsewhere(ctx)
	case !e.detached:
		stop := context.AfterFunc(ctx, func() { e.cancel(ErrClientGone) })
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
func (r *Run) waitElsewhere(ctx context.Context) (*ending, error) {
	x := r.executor
	tick := time.NewTicker(joinEvery)
	defer tick.Stop()
	for {
		stands, failure, err := x.book.Look(ctx, r.owner, r.ID)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		case failure != nil:
			return &ending{problem: failure}, nil
		case stands == ledger.Ended:
			return &ending{key: ledger.ReplyKey(r.owner, r.ID)}, nil
		case stands != ledger.Running:
			return nil, &problem.Error{
				Status: problem.StatusUnavailable, RetryAfter: time.Second,
				Text: "the service that was to run this has not; send the request again to run it",
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		case <-x.runs.Done():
			return nil, serviceEnding(nil)
		}
	}
}

// Accepted returns when the order's files are there and the run was not refused at once: by
// then its end is kept, whatever it is, for whoever asks by its ID. hasEnded is whether it has
// come to it. The error is why the run was refused, or ctx's; the caller's own run is then
// cancelled unless it has a Key: nobody will ever know its ID.
func (r *Run) Accepted(ctx context.Context) (hasEnded bool, err error) {
	switch {
	case r.own != nil:
		err = r.own.settle(ctx)
		if err != nil && ctx.Err() != nil && r.own.position == nil {
			r.own.cancel(ErrClientGone)
		}
		return false, err
	case r.joined != nil:
		if p := r.joined.promise(); p != nil {
			return false, p
		}
		return false, nil
	}
	stands, _, err := r.executor.book.Look(ctx, r.owner, r.ID)
	return err == nil && stands == ledger.Ended, nil
}

// Leave discards an execution that was not started, whatever the reason. It may be
// called again.
func (r *Run) Leave() {
	if e := r.own; e != nil && !e.started {
		r.own = nil
		r.executor.discard(e)
	}
}

// SoFar is the text that the caller's own run has put out until now. Its images have no
// URLs yet.
func (r *Run) SoFar() string {
	events := r.own.plan.going.Load()
	if events == nil {
		return ""
	}
	executed := events.partial.executed()
	if executed == nil {
		return ""
	}
	result, err := notebook.NewDecoder(decodeLimits(r.own.plan.spec)).Decode(executed)
	if err != nil {
		return ""
	}
	return notebook.Shorten(notebook.Text(result, nil), maxText-markRoom)
}

// Reply is a result as JSON, in memory or in the store.
type Reply struct {
	end  *ending
	book *ledger.Book
}

// Stored reports whether it is read from the store.
func (r *Reply) Stored() bool { return r.end.reply == nil }

// Size is how many bytes of it are in memory.
func (r *Reply) Size() int64 { return int64(len(r.end.reply)) }

// Bytes is the reply if it is in memory; else nil.
func (r *Reply) Bytes() []byte { return r.end.reply }

// Open returns the reply and its length in bytes. It must be closed.
func (r *Reply) Open(ctx context.Context) (io.ReadCloser, int64, error) {
	if !r.Stored() {
		return io.NopCloser(bytes.NewReader(r.end.reply)), r.Size(), nil
	}
	return r.book.Open(ctx, r.end.key)
}
