package runnertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// errRestarted is the cause if a fake's kernel is restarted while it runs.
var errRestarted = errors.New(string(runner.StatusKilled))

// fakeLife is the honest program of a sandbox that is a session's.
type fakeLife struct {
	host     *Fake
	stream   Stream
	in       *tokenReader
	out      *wholeWriter
	hello    frame.Session
	began    time.Time
	folder   *fakeFolder
	channels *fakeChannels

	vars  map[string]string // of the kernel
	lost  bool              // the kernel of the run before, and nobody was told
	job   *Kernel           // that runs, or ran last
	ended chan struct{}     // closed when it has
	mute  func()            // has nothing more of it be sent
}

func (f *Fake) newSession(stream Stream, hello frame.Session) *fakeLife {
	ended := make(chan struct{})
	close(ended)
	s := &fakeLife{
		host: f, stream: stream, in: &tokenReader{r: stream, token: hello.Token}, out: &wholeWriter{w: stream},
		hello: hello, began: time.Now(), folder: newFakeFolder(stream.room), vars: map[string]string{},
		ended: ended, mute: func() {},
	}
	s.channels = newFakeChannels(s.out, s.folder)
	return s
}

// run takes frames until the stream or the session's time is over.
func (s *fakeLife) run() int {
	timer := time.AfterFunc(s.ttl(), func() {
		if line, ok := s.stream.ReadWriter.(interface{ Close() }); ok {
			line.Close()
		}
	})
	defer timer.Stop()
	defer s.end(errCancelled)
	defer s.channels.reset()
	_ = frame.Write(s.out, frame.KindKept, nil)
	var job fakeJob
	var notebook []byte
	for {
		kind, payload, err := frame.Read(s.in, 0)
		if err != nil && !errors.Is(err, errAdopted) { // what is no frame may be the begin of a token
			if _, behind := io.Copy(io.Discard, s.in); behind != nil {
				err = behind
			}
		}
		switch {
		case errors.Is(err, errAdopted):
			job, notebook = fakeJob{}, nil
			err = s.adopted()
		case err != nil:
			return 0
		default:
			switch kind {
			case frame.KindJob:
				job.Job, err = frame.Decode[frame.Job](kind, payload)
			case frame.KindNotebookIn:
				notebook = append(notebook, payload...)
			case frame.KindGo:
				if err = job.parse(notebook); err == nil {
					s.start(job)
				}
				job, notebook = fakeJob{}, nil
			case frame.KindCancel:
				s.cancel(errCancelled)
			case frame.KindInterrupt:
				s.interrupt()
			case frame.KindRestart:
				s.restart()
			case frame.KindChannel:
				err = s.channels.receive(payload)
			case frame.KindPing:
			default:
				err = fmt.Errorf("frame %q in a session", rune(kind))
			}
		}
		if err != nil {
			_ = frame.WriteJSON(s.out, frame.KindFailed, frame.Failed{Message: err.Error()})
			return 1
		}
	}
}

func (s *fakeLife) ttl() time.Duration {
	return time.Until(s.began.Add(time.Duration(s.hello.TTLSeconds * float64(time.Second))))
}

// start runs a job.
func (s *fakeLife) start(job fakeJob) {
	s.lost = s.settle()
	ctx, end := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(time.Duration(job.TimeoutSeconds*float64(time.Second)), func() { end(errTimeout) })
	out := &mutedWriter{w: s.out}
	k := &Kernel{
		Sandbox: s.stream.id, Env: s.hello.Env, Vars: s.vars, stop: job.StopOnError, ctx: ctx, end: end, stream: out,
		budget: job.MaxOutput, folder: s.folder, interrupts: make(chan struct{}, 1), command: job.Command != "", before: s.lost,
	}
	s.lost = false
	s.job, s.ended, s.mute = k, make(chan struct{}), out.mute
	job.placed = s.folder.texts()
	go func(ended chan<- struct{}) {
		defer close(ended)
		defer timer.Stop()
		begun := time.Now()
		if job.Command != "" {
			for _, cell := range job.cells {
				cell["source"] = job.Command
			}
		}
		k.execute(s.host.cell, job.cells)
		if k.ended != "" || errors.Is(context.Cause(ctx), errRestarted) {
			k.dead = true
		}
		k.Files = s.folder.texts()
		for path, content := range s.folder.written() {
			job.placed[path] = content
		}
		k.report(job, max(1, time.Since(begun)))
		k.told = !out.muted()
	}(s.ended)
}

// settle waits for the end of the job, takes in what became of its kernel, and reports
// whether one was lost that nobody was told of.
func (s *fakeLife) settle() (untold bool) {
	<-s.ended
	k := s.job
	if s.job = nil; k == nil {
		return s.lost
	}
	if k.dead || k.later {
		s.vars = map[string]string{}
	}
	return k.later || !k.told && (k.before || k.dead)
}

func (s *fakeLife) cancel(cause error) {
	if s.job != nil {
		s.job.end(cause)
	}
}

func (s *fakeLife) interrupt() {
	if s.job != nil {
		select {
		case s.job.interrupts <- struct{}{}:
		default:
		}
	}
}

func (s *fakeLife) restart() {
	s.cancel(errRestarted)
	s.settle()
	s.vars, s.lost = map[string]string{}, false
	_ = frame.Write(s.out, frame.KindRestarted, nil)
}

// end ends what runs, without a word.
func (s *fakeLife) end(cause error) {
	s.mute()
	s.cancel(cause)
	<-s.ended
}

// adopted begins anew with the service that has just shown the token.
func (s *fakeLife) adopted() error {
	nonce := make([]byte, frame.TokenSize)
	if _, err := io.ReadFull(s.in, nonce); err != nil {
		return err
	}
	s.end(errCancelled)
	untold := s.settle()
	s.lost = false
	s.channels.reset()
	if _, err := s.out.Write(nonce); err != nil {
		return err
	}
	return frame.WriteJSON(s.out, frame.KindResumed, frame.Resumed{
		Version: frame.Version, KernelRestarted: untold, TTLSeconds: s.ttl().Seconds(),
	})
}

// wholeWriter keeps frames of several writers apart, each of which is one Write.
type wholeWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *wholeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// mutedWriter is one whose writes can be ended.
type mutedWriter struct {
	w    io.Writer
	mu   sync.Mutex
	over bool
}

func (w *mutedWriter) mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

func (w *mutedWriter) muted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

func (w *mutedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return len(p), nil
	}
	return w.w.Write(p)
}
