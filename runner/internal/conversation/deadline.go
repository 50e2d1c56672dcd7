package conversation

import (
	"fmt"
	"sync"
	"time"

	"notebox/runner/internal/frame"
)

const (
	// RunSlack is what a run may take beyond its time limit until the sandbox
	// must have said how it ended: an interrupt, a kill, a slow host.
	RunSlack = 4 * time.Second
	// SessionSlack is the same in a session. On a busy machine its sandbox waits longer
	// for what it interrupts (environments/harness/harness/job/clock.py), so that no state is lost.
	SessionSlack = 14 * time.Second
	// CancelSlack is the same after a cancel in single use, which needs no interrupt; and
	// what follows the outcome of a job that is cancelled.
	CancelSlack = 2 * time.Second
	// CollectTimeout bounds how long files may take to come out, and be stored.
	CollectTimeout = 120 * time.Second
)

// jobDeadline is the time that a job has. At its end the conversation is over.
//
//  1. The outcome is there when the run's own time and the slack are over, or a slack
//     after a cancel.
//  2. All that follows, a session's new kernel among it, is there CollectTimeout after that.
//  3. If the run is cancelled, it waits for that for CancelSlack only, and what
//     comes then is dropped.
//
// A Sink that is slow has no part in it, but for a mailbox that is full.
type jobDeadline struct {
	job   *Job
	slack time.Duration // after a cancel
	late  func() bool
	set   func(time.Duration)
	stop  chan struct{} // closed when the run is over

	mu   sync.Mutex
	said bool // the outcome has arrived
}

// newJobDeadline begins the time of a job that was sent.
func newJobDeadline(job *Job) *jobDeadline {
	d := &jobDeadline{job: job, slack: CancelSlack, stop: make(chan struct{})}
	d.late, d.set = newDeadline(func() { job.c.Close(fmt.Errorf("a job: %w", ErrDeadline)) })
	slack := RunSlack
	if job.c.session {
		slack, d.slack = SessionSlack, SessionSlack
	}
	d.set(job.spec.Limits.Timeout + slack)
	go d.follow()
	return d
}

// follow watches the job from its outcome on.
func (d *jobDeadline) follow() {
	select {
	case <-d.job.said:
		d.mu.Lock()
		d.said = true
		d.set(CollectTimeout)
		d.mu.Unlock()
		<-d.job.finished
	case <-d.job.finished:
	}
	d.set(0)
}

// cancel has the job end.
func (d *jobDeadline) cancel() {
	d.mu.Lock()
	said := d.said
	if !said {
		d.set(d.slack)
	}
	d.mu.Unlock()
	if !said {
		_ = d.job.c.send(frame.KindCancel) // an error shows on the reading side
	}
	select {
	case <-d.job.said:
	case <-d.job.finished:
	case <-d.stop:
		return
	}
	select {
	case <-d.job.finished:
	case <-d.stop:
	case <-time.After(CancelSlack):
		d.job.abandon()
	}
}

// leave says that nobody waits for the job any more. Its time goes on.
func (d *jobDeadline) leave() { close(d.stop) }

// newDeadline returns a clock that calls expire once when its time is over, a
// function that reports whether it did, and one that sets the time anew from
// now; 0 stops it for good.
func newDeadline(expire func()) (expired func() bool, set func(time.Duration)) {
	var mu sync.Mutex
	var timer *time.Timer
	over, stopped := false, false
	times := 0 // that set was called: a timer that fires late must not count
	expired = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return over
	}
	set = func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
		if stopped = stopped || d == 0; stopped || over {
			return
		}
		times++
		mine := times
		timer = time.AfterFunc(d, func() {
			mu.Lock()
			now := !stopped && mine == times
			over = over || now
			mu.Unlock()
			if now {
				expire()
			}
		})
	}
	return expired, set
}
