package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// Result is what came of a run. No list in it is ever null. Its JSON is what the native API
// answers, and what is stored.
type Result struct {
	ID        string        `json:"id"`
	Status    runner.Status `json:"status"`
	Text      string        `json:"text"`
	Outputs   []any         `json:"outputs"` // StreamOutput, BundleOutput or ErrorOutput
	Images    []Image       `json:"images"`
	Files     []File        `json:"files"`
	Skipped   []Skipped     `json:"skipped"`
	Error     *Exception    `json:"error"`
	Hint      string        `json:"hint"`
	Notebook  *NotebookLink `json:"notebook"` // null if there is none or it could not be stored
	Truncated bool          `json:"truncated"`
	Session   *SessionRef   `json:"session"`   // null for a run in a sandbox of its own
	ExitCode  *int          `json:"exit_code"` // of a command; null if there was none, or it did not end by itself
	Usage     Usage         `json:"usage"`
	// Install is of the packages that were asked for, if they are there.
	Install *Install `json:"install,omitempty"`

	keeper *keeper // of the run
}

// Skipped is what the run produced and the caller cannot have.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Retry  bool   `json:"retry,omitempty"`
}

type Exception struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Cell      int    `json:"cell"`
	Line      int    `json:"line"`
}

type NotebookLink struct {
	URL string `json:"url"`
}

type Usage struct {
	QueueMS    int64 `json:"queue_ms"`
	WallMS     int64 `json:"wall_ms"`
	CPUMS      int64 `json:"cpu_ms"`
	PeakMemory int64 `json:"peak_memory_bytes"`
}

// result makes the result of what is left of a run.
func (x *Executor) result(ctx context.Context, p *plan, out *runner.Outcome, events *sink) *Result {
	events.end()
	executed, result, complete := x.decode(ctx, p, out, events)
	if out.Status == runner.StatusOK && result.Error != nil {
		// An error output makes the status, whoever has counted before: hint and error are of it.
		told := *out
		told.Status, out = runner.StatusError, &told
	}
	blobs := blobsOf(result.Outputs...)
	began := time.Now()
	k := x.keep(ctx, events.keeper, executed, blobs, events.urls())
	x.stored(time.Since(began))

	a := &Result{
		ID:        p.spec.ID,
		Status:    out.Status,
		Outputs:   []any{},
		Images:    imagesOf(blobs, k, p.linkImages),
		Files:     append([]File{}, events.files...),
		Skipped:   skippedOf(out, result, events.files, blobs, k),
		Hint:      x.hintFor(p, out, result),
		Session:   p.session.ref(out),
		ExitCode:  out.ExitCode,
		Truncated: out.Status == runner.StatusOutputLimit || result.Truncated || !complete,
		Usage: Usage{
			QueueMS: out.Usage.Queue.Milliseconds(), WallMS: out.Usage.Wall.Milliseconds(),
			CPUMS: out.Usage.CPU.Milliseconds(), PeakMemory: out.Usage.PeakMemory,
		},
		keeper: events.keeper,
	}
	for _, o := range result.Outputs {
		a.Outputs = append(a.Outputs, outputOf(o, k.urls, false))
	}
	if url := k.urls[notebookName]; url != "" {
		a.Notebook = &NotebookLink{url}
	}
	a.Text = notebook.Text(result, func(b *notebook.Blob) string { return k.urls[b.Name] })
	for _, f := range a.Files {
		a.Text += fmt.Sprintf("[file %s: %s]\n", problem.OneLine(strings.TrimPrefix(f.Path, runner.DataFolder+"/")), f.URL+f.Error)
	}
	a.Text += elsewhere(out.Skipped)
	if e := result.Error; e != nil {
		a.Error = &Exception{e.Name, e.Message, e.Traceback, e.Cell, p.lineOf(e)}
	} else if a.Error = unshown(out); a.Error != nil {
		a.Text = endLine(a.Text) + "[" + a.Error.Message + "]\n"
	}
	if out.KernelRestarted {
		a.Text = endLine(a.Text) + "[" + restartedText + "]\n"
	}
	a.Text = shorten(ctx, events.keeper, a.Text)
	return a
}

// skippedOf lists what is missing of a run, whoever left it out.
func skippedOf(out *runner.Outcome, result *notebook.Result, files []File, blobs []*notebook.Blob, k kept) []Skipped {
	list, retry := []Skipped{}, map[string]bool{}
	for _, f := range files {
		retry[f.Path] = f.Retry
	}
	for _, s := range out.Skipped {
		list = append(list, Skipped{s.Path, s.Reason, retry[s.Path]})
	}
	for _, d := range result.Dropped {
		list = append(list, Skipped{cellPath(d.Cell, d.MediaType), d.Reason, false})
	}
	names := []string{}
	for _, b := range blobs {
		names = append(names, b.Name)
	}
	for _, name := range append(names, notebookName) {
		if lost := k.lost[name]; lost != nil {
			list = append(list, Skipped{name, lost.text, lost.retry})
		}
	}
	return list
}

// decode reads the executed notebook, or what is known of it by the events
// if it did not come back or is none. complete is false if outputs may be
// missing.
func (x *Executor) decode(ctx context.Context, p *plan, out *runner.Outcome, events *sink) (executed []byte, r *notebook.Result, complete bool) {
	ctx, span := x.tracer.Start(ctx, "notebook.Decode", trace.WithAttributes(attribute.String(RunAttribute, p.spec.ID), attribute.Int("notebox.notebook.bytes", len(out.Notebook))))
	defer func() {
		span.SetAttributes(attribute.Int("notebox.outputs", len(r.Outputs)), attribute.Bool("notebox.complete", complete))
		span.End()
	}()
	if out.Notebook != nil {
		r, err := events.decoder.Decode(out.Notebook)
		if err == nil {
			return out.Notebook, r, true
		}
		x.log.WarnContext(ctx, "the executed notebook cannot be read", "run", p.spec.ID, "error", err)
	}
	if executed = events.partial.executed(); executed != nil {
		if r, err := events.decoder.Decode(executed); err == nil {
			return executed, r, !events.partial.cut
		}
	}
	return nil, &notebook.Result{}, !events.partial.cut
}

// decodeLimits are notebook's, widened where the operator lets a run put out more.
func decodeLimits(spec runner.Spec) notebook.Limits {
	const growth = 16 // bytes of a notebook for one: a newline is a line of its own, indented and quoted
	return notebook.Limits{
		MaxBytes:     max(notebook.DefaultMaxBytes, growth*(int64(len(spec.Notebook))+spec.Limits.Output)+16<<20),
		MaxTextBytes: max(notebook.DefaultMaxTextBytes, spec.Limits.Output),
		MaxBlobBytes: max(notebook.DefaultMaxBlobBytes, spec.Limits.Output),
	}
}

// cellPath names a part of an output in the list of what was skipped.
func cellPath(cell int, mediaType string) string {
	if mediaType == "" {
		return fmt.Sprintf("cell %d", cell)
	}
	return fmt.Sprintf("cell %d: %s", cell, mediaType)
}

// endLine is a text that another line can follow.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
