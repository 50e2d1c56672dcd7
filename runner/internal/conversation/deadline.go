package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

const (
	// RunSlack is what a run may take beyond its time limit until the sandbox
	// must have said how it ended: an interrupt, a kill, a slow host.
	RunSlack = 4 * time.Second
	// SessionSlack is the same in a session, and after a cancel in one. On a busy machine
	// its sandbox waits longer for what it interrupts (environments/harness/harness/job/clock.py),
	// so that no state is lost.
	SessionSlack = 14 * time.Second
	// CancelSlack is how long a cancelled job of single use has until its outcome, if it is
	// killed without an interrupt (see runner.ErrInterrupted). Any cancelled job has it from its
	// outcome to its end.
	CancelSlack = 2 * time.Second
	// CollectTimeout bounds how long files may take to come out, and be stored.
	CollectTimeout = 120 * time.Second
)

// keepTime ends the conversation if the job takes too long. The end of ctx cancels the job.
//
//  1. The outcome is there when the run's own time and the slack are over, or a slack
//     after a cancel.
//  2. All that follows, a session's new kernel among it, is there CollectTimeout after that.
//  3. If the run is cancelled, Receive waits for that for CancelSlack only, and what
//     comes then is dropped.
//
// A slow Sink takes none of this time, unless the mailbox is full.
func (j *Job) keepTime(ctx context.Context) {
	slack := RunSlack
	if j.c.session {
		slack = SessionSlack
	}
	deadline := time.NewTimer(j.spec.Limits.Timeout + slack)
	defer deadline.Stop()
	outcome, cancelled := j.outcome, ctx.Done() // nil when it was seen
	var abandon <-chan time.Time
	for {
		select {
		case <-j.finished:
			return
		case <-outcome:
			outcome = nil
			deadline.Reset(CollectTimeout)
		case <-cancelled:
			cancelled = nil
			if !j.HasOutcome() {
				gently := errors.Is(context.Cause(ctx), runner.ErrInterrupted)
				if gently || j.c.session {
					deadline.Reset(slack)
				} else {
					deadline.Reset(CancelSlack)
				}
				go j.cancel(gently)
			}
		case <-abandon:
			j.abandon()
		case <-deadline.C:
			err := fmt.Errorf("a job: %w", ErrDeadline)
			if j.expire(outcome, err) {
				j.c.Close(err)
				j.fail(err) // Close does not know a job after its done
				return
			}
		}
		if outcome == nil && ctx.Err() != nil && abandon == nil {
			abandon = time.After(CancelSlack)
		}
	}
}

// cancel tells the sandbox to end the job, unless its outcome has arrived: the next job may
// be under way then.
func (j *Job) cancel(gently bool) {
	var how []byte
	if gently {
		how = []byte(frame.Gently)
	}
	_ = j.c.write(func(w io.Writer) error { // an error shows on the reading side
		if j.HasOutcome() {
			return nil
		}
		return frame.Write(w, frame.KindCancel, how)
	})
}
