package runnertest

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"notebox/runner"
)

// Recorder is a Sink that keeps what it gets, and fails the test if a Runner
// breaks the contract of Sink.
type Recorder struct {
	// OnOutput is called for each event, if not nil.
	OnOutput func(runner.Event)
	// OnFile takes each file in the recorder's place, if not nil.
	OnFile func(ctx context.Context, path string, content io.Reader) error

	t      testing.TB
	inside atomic.Int32
	sealed atomic.Bool
	events []runner.Event
	files  map[string]string
}

// NewRecorder returns a Recorder for one run.
func NewRecorder(t testing.TB) *Recorder {
	return &Recorder{t: t, files: map[string]string{}}
}

// Output implements runner.Sink.
func (r *Recorder) Output(e runner.Event) {
	defer r.enter()()
	r.events = append(r.events, e)
	if r.OnOutput != nil {
		r.OnOutput(e)
	}
}

// File implements runner.Sink.
func (r *Recorder) File(ctx context.Context, path string, content io.Reader) error {
	defer r.enter()()
	if r.OnFile != nil {
		return r.OnFile(ctx, path, content)
	}
	data, err := io.ReadAll(content)
	if err == nil {
		r.files[path] = string(data)
	}
	return err
}

// Seal says that Run has returned; a call after it fails the test.
func (r *Recorder) Seal() { r.sealed.Store(true) }

// Events returns the events so far; only after Seal.
func (r *Recorder) Events() []runner.Event { return slices.Clone(r.events) }

// Files returns the contents of the files by path; only after Seal.
func (r *Recorder) Files() map[string]string { return maps.Clone(r.files) }

func (r *Recorder) enter() (leave func()) {
	if r.inside.Add(1) > 1 {
		r.t.Error("two calls of a Sink at one time")
	}
	if r.sealed.Load() {
		r.t.Error("a call of a Sink after Run had returned")
	}
	return func() { r.inside.Add(-1) }
}
