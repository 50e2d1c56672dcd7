package conversation

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

const (
	// sessionMailbox is how many bytes of a session's job may wait for its Sink: all that
	// an honest run with the default limits prints. A slow Sink then holds up no file
	// operation of the session.
	sessionMailbox = 16 << 20
	// singleMailbox is the same in single use, where a slow Sink holds up its own run
	// alone: some chunks of a file.
	singleMailbox = 2 << 20
	// frameOverhead is what a frame in a mailbox takes beside its payload, bytes.
	frameOverhead = 64
)

// errAbandoned is that nobody takes the rest of a job.
var errAbandoned = errors.New("the rest of the job is not wanted")

// Job is one job of a conversation. It keeps the frames that were read off the stream in a
// mailbox until the reception takes them.
//
// If the mailbox is full, the stream waits for the Sink: so memory is bounded. A session's
// file operations wait with it then, but not for ever: keepTime goes on, and ends the
// conversation at the last deadline.
type Job struct {
	c        *Conversation
	spec     runner.Spec
	began    time.Time     // before it was sent
	network  *uplink       // of this job alone; nil in a session
	room     int           // of the mailbox, bytes
	outcome  chan struct{} // closed when the outcome arrives
	finished chan struct{} // closed when done arrives or the conversation is over
	late     atomic.Bool   // see expire
	answered bool          // see Answered

	mu        sync.Mutex
	changed   *sync.Cond
	frames    []received
	bytes     int   // of frames
	err       error // why the conversation was over before done arrived
	abandoned bool  // nobody takes frames any more
}

// received is a frame.
type received struct {
	kind    frame.Kind
	payload []byte
}

func newJob(c *Conversation, spec runner.Spec, began time.Time) *Job {
	j := &Job{c: c, spec: spec, began: began, room: singleMailbox, outcome: make(chan struct{}), finished: make(chan struct{})}
	if c.session {
		j.room = sessionMailbox
	}
	j.changed = sync.NewCond(&j.mu)
	return j
}

// deliver puts a frame into the mailbox, when there is room for it. Only one goroutine
// delivers.
func (j *Job) deliver(kind frame.Kind, payload []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if kind == frame.KindOutcome && !j.HasOutcome() {
		close(j.outcome)
	}
	size := len(payload) + frameOverhead
	for len(j.frames) > 0 && j.bytes+size > j.room && !j.abandoned && j.err == nil {
		j.changed.Wait()
	}
	if !j.abandoned && j.err == nil {
		j.frames, j.bytes = append(j.frames, received{kind, payload}), j.bytes+size
	}
	if kind == frame.KindDone && j.HasOutcome() && j.err == nil && !closed(j.finished) {
		close(j.finished)
	}
	j.changed.Broadcast()
}

// HasOutcome reports whether the outcome has arrived.
func (j *Job) HasOutcome() bool { return closed(j.outcome) }

// Answered reports whether the outcome that Receive returned is the sandbox's own.
func (j *Job) Answered() bool { return j.answered }

// Finished is closed when the sandbox is done with the job, or the conversation is over.
func (j *Job) Finished() <-chan struct{} { return j.finished }

// Done reports whether the sandbox has said that no process of the job is left.
func (j *Job) Done() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return closed(j.finished) && j.err == nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// next takes the next frame out, and waits for it.
func (j *Job) next() (frame.Kind, []byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		switch {
		case j.abandoned:
			return 0, nil, errAbandoned
		case len(j.frames) > 0:
			first := j.frames[0]
			j.frames[0] = received{}
			j.frames, j.bytes = j.frames[1:], j.bytes-len(first.payload)-frameOverhead
			j.changed.Broadcast()
			return first.kind, first.payload, nil
		case j.err != nil:
			return 0, nil, j.err
		}
		j.changed.Wait()
	}
}

// fail ends the job with the conversation.
func (j *Job) fail(cause error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !closed(j.finished) {
		j.err = cause
		close(j.finished)
	}
	j.changed.Broadcast()
}

// expire has what arrives from now on be too late, unless the job has ended, or the outcome
// that was waited for is there; nil: none was. It reports whether that is so.
func (j *Job) expire(outcome <-chan struct{}, cause error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if closed(j.finished) || outcome != nil && closed(outcome) {
		return false
	}
	j.late.Store(true)
	j.err = cause
	j.changed.Broadcast()
	return true
}

// abandon has what arrives of the job from now on dropped.
func (j *Job) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned, j.frames, j.bytes = true, nil, 0
	j.changed.Broadcast()
}

// Receive takes what comes of the job, to its end. It always yields an outcome once the
// code may have started, unless the service itself is at fault. What the sandbox
// had sent is kept also if its end is not a good one. The end of ctx cancels the job, unless
// its cause is what ended the conversation.
//
// events' time for files is CollectTimeout from the outcome on. What it has not stored then
// is left behind.
func (j *Job) Receive(ctx context.Context, events runner.Sink) (*runner.Outcome, error) {
	defer j.network.wait()
	defer j.network.close()
	defer j.abandon()                              // of what comes, nothing is taken any more
	taking, giveUp := context.WithCancelCause(ctx) // of the Sink
	defer giveUp(nil)
	go j.keepTime(ctx)
	r := &reception{job: j, events: events, began: time.Now()}
	defer r.tell()
	stored := func() bool { return true }
	err := r.takeAll(taking, func() {
		stored = time.AfterFunc(CollectTimeout, func() { giveUp(errAbandoned) }).Stop
	})
	stored()
	j.answered = r.out.Status != ""
	switch {
	case err == nil:
		return &r.out, nil
	case !errors.Is(err, errAbandoned): // what came was not in order, or nothing comes
		j.c.Close(err)
	}
	cancelled := ctx.Err() != nil && !Lost(context.Cause(ctx))
	return r.cutOff(cancelled, err, j.late.Load())
}

// Lost reports whether an error is the end of a session that nobody wanted.
func Lost(err error) bool {
	end := (*runner.GoneError)(nil)
	return errors.As(err, &end) && end.Reason == runner.GoneLost
}
