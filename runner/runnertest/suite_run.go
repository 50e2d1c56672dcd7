package runnertest

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// runCase is one run, and what must come of it.
type runCase struct {
	desc        string
	cells       []string
	inputs      map[string]string
	env         map[string]string
	stopOnError bool
	limits      func(*runner.Limits) // changes them, if not nil
	cancel      bool                 // at the first line of output

	status  runner.Status
	stdout  string   // of the first cell
	errors  []string // classes of the exceptions
	events  []runner.EventKind
	files   map[string]string
	skipped map[string]string
	check   func(*testing.T, *ran) // more, if not nil
}

// ran is a run that has come to its end.
type ran struct {
	out      *runner.Outcome
	executed Executed
	sink     *Recorder
	limits   runner.Limits
}

func testRuns(t *testing.T, h Harness) {
	for _, c := range runCases() {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			service := newService()
			r := c.run(t, h, h.Engine(t, service))
			require.Empty(t, h.Left(t, service), "nothing is left when Run returns")
			c.verify(t, r)
		})
	}
}

func (c runCase) run(t *testing.T, h Harness, e runner.Engine) *ran {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	limits := h.Limits
	if c.status != runner.StatusTimeout {
		limits.Timeout = patience // a busy machine must not make it one
	}
	if c.limits != nil {
		c.limits(&limits)
	}
	first := time.Time{}
	sink := NewRecorder(t)
	sink.OnOutput = func(runner.Event) {
		if first.IsZero() {
			first = time.Now()
		}
		// A line may come in parts.
		if text, err := StreamedText(sink.Events()); c.cancel && err == nil && strings.Contains(text, "\n") {
			cancel()
		}
	}
	out, err := Once(ctx, e, testLog(t), c.spec(h.Environment, limits), sink)
	ended := time.Now()
	sink.Seal()
	require.NoError(t, err)
	switch {
	case c.cancel:
		require.Less(t, ended.Sub(first), promptly)
	case !first.IsZero():
		require.Less(t, ended.Sub(first), limits.Timeout+overtime)
	}
	r := &ran{out: out, sink: sink, limits: limits}
	require.NotNil(t, out.Notebook)
	r.executed, err = ParseExecuted(out)
	require.NoError(t, err)
	return r
}

func (c runCase) spec(env runner.Environment, l runner.Limits) runner.Spec {
	spec := runner.Spec{
		ID: newService(), Owner: "test", Environment: env, Notebook: Notebook(c.cells...),
		Env: c.env, StopOnError: c.stopOnError, Limits: l,
	}
	for path, content := range c.inputs {
		spec.Inputs = append(spec.Inputs, TextInput(path, content))
	}
	return spec
}

// TextInput returns a file for /mnt/data with this content.
func TextInput(path, content string) runner.Input {
	return runner.Input{Path: path, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

func (c runCase) verify(t *testing.T, r *ran) {
	require.Equal(t, c.status, r.out.Status)
	if c.check != nil {
		c.check(t, r)
	} else {
		require.Equal(t, c.stdout, r.executed.Stdout(0))
		streamed, err := StreamedText(r.sink.Events())
		require.NoError(t, err)
		require.Equal(t, c.stdout, streamed, "what is streamed is what the notebook has")
	}
	require.Equal(t, c.errors, r.executed.Errors())
	if c.events != nil {
		var kinds []runner.EventKind
		for _, e := range r.sink.Events() {
			kinds = append(kinds, e.Kind)
		}
		require.Equal(t, c.events, kinds)
	}
	require.Equal(t, orEmpty(c.files), r.sink.Files())
	skipped := map[string]string{}
	for _, s := range r.out.Skipped {
		skipped[s.Path] = s.Reason
	}
	require.Equal(t, orEmpty(c.skipped), skipped)
	require.Positive(t, r.out.Usage.Wall)
	require.Positive(t, r.out.Usage.Queue)
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// testApart has two runs going on at once that look for each other.
func testApart(t *testing.T, h Harness) {
	engine := h.Engine(t, newService())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hidden := make(chan struct{}, 1)
	hiding := make(chan *runner.Outcome, 1)
	sink := NewRecorder(t)
	sink.OnOutput = func(runner.Event) { hidden <- struct{}{} }
	limits := h.Limits
	limits.Timeout = patience
	go func() {
		out, err := Once(ctx, engine, testLog(t), runCase{cells: []string{CellHide}}.spec(h.Environment, limits), sink)
		if err != nil {
			t.Error(err)
		}
		hiding <- out
	}()
	select {
	case <-hidden:
	case out := <-hiding:
		require.Fail(t, "the first run ended", "%+v", out)
	case <-time.After(patience):
		require.Fail(t, "the first run has not begun")
	}
	runCase{cells: []string{CellSeek}}.run(t, h, engine).requireStdout(t, "found []\n")
	cancel()
	require.Equal(t, runner.StatusCancelled, (<-hiding).Status)
}

func (r *ran) requireStdout(t *testing.T, want string) {
	require.Equal(t, want, r.executed.Stdout(0))
}

// testLog writes the log of a test that fails.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
