package cells_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// containers has what the same scripts print in containers.
const containers = "../docker/testdata"

// TestInside holds what code sees of its cell against what it sees of a container. What is
// different is in testdata/different.json, and SECURITY.md explains each line of it.
func TestInside(t *testing.T) {
	have := runScript(t, "inside.py")
	raw, err := os.ReadFile(filepath.Join(containers, "inside.json"))
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(raw, &want))
	different := map[string]any{}
	compare(different, "", want, have)
	golden(t, "different.json", different)
}

// compare notes at which paths two documents differ.
func compare(different map[string]any, path string, container, cell any) {
	a, isMap := container.(map[string]any)
	b, both := cell.(map[string]any)
	if !isMap || !both {
		if !equal(container, cell) {
			different[path] = map[string]any{"container": container, "cell": cell}
		}
		return
	}
	for key := range a {
		compare(different, path+"/"+key, a[key], b[key])
	}
	for key := range b {
		if _, known := a[key]; !known {
			compare(different, path+"/"+key, nil, b[key])
		}
	}
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// TestRefusals tries what must be refused: the same as in a container.
func TestRefusals(t *testing.T) {
	have := runScript(t, "refusals.py")
	raw, err := os.ReadFile(filepath.Join(containers, "refusals.json"))
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(raw, &want))
	for _, label := range []string{"int 0x80", "x32 getpid"} { // there are none on other machines
		if outcome, ok := have[label]; ok {
			require.Equal(t, "SIGSYS", outcome, label)
			delete(have, label)
		}
	}
	require.Equal(t, want, have)
}

// TestPopularProgramsGoOn: with the filter, the bounds and the masks that there are.
func TestPopularProgramsGoOn(t *testing.T) {
	for name, outcome := range runScript(t, "popular.py") {
		require.Equal(t, "ok", outcome, name)
	}
}

// TestSocketsHoldLittle: on cgroup v1 no limit of memory holds for what is in a socket.
func TestSocketsHoldLittle(t *testing.T) {
	const bound = 512 << 20 // what SECURITY.md names
	for kind, v := range runScript(t, "buffers.py") {
		got := v.(map[string]any)
		require.Equal(t, "No buffer space available", got["end"], kind)
		require.Less(t, got["held"], float64(bound), kind)
		require.Greater(t, got["held"], float64(10<<20), "%s: something was measured", kind)
	}
}

// runScript runs a file of the containers' tests as the one cell of a run, and returns the
// JSON that it prints.
func runScript(t *testing.T, name string) map[string]any {
	source, err := os.ReadFile(filepath.Join(containers, name))
	require.NoError(t, err)
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	return runCode(t, engine, string(source)).(map[string]any)
}

// runCode runs one cell of a notebook, and returns the JSON that it prints.
func runCode(t *testing.T, engine runner.Engine, source string) (v any) {
	t.Helper()
	text := printed(t, engine, spec(t, "import warnings; warnings.simplefilter('ignore')\n"+source))
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// printed makes a run that goes well, and returns what it prints to its standard output.
func printed(t *testing.T, engine runner.Engine, s runner.Spec) string {
	t.Helper()
	recorder := runnertest.NewRecorder(t)
	out, err := runnertest.Once(t.Context(), engine, testLog(t), s, recorder)
	require.NoError(t, err)
	recorder.Seal()
	var text strings.Builder
	for _, e := range recorder.Events() {
		var output struct{ Name, Text string }
		require.NoError(t, json.Unmarshal(e.Output, &output))
		if output.Name == "stdout" {
			text.WriteString(output.Text)
		}
	}
	require.Equal(t, runner.StatusOK, out.Status, "%s", out.Notebook)
	return text.String()
}

// golden compares v, as JSON, with a file of testdata, or writes it.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	have, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, append(have, '\n'), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(have), "run with -update, and look at what changes")
}

// TestNothingIsCountedTogether: one cell uses up what the kernel of the host counts by user;
// another one of the same worker has what it needs.
func TestNothingIsCountedTogether(t *testing.T) {
	for _, c := range runnertest.AllCounted {
		c.Lower(t) // before there is a worker
	}
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	for _, c := range runnertest.AllCounted {
		t.Run(c.Desc, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			held, ended := make(chan struct{}), make(chan error, 1)
			greedy := runnertest.NewRecorder(t)
			greedy.OnOutput = func(runner.Event) { close(held) }
			go func() {
				code := strings.ReplaceAll(c.Hold, "MOST", strconv.Itoa(c.Most)) + "\nimport time; time.sleep(100)"
				_, err := runnertest.Once(ctx, engine, testLog(t), spec(t, code), greedy)
				ended <- err
			}()
			select {
			case <-held:
			case err := <-ended:
				require.Fail(t, "it ended", "%v %v", err, greedy.Events())
			}
			runCode(t, engine, c.Use+"\nprint('true')")
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

func spec(t *testing.T, code string) runner.Spec {
	limits := runner.DefaultLimits()
	limits.Timeout = runnertest.Patient(2 * time.Minute) // programs of all kinds, one after the other
	return runner.Spec{ID: "walls", Environment: environment(t), StopOnError: true, Limits: limits, Notebook: runnertest.Notebook(code)}
}

// TestNobodyIsToldWhatOthersOpen: the image's files are those of all cells of a worker. Of a file of
// its own a cell is told what is written. Of a device it cannot change what others see.
func TestNobodyIsToldWhatOthersOpen(t *testing.T) {
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	got := runCode(t, engine, `import ctypes, errno, fcntl, json, os
libc = ctypes.CDLL(None, use_errno=True)
instance, words = libc.inotify_init1(os.O_NONBLOCK), []
for mask in (0x01, 0x10, 0x20, 0xfff):  # IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN, all of linux/inotify.h
    done = libc.inotify_add_watch(instance, b"/etc/os-release", mask)
    words.append("told" if done >= 0 else errno.errorcode[ctypes.get_errno()])
open("mine", "w").close()
libc.inotify_add_watch(instance, b"mine", 0x02)  # IN_MODIFY
with open("mine", "w") as mine:
    mine.write("new")
words.append(int.from_bytes(os.read(instance, 100)[4:8], "little"))
def refused(call):
    try:
        call()
    except OSError as e:
        return errno.errorcode[e.errno]
words.append(refused(lambda: fcntl.fcntl(os.open("/etc", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS)))
words += sorted({refused(lambda: os.utime(f"/dev/{name}")) for name in ("null", "zero", "full", "random", "urandom", "tty")})
print(json.dumps(words))`)
	require.Equal(t, []any{"EPERM", "EPERM", "EPERM", "EPERM", 2.0, "EPERM", "EROFS"}, got)
}

// TestNothingIsDrawnTwice: cells are forked from one process, and nothing of chance is the same
// in two of them. Forks of the same sources draw differently too.
func TestNothingIsDrawnTwice(t *testing.T) {
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	source, err := os.ReadFile(filepath.Join("testdata", "chance.py"))
	require.NoError(t, err)
	seen := map[string]string{}
	for range 3 {
		for name, drawn := range runCode(t, engine, string(source)).(map[string]any) {
			require.NotContains(t, seen, drawn, name)
			seen[drawn.(string)] = name
		}
	}
}

// TestOrphansAreBuried: processes that nobody waits for leave nothing, or after 256 of them a run would have no
// more processes.
func TestOrphansAreBuried(t *testing.T) {
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	got := runCode(t, engine, `import os, json, subprocess, sys, time
subprocess.run([sys.executable, "-S", "-c", """import os
for _ in range(10_000):
    if os.fork() == 0:
        os.fork()
        os._exit(0)
    os.wait()
"""], check=True)
time.sleep(0.5)
print(json.dumps([p for p in os.listdir("/proc") if p.isdigit() and "State:\tZ" in open(f"/proc/{p}/status").read()]))`)
	require.Empty(t, got)
}

// TestForkedKernels: a child of the code that goes on as a kernel takes nothing of its parent's.
func TestForkedKernels(t *testing.T) {
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	s := spec(t, "")
	code, want := []string{"import os; child = os.fork()"}, ""
	for i := range 20 {
		code = append(code, fmt.Sprintf("print(%d, child > 0)", i))
		want += fmt.Sprintf("%d True\n", i)
	}
	s.Notebook = runnertest.Notebook(code...)
	require.Equal(t, want, printed(t, engine, s))
}

// TestAlgebraHasAllCores: the zygote has one thread, and what is forked from it is not kept
// to that.
func TestAlgebraHasAllCores(t *testing.T) {
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	got := runCode(t, engine, `import ctypes, json, os, numpy
path, = {line.split()[-1] for line in open("/proc/self/maps") if "numpy.libs" in line and "openblas" in line}
threads = ctypes.CDLL(path).scipy_openblas_get_num_threads64_()
a = numpy.random.rand(400, 400)
print(json.dumps([threads == len(os.sched_getaffinity(0)), bool(numpy.allclose(a @ numpy.linalg.inv(a), numpy.eye(400)))]))`)
	require.Equal(t, []any{true, true}, got)
}

// TestRehearsalIsNotSeen: before the fork cells have run and a figure has been drawn. Code finds
// neither.
func TestRehearsalIsNotSeen(t *testing.T) {
	engine := newEngine(t, "test-walls-"+strings.ToLower(rand.Text()))
	got := runCode(t, engine, `import gc, json, os
import matplotlib, matplotlib.figure, matplotlib.pyplot as plt
changed = [k for k in matplotlib.rcParams if k != "backend" and matplotlib.rcParams[k] != matplotlib.rcParamsDefault[k]]
gc.unfreeze()
figures = sum(isinstance(thing, matplotlib.figure.Figure) for thing in gc.get_objects())
open_files = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]
print(json.dumps([plt.get_fignums(), figures, changed, [path for path in open_files if "/fonts/" in path], len(In), Out, list(map(str, _dh))]))`)
	require.Equal(t, []any{[]any{}, 0.0, []any{}, []any{}, 2.0, map[string]any{}, []any{"/mnt/data"}}, got)
}
