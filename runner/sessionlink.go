package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"notebox/runner/internal/channel"
	"notebox/runner/internal/frame"
)

// sessionLink is the stream of a session's sandbox. One goroutine reads it for as long
// as the session is open:
//
//  1. Frames of a job go to the mailbox of the job that runs.
//  2. Channels go to the Mux of the network or that of the file operations, which never wait.
//  3. Answers go to those who wait for them.
//  4. A frame that nobody waits for, or the stream's end, is the end of the session.
//
// It waits only for a mailbox that is full, see sessionJob.
type sessionLink struct {
	c     *conversation
	lost  func(error) // called once, where the stream ended or is no good
	files *channel.Mux

	mu      sync.Mutex
	answers map[frame.Kind]chan struct{} // closed when it has come
	job     *sessionJob                  // that runs
	network *uplink
	err     error         // why it is over
	ended   chan struct{} // closed when it is
}

func newSessionLink(c *conversation, lost func(error)) *sessionLink {
	l := &sessionLink{c: c, lost: lost, answers: map[frame.Kind]chan struct{}{}, ended: make(chan struct{})}
	c.writing.Lock() // of the pings
	defer c.writing.Unlock()
	c.late = func() { l.close(fmt.Errorf("a frame was not read: %w", errDeadline)) }
	l.files = channel.NewMux(func(payload []byte) error {
		return l.c.write(func(w io.Writer) error { return frame.Write(w, frame.KindChannel, payload) })
	})
	return l
}

// send writes a frame without a payload.
func (l *sessionLink) send(kind frame.Kind) error {
	return l.c.write(func(w io.Writer) error { return frame.Write(w, kind, nil) })
}

// sendSession makes the sandbox the session's. It is called before read.
func (l *sessionLink) sendSession(s frame.Session) error {
	err := l.c.write(func(w io.Writer) error { return frame.WriteJSON(w, frame.KindSession, s) })
	if err != nil {
		return l.c.whyNotSent(fmt.Errorf("send the session: %w", err))
	}
	return nil
}

// serve has the session's programs reach its network, until the link is over.
func (l *sessionLink) serve(network Network, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.network = connect(l.c.alive, l.c, network, id)
	}
}

// expect returns what is closed when an answer of that kind comes. One waits for it at
// a time, from before it is asked for.
func (l *sessionLink) expect(kind frame.Kind) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[kind] = make(chan struct{})
	return l.answers[kind]
}

// await waits for an answer.
func (l *sessionLink) await(ctx context.Context, answer <-chan struct{}) error {
	select {
	case <-answer:
		return nil
	case <-l.ended:
		return l.over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// over returns why the link is over; nil where it is not.
func (l *sessionLink) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// close ends the stream and all that waits for it. The first cause counts.
func (l *sessionLink) close(cause error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = cause
	close(l.ended)
	job, network := l.job, l.network
	l.mu.Unlock()
	_ = l.files.Close()
	network.close()
	if job != nil {
		job.fail(cause)
	}
	l.c.close()
	go l.lost(cause)
}

// read takes frames until the link is over.
func (l *sessionLink) read() {
	for {
		kind, payload, err := l.c.readBounded(l.maxEvent)
		if err == nil {
			err = l.take(kind, payload)
		}
		if err != nil {
			l.close(err)
			return
		}
	}
}

func (l *sessionLink) maxEvent() int64 {
	if job := l.current(); job != nil {
		return job.maxEvent
	}
	return 0
}

func (l *sessionLink) current() *sessionJob {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.job
}

// take handles one frame.
func (l *sessionLink) take(kind frame.Kind, payload []byte) error {
	switch kind {
	case frame.KindChannel:
		return l.channel(payload)
	case frame.KindKept, frame.KindRestarted:
		return l.answer(kind)
	case frame.KindFailed:
		return failureOfRun(payload)
	}
	job := l.current()
	if job == nil {
		return fmt.Errorf("frame %q where no job runs", rune(kind))
	}
	if kind == frame.KindDone {
		l.mu.Lock()
		l.job = nil // another may be sent as soon as this is told
		l.mu.Unlock()
	}
	err := job.deliver(kind, payload)
	if err != nil {
		job.fail(err)
	}
	return err
}

func (l *sessionLink) channel(payload []byte) error {
	if channel.Ours(payload) {
		return l.files.Receive(payload)
	}
	l.mu.Lock()
	network := l.network
	l.mu.Unlock()
	return network.receive(payload)
}

func (l *sessionLink) answer(kind frame.Kind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := l.answers[kind]
	if answer == nil {
		return fmt.Errorf("frame %q that nobody asked for", rune(kind))
	}
	delete(l.answers, kind)
	close(answer)
	return nil
}

// begin sends a job. Its frames go to job from then on.
func (l *sessionLink) begin(job *sessionJob, spec Spec) error {
	l.mu.Lock()
	switch {
	case l.err != nil:
		l.mu.Unlock()
		return l.err
	case l.job != nil:
		l.mu.Unlock()
		return errors.New("a job is under way")
	}
	l.job = job
	l.mu.Unlock()
	return l.c.write(func(w io.Writer) error {
		if err := sendNotebook(w, spec); err != nil {
			return fmt.Errorf("send the job: %w", err)
		}
		return frame.Write(w, frame.KindGo, nil)
	})
}
