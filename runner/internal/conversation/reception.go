package conversation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

const (
	// outputOverhead is what the harness counts for each output, in bytes, so that
	// their number is bounded with their size; see maxEvents.
	outputOverhead = 64
	// notebookGrowth is how much longer text can get in a notebook's JSON: each
	// newline alone is a line of its own there, with indent and quotes.
	notebookGrowth = 16
	// maxSkipped reports of one run, and maxSkippedBytes of them; the harness
	// sends about a hundred and fifty, each with a path of up to 80 KB.
	maxSkipped      = 1000
	maxSkippedBytes = 16 << 20
	// maxExitCode of a process: a byte.
	maxExitCode = 255
)

// sigkilled is the exit code of a program that SIGKILL ended.
const sigkilled = 128 + 9

// reception takes in what comes out of a sandbox after go.
type reception struct {
	job          *Job
	events       runner.Sink
	out          runner.Outcome
	seen         int64 // events
	eventBytes   int64 // of all events
	skippedBytes int   // of all reports
	notebook     bytes.Buffer
	whole        bool // the notebook is
	files        int
	bytes        int64 // of the files so far
	done         bool
	began        time.Time
	ended        time.Time // when the last cell had; zero if that is not known
}

// takeAll takes frames to the last. outcome is called before the outcome is taken.
func (r *reception) takeAll(ctx context.Context, outcome func()) error {
	var err error
	for !r.done && err == nil {
		var kind frame.Kind
		var payload []byte
		if kind, payload, err = r.job.next(); err == nil {
			if kind == frame.KindOutcome && r.out.Status == "" {
				outcome()
			}
			err = r.take(ctx, kind, payload)
		}
	}
	if r.whole {
		r.out.Notebook = r.notebook.Bytes()
	}
	return err
}

// maxEvent is how many bytes the frame of one event of a run can have.
func maxEvent(s runner.Spec) int64 { return frame.JSONGrowth*s.Limits.Output + frame.MaxControl }

// tell tells the run's observer of a run that is over.
func (r *reception) tell() {
	switch observe := r.job.spec.Observe; {
	case observe == nil:
	case r.ended.IsZero():
		observe.Tell(runner.PhaseExecute, r.job.began)
	default:
		observe(runner.PhaseExecute, r.job.began, r.ended)
		observe.Tell(runner.PhaseCollect, r.ended)
	}
}

// take handles one frame.
func (r *reception) take(ctx context.Context, kind frame.Kind, payload []byte) error {
	if !r.inTurn(kind) {
		when := "before the outcome"
		if r.out.Status != "" {
			when = "after the outcome"
		}
		return fmt.Errorf("frame %q out of turn, %s", rune(kind), when)
	}
	r.whole = r.notebook.Len() > 0 && kind != frame.KindNotebookOut
	switch kind {
	case frame.KindEvent:
		return r.event(payload)
	case frame.KindOutcome:
		return r.outcome(payload)
	case frame.KindNotebookOut:
		return r.notebookPart(payload)
	case frame.KindFile:
		return r.file(ctx, payload)
	case frame.KindSkipped:
		return r.skipped(payload)
	case frame.KindDone:
		d, err := frame.Decode[frame.Done](kind, payload)
		if err == nil && !d.Collected {
			r.out.Skipped = append(r.out.Skipped, runner.Skipped{Path: runner.DataFolder, Reason: "looking for new files took too long"})
		}
		r.out.Usage.CPUOfJob = max(0, time.Duration(d.CPUNS))
		r.done = true
		return err
	}
	return fmt.Errorf("unexpected frame %q during a job", rune(kind))
}

// inTurn reports whether a frame of that kind may come now: outputs before the
// one outcome, the rest after it.
func (r *reception) inTurn(kind frame.Kind) bool {
	switch kind {
	case frame.KindEvent, frame.KindOutcome:
		return r.out.Status == ""
	case frame.KindNotebookOut:
		return r.out.Status != "" && !r.whole
	case frame.KindFile, frame.KindSkipped, frame.KindDone:
		return r.out.Status != ""
	}
	return true
}

func (r *reception) event(payload []byte) error {
	e, err := frame.Decode[runner.Event](frame.KindEvent, payload)
	if err != nil {
		return err
	}
	if e.Cell < 0 {
		return fmt.Errorf("an event of cell %d", e.Cell)
	}
	switch e.Kind {
	case runner.EventOutput, runner.EventUpdate, runner.EventClear:
	default:
		return fmt.Errorf("an event of kind %q", e.Kind)
	}
	r.seen++
	r.eventBytes += int64(len(payload))
	if r.seen > r.maxEvents() || r.eventBytes > frame.JSONGrowth*r.job.spec.Limits.Output+r.maxEvents()*outputOverhead {
		return errors.New("too many events")
	}
	r.events.Output(e)
	return nil
}

// maxEvents is how many events an honest harness can send: those within the limit, the one
// that it cut, and some that it was sending meanwhile.
func (r *reception) maxEvents() int64 {
	return r.job.spec.Limits.Output/outputOverhead + 1000
}

func (r *reception) skipped(payload []byte) error {
	s, err := frame.Decode[runner.Skipped](frame.KindSkipped, payload)
	if err != nil {
		return err
	}
	r.skippedBytes += len(payload)
	if len(r.out.Skipped) >= maxSkipped || r.skippedBytes > maxSkippedBytes {
		return errors.New("too many files that were left behind")
	}
	r.out.Skipped = append(r.out.Skipped, s)
	return nil
}

func (r *reception) outcome(payload []byte) error {
	o, err := frame.Decode[frame.Outcome](frame.KindOutcome, payload)
	if err != nil {
		return err
	}
	status := runner.Status(o.Status)
	if !slices.Contains(runner.Statuses(), status) {
		return fmt.Errorf("outcome of status %q", o.Status)
	}
	if o.ExitCode != nil && (r.job.spec.Command == "" || *o.ExitCode < 0 || *o.ExitCode > maxExitCode) {
		return fmt.Errorf("an exit code of %d", *o.ExitCode)
	}
	r.out.Status, r.ended = status, time.Now()
	r.out.KernelRestarted = o.KernelRestarted
	r.out.Usage = runner.Usage{Wall: time.Duration(o.WallNS), CPU: time.Duration(o.CPUNS), PeakMemory: o.PeakMemory}
	if status == runner.StatusOK || status == runner.StatusError {
		r.out.ExitCode = o.ExitCode
	}
	return nil
}

func (r *reception) notebookPart(payload []byte) error {
	// The executed notebook holds what went in, written anew, and the output.
	limit := notebookGrowth*(int64(len(r.job.spec.Notebook))+r.job.spec.Limits.Output) + r.maxEvents()*outputOverhead
	if int64(r.notebook.Len()+len(payload)) > limit {
		return fmt.Errorf("an executed notebook of more than %d bytes", limit)
	}
	r.notebook.Write(payload)
	return nil
}

// file hands one file to the Sink while it arrives.
func (r *reception) file(ctx context.Context, payload []byte) error {
	f, err := frame.Decode[frame.File](frame.KindFile, payload)
	if err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errAbandoned) { // events has had its time
		return errAbandoned
	}
	if r.files++; r.files > r.job.spec.Limits.Files {
		return fmt.Errorf("more than %d files", r.job.spec.Limits.Files)
	}
	if !CleanRelative(f.Path) {
		return errors.New("a file with a name that is not below the folder") // which is not for the log
	}
	content := &fileContent{r: r}
	if err := r.events.File(ctx, f.Path, content); err != nil {
		r.out.Skipped = append(r.out.Skipped, runner.Skipped{Path: path.Join(runner.DataFolder, f.Path), Reason: err.Error()})
	}
	_, err = io.Copy(io.Discard, content)
	if errors.Is(err, errIncomplete) {
		return nil
	}
	return err
}

// CleanRelative reports whether a path stays below the folder that it is
// relative to, and has only one way to be written.
func CleanRelative(p string) bool {
	return p != "" && p[0] != '/' && utf8.ValidString(p) && path.Clean(p) == p && p != "." && p != ".." &&
		!(len(p) > 2 && p[:3] == "../") && !bytes.ContainsRune([]byte(p), 0)
}

// mostUsed is the most that a sandbox can have used until now, for one that died before it
// said.
func (r *reception) mostUsed() runner.Usage {
	u := runner.Usage{Wall: time.Since(r.began)}
	u.CPU = time.Duration(float64(u.Wall) * r.job.spec.Limits.CPUs)
	if r.out.Status == runner.StatusOutOfMemory {
		u.PeakMemory = r.job.spec.Limits.Memory
	}
	return u
}

// cutOff makes the outcome of a run whose sandbox did not bring it to its end.
func (r *reception) cutOff(cancelled bool, err error, late bool) (*runner.Outcome, error) {
	exit := (*runner.ExitError)(nil)
	died := errors.As(err, &exit)
	log := r.job.c.log.With("run", r.job.spec.ID)
	switch {
	case r.out.Status != "" && cancelled && errors.Is(err, errAbandoned):
		r.out.Skipped = append(r.out.Skipped, runner.Skipped{Path: runner.DataFolder, Reason: "the run was cancelled before all files were read"})
	case r.out.Status != "": // the cells had ended; only files are missing
		log.Error("a sandbox was cut off while its files were collected", "error", err)
		r.out.Skipped = append(r.out.Skipped, runner.Skipped{Path: runner.DataFolder, Reason: "the sandbox ended before all files were read"})
	case cancelled:
		r.out.Status = runner.StatusCancelled
	case late:
		log.Error("a sandbox did not answer when its time was over", "error", ErrDeadline)
		r.out.Status = runner.StatusTimeout
	case died && exit.Code == sigkilled:
		// Only the host's kernel, short of memory, ends the program inside so.
		r.out.Status = runner.StatusOutOfMemory
	case errors.Is(err, runner.ErrWithOthers) && (r.seen > 0 || r.job.spec.Network != nil):
		return nil, fmt.Errorf("%w: %w", ErrSeen, err)
	default:
		return nil, ExplainExitOfRun(err, log)
	}
	if r.ended.IsZero() {
		r.out.Usage = r.mostUsed()
	}
	return &r.out, nil
}
