package runnertest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// bigInput does not fill its last frame.
var bigInput = strings.Repeat("0123456789abcdef", 50_000) + "end"

// runCases are the ways in which runs end.
func runCases() []runCase {
	return []runCase{
		{
			desc:   "text",
			cells:  []string{CellHello, CellHello},
			status: runner.StatusOK,
			check: func(t *testing.T, r *ran) {
				r.requireStdout(t, "hello\n")
				require.Equal(t, "hello\n", r.executed.Stdout(1))
				events := r.sink.Events() // two, or more if a busy machine sends a line in parts
				require.Equal(t, []int{0, 1}, []int{events[0].Cell, events[len(events)-1].Cell})
			},
		}, {
			desc:   "displays are updated and cleared",
			cells:  []string{CellDisplay},
			status: runner.StatusOK,
			stdout: "end\n",
			events: []runner.EventKind{runner.EventOutput, runner.EventUpdate, runner.EventClear, runner.EventOutput},
		}, {
			desc:   "no cell",
			cells:  []string{},
			status: runner.StatusOK,
			check:  func(t *testing.T, r *ran) { require.Empty(t, r.sink.Events()) },
		}, {
			desc:   "an exception",
			cells:  []string{CellRaise, CellHello},
			status: runner.StatusError,
			errors: []string{"ValueError"},
			check:  func(t *testing.T, r *ran) { require.Equal(t, "hello\n", r.executed.Stdout(1)) },
		}, {
			desc:        "an exception that ends the run",
			cells:       []string{CellRaise, CellHello},
			stopOnError: true,
			status:      runner.StatusError,
			errors:      []string{"ValueError"},
			check:       func(t *testing.T, r *ran) { require.Empty(t, r.executed.Cells[1].Outputs) },
		}, {
			desc:   "a question that nobody answers",
			cells:  []string{CellInput},
			status: runner.StatusError,
			errors: []string{"StdinNotImplementedError"},
		}, {
			desc:   "time is over",
			cells:  []string{CellSleep, CellHello},
			status: runner.StatusTimeout,
			stdout: "started\n",
			errors: []string{"KeyboardInterrupt"},
			check: func(t *testing.T, r *ran) {
				r.requireStdout(t, "started\n")
				require.GreaterOrEqual(t, r.out.Usage.Wall, r.limits.Timeout)
				require.Empty(t, r.executed.Cells[1].Outputs)
			},
		}, {
			desc:   "time is over for code that ignores it",
			cells:  []string{CellStubborn},
			status: runner.StatusTimeout,
			stdout: "started\n",
		}, {
			desc:   "cancelled",
			cells:  []string{CellSleep},
			cancel: true,
			status: runner.StatusCancelled,
			stdout: "started\n",
		}, {
			desc:   "cancelled, code that ignores it",
			cells:  []string{CellStubborn},
			cancel: true,
			status: runner.StatusCancelled,
			stdout: "started\n",
		}, {
			desc:   "killed",
			cells:  []string{CellHello, CellKill, CellHello},
			status: runner.StatusKilled,
			stdout: "hello\n",
		}, {
			desc:   "more memory than there is",
			cells:  []string{CellHello, CellAllocate, CellHello},
			status: runner.StatusOutOfMemory,
			stdout: "hello\n",
		}, {
			desc:   "more memory than there is, seen by the code",
			cells:  []string{CellMemoryError},
			status: runner.StatusOutOfMemory,
			errors: []string{"MemoryError"},
		}, {
			desc:   "more output than may be",
			cells:  []string{CellFlood, CellHello},
			limits: func(l *runner.Limits) { l.Output = 100_000 },
			status: runner.StatusOutputLimit,
			check: func(t *testing.T, r *ran) {
				text := r.executed.Stdout(0)
				require.Greater(t, len(text), 90_000, "what came before is kept")
				require.LessOrEqual(t, len(text), 100_000)
				require.Equal(t, strings.Repeat("x", 999)+"\n", text[:1000])
				require.Empty(t, r.executed.Cells[1].Outputs)
			},
		}, {
			desc:   "environment",
			cells:  []string{CellEnv},
			env:    map[string]string{"NOTEBOX_TEST": "a\nb=c ü"},
			status: runner.StatusOK,
			stdout: "a\nb=c ü\n",
		}, {
			desc:   "files",
			cells:  []string{CellFiles},
			inputs: map[string]string{"in.csv": "a,b\n", "folder/deep.txt": "deep", "changed.txt": "old", "empty": ""},
			status: runner.StatusOK,
			stdout: "a,b\ndeep\n",
			files:  map[string]string{"changed.txt": "oldnew", "created.txt": "created", "odd \"name\"\n.txt": "odd"},
		}, {
			desc:   "files of many frames",
			cells:  []string{CellBigFiles},
			inputs: map[string]string{"big": bigInput},
			status: runner.StatusOK,
			stdout: fmt.Sprintf("%d %x\n", len(bigInput), sha256.Sum256([]byte(bigInput))),
			files:  map[string]string{"bigger": bigInput + bigInput},
		}, {
			desc:    "more files than may be",
			cells:   []string{CellThreeFiles},
			limits:  func(l *runner.Limits) { l.Files = 2 },
			status:  runner.StatusOK,
			files:   map[string]string{"a": "0123456789", "b": "0123456789"},
			skipped: map[string]string{"/mnt/data/c": "more than 2 files"},
		}, {
			desc:    "larger files than may be",
			cells:   []string{CellThreeFiles},
			limits:  func(l *runner.Limits) { l.FileSize = 19 },
			status:  runner.StatusOK,
			files:   map[string]string{"a": "0123456789"},
			skipped: map[string]string{"/mnt/data/b": "more than 19 bytes in all files", "/mnt/data/c": "more than 19 bytes in all files"},
		}, {
			desc:    "what is no regular file",
			cells:   []string{CellSpecialFiles},
			status:  runner.StatusOK,
			files:   map[string]string{"kept": "kept"},
			skipped: map[string]string{"/mnt/data/link": "symbolic link", "/mnt/data/fifo": "not a regular file"},
		},
	}
}
