package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"notebox/notebook"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/pool"
)

// Prober is an engine of cells that can find out whether all walls are around one.
type Prober interface {
	runner.Engine
	Probe(ctx context.Context, env runner.Environment, limits runner.Limits) error
}

// Sandboxes are what runs can have.
type Sandboxes struct {
	Containers runner.Engine
	Cells      Prober // nil: runs have containers by --isolation container
	// Required is that there is to be no service without cells.
	Required bool
	Language Language
	// Kernel of the language.
	Kernel notebook.Kernel
	// Start bounds a sandbox's start until it is ready.
	Start time.Duration
}

// Checks find out what isolation there truly is, and run a program in it.
func (s Sandboxes) Checks() []Check {
	var inCells atomic.Bool // a look that was given up may still set it
	after := []string{NameSettings, NameEngine, "runtime", "limits", ImageName(s.Language)}
	patience := s.Start + DefaultPatience
	return []Check{
		{Name: NameIsolation, Vital: s.Required, After: after, Patience: 2 * patience, Look: func(ctx context.Context) Finding {
			if s.Cells == nil {
				return s.containers(ctx, ok("containers, by --isolation container: each run has one of its own"))
			}
			probe, cancel := context.WithTimeout(ctx, s.Start)
			defer cancel()
			err := s.Cells.Probe(probe, s.Language.Environment, s.Language.Limits)
			if err == nil {
				inCells.Store(true)
				return ok("cells: the walls %s are around one; --isolation container is the stronger wall", strings.Join(cells.Walls(), ", "))
			}
			if s.Required { // no run has a container
				return noCells(err, true)
			}
			return s.containers(ctx, noCells(err, false))
		}},
		{Name: "run", Vital: true, After: after, Patience: patience, Look: func(ctx context.Context) Finding {
			if inCells.Load() {
				return s.run(ctx, s.Cells, "a cell")
			}
			return s.run(ctx, s.Containers, "a container")
		}},
	}
}

func noCells(err error, required bool) Finding {
	f := Finding{Level: Warning, Message: "containers: cells cannot be had: " + words(err), Mend: "Look at the daemon's log; runs have containers, which are slower and the stronger wall."}
	if missing := (*cells.NoCells)(nil); errors.As(err, &missing) {
		f.Message = fmt.Sprintf("containers, as the wall %s of cells is missing: %s", missing.Wall, words(missing.Why))
		f.Mend = "For cells, which are faster: " + missing.Do + "."
	}
	if required {
		f.Level = Wrong
		f.Message = "--isolation cell, and there are none: " + f.Message
		f.Mend += " Or set --isolation auto."
	}
	return f
}

// The program, and what it prints.
const (
	program = "print(42)"
	printed = "42\n"
)

func (s Sandboxes) run(ctx context.Context, engine runner.Engine, inside string) Finding {
	began := time.Now()
	said, out, err := s.execute(ctx, engine, program)
	took := time.Since(began).Round(time.Millisecond)
	switch {
	case err != nil:
		return wrong("See the daemon's log (journalctl -u docker), or try another --sandbox-runtime.", "%s does not run in %s: %s", program, inside, words(err))
	case out.Status != runner.StatusOK:
		return wrong("Look at --memory, --pids and --timeout: a sandbox may have too little.", "%s in %s ended with the status %s", program, inside, out.Status)
	case said != printed:
		return wrong("Build the image anew: notebox image build --force.", "%s in %s printed %q", program, inside, said)
	}
	return ok("%s ran in %s: %s, of which %s were its start", program, inside, took, out.Usage.Queue.Round(time.Millisecond))
}

// execute runs a program in a sandbox of its own, and returns what it prints.
func (s Sandboxes) execute(ctx context.Context, engine runner.Engine, code string) (said string, out *runner.Outcome, err error) {
	book, err := notebook.New([]string{code}, s.Kernel)
	if err != nil {
		return "", nil, err
	}
	p := pool.New(engine, pool.Options{Limits: s.Language.Limits, MaxSandboxes: 1, StartTimeout: s.Start})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DefaultPatience)
		defer cancel()
		_ = p.Close(ctx) // what it cannot remove ends by itself
	}()
	seen := new(text)
	out, err = p.Run(ctx, runner.Spec{
		ID: "doctor", Environment: s.Language.Environment, Notebook: book, StopOnError: true, Limits: s.Language.Limits,
	}, seen)
	return seen.String(), out, err
}

// text is a Sink that keeps what a run prints. The program writes no files.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// maxText is more than the programs print, in bytes.
const maxText = 4 << 10

func (t *text) Output(e runner.Event) {
	var output struct {
		Text any `json:"text"`
	}
	if json.Unmarshal(e.Output, &output) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	parts, lines := output.Text.([]any)
	if !lines {
		parts = []any{output.Text}
	}
	for _, part := range parts {
		if s, is := part.(string); is && t.b.Len()+len(s) <= maxText {
			t.b.WriteString(s)
		}
	}
}

func (t *text) File(_ context.Context, _ string, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
