package runner

import (
	"fmt"
	"sync"
	"time"

	"notebox/runner/internal/frame"
)

// jobDeadline is the time that a job in a session has.
//
//  1. The outcome is there when the run's own time and sessionSlack are over, or
//     sessionSlack after a cancel. Else the session is lost.
//  2. All that follows, a new kernel among it, is there collectTimeout after that. Else
//     the session is lost.
//  3. Where the run is cancelled, it waits for that for cancelSlack only, and what
//     comes then is dropped.
//
// A Sink that is slow has no part in it, but for a mailbox that is full. What it has not
// stored collectTimeout after it had the outcome is left behind.
type jobDeadline struct {
	s    *LiveSession
	job  *sessionJob
	late func() bool
	set  func(time.Duration)
	stop chan struct{} // closed when the run is over

	mu   sync.Mutex
	said bool // the outcome has arrived
}

func newJobDeadline(s *LiveSession, job *sessionJob) *jobDeadline {
	d := &jobDeadline{s: s, job: job, stop: make(chan struct{})}
	d.late, d.set = newDeadline(func() { s.link.close(fmt.Errorf("a job: %w", errDeadline)) })
	go d.follow()
	return d
}

// follow watches the job from its outcome on.
func (d *jobDeadline) follow() {
	select {
	case <-d.job.said:
		d.mu.Lock()
		d.said = true
		d.set(collectTimeout)
		d.mu.Unlock()
		<-d.job.finished
	case <-d.job.finished:
	}
	d.set(0)
}

// sent begins the time of a job that may take that long.
func (d *jobDeadline) sent(timeout time.Duration) { d.setUnsaid(timeout + sessionSlack) }

func (d *jobDeadline) setUnsaid(t time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.said {
		d.set(t)
	}
	return !d.said
}

// cancel has the job end.
func (d *jobDeadline) cancel() {
	if d.setUnsaid(sessionSlack) {
		// An error shows on the reading side.
		_ = d.s.link.send(frame.KindCancel)
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
	case <-time.After(cancelSlack):
		d.job.abandon()
	}
}

// leave says that nobody waits for the job any more. Its time goes on.
func (d *jobDeadline) leave() { close(d.stop) }
