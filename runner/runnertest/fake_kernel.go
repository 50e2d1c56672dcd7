package runnertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// Cell is what a cell of a fake's notebook does.
type Cell func(*Kernel)

// Kernel is what a cell of a fake can do.
type Kernel struct {
	Sandbox string            // its ID
	Env     map[string]string // of the job; not to be changed
	Files   map[string]string // /mnt/data; a cell may change it
	Vars    map[string]string // of a session's kernel, from run to run; a cell may change it
	Count   int               // execution count of the present cell, from 1 in each run; a cell may change it

	stop     bool            // after a cell that raised
	ctx      context.Context // ends, with a cause, when the run is to end
	end      context.CancelCauseFunc
	stream   io.Writer
	budget   int64 // bytes of output
	cell     int
	outputs  []any             // of the present cell
	skipped  map[string]string // path → reason
	failed   bool              // a cell raised
	ended    runner.Status     // killed or out_of_memory: the kernel is no more
	noMemory bool              // MemoryError was raised

	// Of a session's.
	interrupts chan struct{} // has an element if it was interrupted
	command    bool          // it is no kernel but a command
	folder     *fakeFolder   // nil if this is none
	exit       *int          // a command's exit code
	before     bool          // the kernel was lost before this run
	dead       bool          // or in it
	told       bool          // and that was said
	later      bool          // it will be lost when nothing runs
}

// execute runs the cells, and puts the outputs into them.
func (k *Kernel) execute(known func(source string) Cell, cells []map[string]any) {
	k.skipped = map[string]string{}
	for i, cell := range cells {
		if k.ctx.Err() != nil || k.ended != "" || k.failed && k.stop {
			return
		}
		k.cell, k.outputs, k.Count = i, []any{}, i+1
		source, _ := cell["source"].(string)
		do := known(source)
		switch {
		case do != nil:
		case k.command:
			do = unknownCommand(source)
		default:
			do = func(k *Kernel) { k.Raise("NotImplementedError", "a fake does not know this cell") }
		}
		k.inFolder(do)
		cell["outputs"], cell["execution_count"] = k.outputs, k.Count
	}
}

func unknownCommand(line string) Cell {
	return func(k *Kernel) {
		k.Complain("bash: line 1: " + strings.Fields(line + " ")[0] + ": command not found\n")
		k.Exit(127)
	}
}

// inFolder has a cell see a session's files as they are then.
func (k *Kernel) inFolder(do Cell) {
	if k.folder == nil {
		do(k)
		return
	}
	before := k.folder.texts()
	k.Files = maps.Clone(before)
	do(k)
	k.folder.merge(before, k.Files, k.skipped)
}

// exitCode is that of a command which has ended by itself.
func (k *Kernel) exitCode() *int {
	if !k.command || k.ctx.Err() != nil {
		return nil
	}
	if k.exit == nil {
		k.exit = new(int)
	}
	return k.exit
}

func (k *Kernel) status() runner.Status {
	switch cause := context.Cause(k.ctx); {
	case cause != nil && !errors.Is(cause, errTimeout):
		return runner.Status(cause.Error())
	case k.ended == runner.StatusOutOfMemory || k.noMemory:
		return runner.StatusOutOfMemory
	case cause != nil:
		return runner.StatusTimeout
	case k.ended != "":
		return k.ended
	case k.failed:
		return runner.StatusError
	}
	return runner.StatusOK
}

// Print writes to stdout, and reports whether the run goes on.
func (k *Kernel) Print(text string) bool { return k.print("stdout", text) }

// Complain writes to stderr, and reports whether the run goes on.
func (k *Kernel) Complain(text string) bool { return k.print("stderr", text) }

func (k *Kernel) print(name, text string) bool {
	over := int64(len(text)) > k.budget
	if over {
		text = text[:k.budget]
	}
	k.budget -= int64(len(text))
	k.Output(map[string]any{"output_type": "stream", "name": name, "text": text})
	if over {
		k.end(errOutputLimit)
	}
	return k.ctx.Err() == nil
}

// Output adds an nbformat 4 output.
func (k *Kernel) Output(output map[string]any) {
	k.outputs = append(k.outputs, output)
	k.event(runner.EventOutput, output)
}

// Clear removes the outputs of the cell, as clear_output does.
func (k *Kernel) Clear() {
	k.outputs = []any{}
	k.event(runner.EventClear, nil)
}

// Update replaces the last output of the cell.
func (k *Kernel) Update(output map[string]any) {
	k.outputs[len(k.outputs)-1] = output
	k.event(runner.EventUpdate, output)
}

// Raise ends the cell with an exception; the cell returns after it.
func (k *Kernel) Raise(name, value string) {
	k.failed = true
	k.noMemory = k.noMemory || name == "MemoryError"
	k.Output(map[string]any{"output_type": "error", "ename": name, "evalue": value, "traceback": []string{name + ": " + value}})
}

// Wait returns when the run is ended from outside. Code that is not stubborn
// is interrupted if time is over, or somebody wants it; a session's kernel is lost
// if it is not.
func (k *Kernel) Wait(stubborn bool) {
	interrupts := k.interrupts
	if stubborn {
		interrupts = nil
	}
	select {
	case <-k.ctx.Done():
		k.dead = stubborn
		if !stubborn && errors.Is(context.Cause(k.ctx), errTimeout) {
			k.interrupted()
		}
	case <-interrupts:
		k.interrupted()
	}
}

func (k *Kernel) interrupted() {
	if k.command {
		k.Exit(130)
		return
	}
	k.Raise("KeyboardInterrupt", "")
}

// Die ends the kernel; status is killed or out_of_memory.
func (k *Kernel) Die(status runner.Status) { k.ended = status }

// DieLater has a session's kernel end when the run is over.
func (k *Kernel) DieLater() { k.later = true }

// Exit is the exit code of a command, which returns after it.
func (k *Kernel) Exit(code int) {
	k.exit, k.failed = &code, code != 0
}

// Special makes a file that is not collected, for this reason.
func (k *Kernel) Special(path, reason string) { k.Files[path], k.skipped[path] = "", reason }

func (k *Kernel) event(kind runner.EventKind, output map[string]any) {
	e := runner.Event{Kind: kind, Cell: k.cell}
	if output != nil {
		raw, err := json.Marshal(output)
		if err != nil {
			panic(err) // only strings and maps of them
		}
		e.Output = raw
	}
	k.send(frame.KindEvent, e)
}

// send ignores that the stream is closed: that ends the program by itself.
func (k *Kernel) send(kind frame.Kind, v any) { _ = frame.WriteJSON(k.stream, kind, v) }

func html(text string) map[string]any {
	return map[string]any{
		"output_type": "display_data", "metadata": map[string]any{},
		"data": map[string]any{"text/html": text, "text/plain": "<IPython.core.display.HTML object>"},
	}
}

// lines is what print makes of its arguments.
func lines(text ...string) string { return strings.Join(text, " ") + "\n" }
