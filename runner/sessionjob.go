package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"notebox/runner/internal/frame"
)

// maxMailbox is how many bytes of a job may wait for its Sink: all that an honest
// run with the default limits prints, so that a slow Sink holds up nobody.
const maxMailbox = 16 << 20

// errAbandoned is that nobody takes the rest of a job.
var errAbandoned = errors.New("the rest of the job is not wanted")

// sessionJob is the frames of one job in a session, between the one who reads the
// stream and the reception.
//
// Where its mailbox is full, the stream waits for the Sink: so memory is
// bounded. File operations wait with it then, but not for ever: the job's
// deadlines go on, and at the last of them the session is lost.
type sessionJob struct {
	maxEvent int64         // bytes
	said     chan struct{} // closed when the outcome has arrived
	finished chan struct{} // closed when done has arrived, or the link is over

	mu        sync.Mutex
	changed   *sync.Cond
	frames    []received
	bytes     int // of frames
	err       error
	done      bool
	abandoned bool
}

func newSessionJob(spec Spec) *sessionJob {
	j := &sessionJob{maxEvent: spec.maxEvent(), said: make(chan struct{}), finished: make(chan struct{})}
	j.changed = sync.NewCond(&j.mu)
	return j
}

// deliver puts a frame into the mailbox, when there is room for it.
func (j *sessionJob) deliver(kind frame.Kind, payload []byte) error {
	switch kind {
	case frame.KindEvent:
	case frame.KindOutcome:
		if j.hasOutcome() {
			return errors.New("two outcomes of one job")
		}
		close(j.said)
	case frame.KindNotebookOut, frame.KindFile, frame.KindFileData, frame.KindFileEnd, frame.KindSkipped, frame.KindDone:
		if !j.hasOutcome() {
			return fmt.Errorf("frame %q before the outcome", rune(kind))
		}
	default:
		return fmt.Errorf("frame %q in a job", rune(kind))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	size := len(payload) + frameOverhead
	for len(j.frames) > 0 && j.bytes+size > maxMailbox && !j.abandoned && j.err == nil {
		j.changed.Wait()
	}
	if !j.abandoned && j.err == nil {
		j.frames, j.bytes = append(j.frames, received{kind, payload, nil}), j.bytes+size
	}
	if kind == frame.KindDone {
		j.finish()
	}
	j.changed.Broadcast()
	return nil
}

func (j *sessionJob) hasOutcome() bool {
	select {
	case <-j.said:
		return true
	default:
		return false
	}
}

// frameOverhead is what a frame in a mailbox takes beside its payload, bytes.
const frameOverhead = 64

// finish says that no more comes. The lock is held.
func (j *sessionJob) finish() {
	if !j.done {
		j.done = true
		close(j.finished)
	}
}

// next takes the next frame out, and waits for it.
func (j *sessionJob) next(int64) (frame.Kind, []byte, error) {
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

// fail ends the job with the link.
func (j *sessionJob) fail(cause error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = cause
	j.finish()
	j.changed.Broadcast()
}

// abandon has what arrives of the job from now on dropped.
func (j *sessionJob) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned, j.frames, j.bytes = true, nil, 0
	j.changed.Broadcast()
}

// ended waits until the sandbox is done with the job.
func (j *sessionJob) ended(ctx context.Context) {
	select {
	case <-j.finished:
	case <-ctx.Done():
	}
}
