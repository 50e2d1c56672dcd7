package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
	"unicode/utf8"
)

const (
	// maxEvents of one run. The harness counts outputOverhead for each output,
	// so that an honest one cannot reach it with the default limits.
	maxEvents      = 1 << 18
	outputOverhead = 64 // bytes, as in the harness
	// maxSkipped reports of one run; the harness sends about a hundred.
	maxSkipped = 1000
	// dataFolder is where the paths of files begin.
	dataFolder = "/mnt/data"
)

// reception takes in what comes out of a sandbox after go.
type reception struct {
	c        *conversation
	spec     Spec
	events   Sink
	out      Outcome
	seen     int // events
	notebook bytes.Buffer
	files    int
	bytes    int64 // of the files so far
	done     bool
}

func newReception(c *conversation, spec Spec, events Sink) *reception {
	return &reception{c: c, spec: spec, events: events}
}

// receive reads to the end of the run. What the sandbox had sent is kept also
// where its end is not a good one.
func (r *reception) receive(ctx context.Context) (*Outcome, error) {
	deadline, extend := newDeadline(func() { r.c.sandbox.Close() })
	defer extend(0)
	extend(r.spec.Limits.Timeout + runSlack)
	stop := context.AfterFunc(ctx, func() {
		extend(cancelSlack)
		_ = r.c.write(func(w io.Writer) error { return writeFrame(w, frameCancel, nil) })
	})
	defer stop()

	var err error
	for !r.done && err == nil {
		var kind frameKind
		var payload []byte
		if kind, payload, err = readFrame(r.c.sandbox, jsonGrowth*r.spec.Limits.Output+maxControlFrame); err == nil {
			if kind == frameOutcome && ctx.Err() == nil {
				extend(collectTimeout)
			}
			err = r.take(ctx, kind, payload)
		}
	}
	if r.notebook.Len() > 0 {
		r.out.Notebook = r.notebook.Bytes()
	}
	if err == nil {
		return &r.out, nil
	}
	return r.cutOff(ctx, err, deadline())
}

// take handles one frame.
func (r *reception) take(ctx context.Context, kind frameKind, payload []byte) error {
	switch kind {
	case frameEvent:
		return r.event(payload)
	case frameOutcome:
		return r.outcome(payload)
	case frameNotebookOut:
		return r.notebookPart(payload)
	case frameFile:
		return r.file(ctx, payload)
	case frameSkipped:
		s, err := decodeFrame[Skipped](kind, payload)
		if err == nil && len(r.out.Skipped) < maxSkipped {
			r.out.Skipped = append(r.out.Skipped, s)
		}
		return err
	case frameDone:
		d, err := decodeFrame[doneFrame](kind, payload)
		if err == nil && !d.Collected {
			r.out.Skipped = append(r.out.Skipped, Skipped{dataFolder, "looking for new files took too long"})
		}
		r.done = true
		return err
	case frameFailed:
		return failure(payload)
	}
	return fmt.Errorf("frame %q after go", rune(kind))
}

func (r *reception) event(payload []byte) error {
	e, err := decodeFrame[Event](frameEvent, payload)
	if err != nil {
		return err
	}
	if r.seen++; r.seen > maxEvents {
		return errors.New("too many events")
	}
	if r.out.Status == "" {
		r.events.Output(e)
	}
	return nil
}

func (r *reception) outcome(payload []byte) error {
	o, err := decodeFrame[outcomeFrame](frameOutcome, payload)
	if err != nil {
		return err
	}
	switch o.Status {
	case StatusOK, StatusError, StatusTimeout, StatusOutOfMemory, StatusKilled, StatusOutputLimit, StatusCancelled:
	default:
		return fmt.Errorf("outcome of status %q", o.Status)
	}
	r.out.Status = o.Status
	r.out.Usage = Usage{Wall: time.Duration(o.WallNS), CPU: time.Duration(o.CPUNS), PeakMemory: o.PeakMemory}
	return nil
}

func (r *reception) notebookPart(payload []byte) error {
	// The executed notebook holds what went in, written anew, and the output.
	limit := jsonGrowth*(int64(len(r.spec.Notebook))+r.spec.Limits.Output) + maxEvents*outputOverhead
	if int64(r.notebook.Len()+len(payload)) > limit {
		return fmt.Errorf("an executed notebook of more than %d bytes", limit)
	}
	r.notebook.Write(payload)
	return nil
}

// file hands one file to the Sink while it arrives.
func (r *reception) file(ctx context.Context, payload []byte) error {
	f, err := decodeFrame[fileFrame](frameFile, payload)
	if err != nil {
		return err
	}
	if r.files++; r.files > r.spec.Limits.Files {
		return fmt.Errorf("more than %d files", r.spec.Limits.Files)
	}
	if !cleanRelative(f.Path) {
		return fmt.Errorf("a file named %q", f.Path)
	}
	content := &fileContent{r: r}
	if err := r.events.File(ctx, f.Path, content); err != nil {
		r.out.Skipped = append(r.out.Skipped, Skipped{path.Join(dataFolder, f.Path), err.Error()})
	}
	_, err = io.Copy(io.Discard, content)
	if errors.Is(err, errIncomplete) {
		return nil
	}
	return err
}

// cleanRelative reports whether a path stays below the folder that it is
// relative to, and has only one way to be written.
func cleanRelative(p string) bool {
	return p != "" && p[0] != '/' && utf8.ValidString(p) && path.Clean(p) == p && p != "." && p != ".." &&
		!(len(p) > 2 && p[:3] == "../") && !bytes.ContainsRune([]byte(p), 0)
}

// cutOff makes the outcome of a run whose sandbox did not bring it to its end.
func (r *reception) cutOff(ctx context.Context, err error, late bool) (*Outcome, error) {
	exit := (*ExitError)(nil)
	died := errors.As(err, &exit)
	switch {
	case r.out.Status != "": // the cells had ended; only files are missing
		r.c.log.Error("a sandbox was cut off while its files were collected", "run", r.spec.ID, "error", err)
		r.out.Skipped = append(r.out.Skipped, Skipped{dataFolder, "the sandbox ended before all files were read"})
	case ctx.Err() != nil:
		r.out.Status = StatusCancelled
	case late:
		r.c.log.Error("a sandbox did not answer when its time was over", "run", r.spec.ID, "error", errDeadline)
		r.out.Status = StatusTimeout
	case died && exit.Code == sigkilled:
		// Only the host's kernel, short of memory, ends the program inside so.
		r.out.Status = StatusOutOfMemory
	default:
		return nil, explainExit(err, r.c.log)
	}
	return &r.out, nil
}
