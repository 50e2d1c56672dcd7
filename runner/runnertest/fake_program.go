package runnertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// The causes for which a fake's run is ended from outside.
var (
	errTimeout     = errors.New(string(runner.StatusTimeout))
	errCancelled   = errors.New(string(runner.StatusCancelled))
	errOutputLimit = errors.New(string(runner.StatusOutputLimit))
)

// serve is the honest program: what environments/harness is, on a fake kernel.
func (f *Fake) serve(stream Stream) int {
	job, session, err := f.takeJob(stream)
	if session != nil {
		return f.newSession(stream, *session).run()
	}
	if err != nil {
		_ = frame.WriteJSON(stream, frame.KindFailed, frame.Failed{Message: err.Error()})
		return 1
	}
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	timer := time.AfterFunc(time.Duration(job.TimeoutSeconds*float64(time.Second)), func() { end(errTimeout) })
	defer timer.Stop()
	gone := make(chan struct{})
	go func() { // takes pings, a cancel, and the end of the stream
		defer close(gone)
		defer end(errCancelled)
		for {
			kind, _, err := frame.Read(stream, 0)
			if err != nil {
				return
			}
			if kind == frame.KindCancel {
				end(errCancelled)
			}
		}
	}()
	k := &Kernel{Sandbox: stream.id, Env: job.Env, Files: job.files, Vars: map[string]string{}, stop: job.StopOnError, ctx: ctx, end: end, stream: stream, budget: job.MaxOutput}
	begun := time.Now()
	k.execute(f.cell, job.cells)
	k.report(job, max(1, time.Since(begun)))
	<-gone
	return 0
}

// fakeJob is a job that has arrived.
type fakeJob struct {
	frame.Job
	document map[string]any
	cells    []map[string]any
	files    map[string]string
	placed   map[string]string // the files as they came
}

// takeJob returns the job, or what a session begins with.
func (f *Fake) takeJob(stream Stream) (j fakeJob, session *frame.Session, err error) {
	kind, payload, err := frame.Read(stream, 0)
	if err != nil || kind != frame.KindWarm {
		return j, nil, fmt.Errorf("frame %q instead of warm: %w", rune(kind), err)
	}
	warm, err := frame.Decode[frame.Warm](kind, payload)
	if err != nil {
		return j, nil, err
	}
	f.noteWarm(stream.id, warm.Modules)
	ready := sync.OnceValue(func() error {
		return frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version})
	})
	if f.WarmUp > 0 && len(warm.Modules)+len(warm.Cells) > 0 {
		// An error shows on the reading side.
		imports := time.AfterFunc(f.WarmUp, func() { _ = ready() })
		defer imports.Stop()
	} else if err := ready(); err != nil {
		return j, nil, err
	}
	j.files, j.placed = map[string]string{}, map[string]string{}
	var notebook []byte
	path := ""
	for {
		kind, payload, err := frame.Read(stream, 0)
		if err != nil {
			return j, nil, err
		}
		switch kind {
		case frame.KindSession:
			hello, err := frame.Decode[frame.Session](kind, payload)
			return j, &hello, err
		case frame.KindJob:
			j.Job, err = frame.Decode[frame.Job](kind, payload)
		case frame.KindNotebookIn:
			notebook = append(notebook, payload...)
		case frame.KindInput:
			var in frame.Input
			in, err = frame.Decode[frame.Input](kind, payload)
			path = in.Path
			j.files[path], j.placed[path] = "", ""
		case frame.KindInputData:
			j.files[path] += string(payload)
			j.placed[path] = j.files[path]
		case frame.KindGo:
			return j, nil, j.parse(notebook)
		case frame.KindHurry:
			f.noteHurry(stream.id)
			err = ready()
		case frame.KindPing:
		default:
			err = fmt.Errorf("frame %q before go", rune(kind))
		}
		if err != nil {
			return j, nil, err
		}
	}
}

func (j *fakeJob) parse(notebook []byte) error {
	if len(notebook) != j.NotebookBytes {
		return fmt.Errorf("a notebook of %d bytes instead of %d", len(notebook), j.NotebookBytes)
	}
	if err := json.Unmarshal(notebook, &j.document); err != nil {
		return err
	}
	list, _ := j.document["cells"].([]any)
	for _, c := range list {
		cell, _ := c.(map[string]any)
		j.cells = append(j.cells, cell)
	}
	return nil
}

// report sends everything that comes after the last cell.
func (k *Kernel) report(job fakeJob, wall time.Duration) {
	k.send(frame.KindOutcome, frame.Outcome{
		Status: string(k.status()), WallNS: int64(wall), ExitCode: k.exitCode(), KernelRestarted: k.folder != nil && (k.before || k.dead),
	})
	notebook, err := json.Marshal(job.document)
	if err != nil {
		panic(err) // it came as JSON
	}
	for part := range slices.Chunk(notebook, frame.ChunkSize) {
		_ = frame.Write(k.stream, frame.KindNotebookOut, part)
	}
	sent, size := 0, int64(0)
	for _, path := range sortedKeys(k.Files) {
		content := k.Files[path]
		if before, ok := job.placed[path]; ok && before == content {
			continue
		}
		reason := k.skipped[path]
		switch {
		case reason != "":
		case sent >= job.MaxFiles:
			reason = fmt.Sprintf("more than %d files", job.MaxFiles)
		case size+int64(len(content)) > job.MaxFileBytes:
			reason = fmt.Sprintf("more than %d bytes in all files", job.MaxFileBytes)
		}
		if reason != "" {
			k.send(frame.KindSkipped, runner.Skipped{Path: "/mnt/data/" + path, Reason: reason})
			continue
		}
		sent, size = sent+1, size+int64(len(content))
		SendFile(k.stream, path, content)
	}
	k.send(frame.KindDone, frame.Done{Collected: true})
}

// SendFile sends a file as a program in a sandbox does.
func SendFile(to io.Writer, path, content string) {
	_ = frame.WriteJSON(to, frame.KindFile, frame.File{Path: path})
	for part := range slices.Chunk([]byte(content), frame.ChunkSize) {
		_ = frame.Write(to, frame.KindFileData, part)
	}
	_ = frame.WriteJSON(to, frame.KindFileEnd, frame.FileEnd{})
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
