package docker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

// sessionPatience is how long a step on a busy host may take.
const sessionPatience = 2 * time.Minute

// liveSession is a session in a container of its own.
type liveSession struct {
	runner.Session
	t *testing.T
}

func openSession(t *testing.T, spec runner.SessionSpec) liveSession {
	t.Helper()
	e := newEngine(t, "test-session-"+strings.ToLower(rand.Text()))
	pool := pool.New(e, pool.Options{Log: testLog(t)})
	all := session.New(pool, admission.New(pool, admission.Limits{MaxRunning: 4}), session.Options{MaxWait: sessionPatience, Log: testLog(t)})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sessionPatience)
		defer cancel()
		require.NoError(t, all.Close(ctx))
		require.NoError(t, pool.Close(ctx))
	})
	spec.ID, spec.Owner, spec.Environment = rand.Text(), "tester", environment(t)
	if spec.Limits == (runner.Limits{}) {
		spec.Limits = smallLimits()
	}
	if spec.TTL == 0 {
		spec.TTL = time.Hour
	}
	spec.Idle = time.Hour
	s, err := all.Open(t.Context(), spec)
	require.NoError(t, err)
	return liveSession{s, t}
}

// step is what one run in a session came to.
type step struct {
	*runner.Outcome
	text  string // all streams, results and the names of exceptions, in their order
	files map[string]string
}

func (s liveSession) spec(timeout time.Duration) runner.Spec {
	l := smallLimits()
	l.Timeout = timeout
	return runner.Spec{ID: rand.Text(), Owner: "tester", Limits: l, StopOnError: true}
}

func (s liveSession) do(spec runner.Spec) step {
	s.t.Helper()
	sink := runnertest.NewRecorder(s.t)
	out, err := s.Run(s.t.Context(), spec, sink)
	require.NoError(s.t, err)
	sink.Seal()
	var text strings.Builder
	for _, e := range sink.Events() {
		var o struct {
			Name, Ename string
			Text        json.RawMessage
			Data        map[string]any
		}
		require.NoError(s.t, json.Unmarshal(e.Output, &o))
		var stream string
		_ = json.Unmarshal(o.Text, &stream)
		text.WriteString(stream + o.Ename)
		if plain, ok := o.Data["text/plain"].(string); ok {
			text.WriteString(plain)
		}
	}
	return step{out, text.String(), sink.Files()}
}

// python runs cells with all the time that they need.
func (s liveSession) python(cells ...string) step {
	s.t.Helper()
	spec := s.spec(sessionPatience)
	spec.Notebook = runnertest.Notebook(cells...)
	return s.do(spec)
}

// bash runs a command.
func (s liveSession) bash(line string) step {
	s.t.Helper()
	spec := s.spec(sessionPatience)
	spec.Notebook, spec.Command = runnertest.Notebook(""), line
	return s.do(spec)
}

func (s liveSession) read(path string) string {
	s.t.Helper()
	_, content, err := s.Session.Read(s.t.Context(), path)
	require.NoError(s.t, err)
	defer content.Close()
	data, err := io.ReadAll(content)
	require.NoError(s.t, err)
	return string(data)
}

func TestSessionSteps(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})

	first := s.python("x = 41", "open('a.txt', 'w').write('one')")
	require.Equal(t, runner.StatusOK, first.Status)
	require.Equal(t, map[string]string{"a.txt": "one"}, first.files)

	second := s.python("x + 1")
	require.Equal(t, runner.StatusOK, second.Status)
	require.Equal(t, "42", second.text)
	require.Empty(t, second.files, "it has returned before")
	require.False(t, second.KernelRestarted)
	require.Contains(t, string(second.Notebook), `"execution_count": 3`)

	command := s.bash("cat a.txt; echo err >&2; exit 3")
	require.Equal(t, runner.StatusError, command.Status)
	require.Equal(t, 3, *command.ExitCode)
	require.Contains(t, command.text, "one")
	require.Contains(t, command.text, "err\n")

	require.Equal(t, "42", s.python("x + 1").text)
}

func TestSessionInterruptAndRestart(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	require.NoError(t, s.Interrupt(t.Context()), "nothing runs")
	require.Equal(t, "1", s.python("x = 1", "x").text)

	running := make(chan struct{})
	spec := s.spec(sessionPatience)
	spec.Notebook = runnertest.Notebook("print('begun', flush=True)\nwhile True: pass")
	done := make(chan *runner.Outcome)
	begin := func() {
		sink := runnertest.NewRecorder(t)
		sink.OnOutput = func(runner.Event) {
			select {
			case running <- struct{}{}:
			default:
			}
		}
		out, err := s.Run(t.Context(), spec, sink)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}
	go begin()
	<-running
	require.NoError(t, s.Interrupt(t.Context()))
	out := <-done
	require.Equal(t, runner.StatusError, out.Status)
	require.Contains(t, string(out.Notebook), "KeyboardInterrupt")
	require.False(t, out.KernelRestarted)
	require.Equal(t, "1", s.python("x").text, "the kernel is the same")

	go begin()
	<-running
	require.NoError(t, s.Restart(t.Context()))
	out = <-done
	require.Equal(t, runner.StatusKilled, out.Status)
	require.True(t, out.KernelRestarted)
	after := s.python("x")
	require.Equal(t, "NameError", after.text)
	require.False(t, after.KernelRestarted, "it was told once")
}

func TestSessionKernelEnds(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	own := s.python("import os; open('kept', 'w').close()", "os.kill(os.getpid(), 9)")
	require.Equal(t, runner.StatusKilled, own.Status)
	require.True(t, own.KernelRestarted)
	require.Equal(t, map[string]string{"kept": ""}, own.files)

	next := s.python("import os; print(os.listdir())")
	require.Equal(t, runner.StatusOK, next.Status)
	require.Equal(t, "['kept']\n", next.text)
	require.False(t, next.KernelRestarted)

	kernel := s.python("print(os.getpid())").text
	killer := s.bash("kill -9 " + kernel)
	require.Equal(t, runner.StatusOK, killer.Status)
	require.NotEqual(t, killer.KernelRestarted, s.python("1").KernelRestarted, "it is told once")

	s.python("import os, threading; threading.Timer(0.2, os.kill, (os.getpid(), 9)).start()")
	time.Sleep(time.Second) // nothing tells of it
	idle := s.python("1")
	require.Equal(t, runner.StatusOK, idle.Status)
	require.Equal(t, "1", idle.text)
	require.True(t, idle.KernelRestarted)
	require.False(t, s.python("1").KernelRestarted)
}

func TestSessionTime(t *testing.T) {
	for _, c := range []struct {
		desc, python, bash string
		restarted          bool
	}{
		{desc: "code that heeds the interrupt", python: "import time; time.sleep(1000)"},
		{desc: "code that does not", python: "while True:\n try:\n  while True: pass\n except BaseException: pass", restarted: true},
		{desc: "a command that heeds it", bash: "echo begun; sleep 1000"},
		{desc: "a command that does not", bash: "trap '' INT; echo begun; sleep 1000; sleep 1000"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := openSession(t, runner.SessionSpec{})
			s.python("x = 1")
			spec := s.spec(time.Second)
			spec.Notebook, spec.Command = runnertest.Notebook(c.python), c.bash
			begun := time.Now()
			out := s.do(spec)
			require.Less(t, time.Since(begun), 30*time.Second)
			require.Equal(t, runner.StatusTimeout, out.Status)
			require.Equal(t, c.restarted, out.KernelRestarted)
			require.Nil(t, out.ExitCode)
			want := "1"
			if c.restarted {
				want = "NameError"
			}
			require.Equal(t, want, s.python("x").text)
		})
	}
}

func TestSessionFiles(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	ctx := t.Context()
	big := strings.Repeat("0123456789", 1<<20)
	busy := make(chan step)
	spec := s.spec(sessionPatience)
	spec.Notebook = runnertest.Notebook("import os, time\nwhile not os.path.exists('stop'): time.sleep(0.01)")
	go func() { busy <- s.do(spec) }()

	for name, content := range map[string]string{"a": "", "sub/deep/b.txt": big, "c": "c"} {
		info, err := s.Write(ctx, name, strings.NewReader(content))
		require.NoError(t, err)
		require.Equal(t, runner.FileInfo{Path: name, Kind: runner.FileRegular, Size: int64(len(content)), Modified: info.Modified}, info)
		require.Equal(t, content, s.read(name))
	}
	_, err := s.Move(ctx, "c", "sub/c", false)
	require.NoError(t, err)
	_, err = s.Move(ctx, "a", "sub/c", false)
	require.ErrorContains(t, err, "there is a file of that name")
	_, err = s.Move(ctx, "a", "sub/c", true)
	require.NoError(t, err)
	list, more, err := s.List(ctx, "", true)
	require.NoError(t, err)
	require.False(t, more)
	var names []string
	for _, f := range list {
		names = append(names, f.Path)
	}
	require.Equal(t, []string{"sub", "sub/c", "sub/deep", "sub/deep/b.txt"}, names)
	_, _, err = s.Session.Read(ctx, "none")
	require.ErrorContains(t, err, "no such file")
	require.NoError(t, s.Delete(ctx, "sub/deep"))
	require.Error(t, s.Delete(ctx, "sub/deep"))

	_, err = s.Write(ctx, "stop", strings.NewReader("x"))
	require.NoError(t, err)
	out := <-busy
	require.Equal(t, runner.StatusOK, out.Status)
	require.Empty(t, out.files, "what was written is no result")
	changed := s.python("open('sub/c', 'w').write('new'); os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo')")
	require.Equal(t, map[string]string{"sub/c": "new"}, changed.files)
	require.Len(t, changed.Skipped, 2)
	again := s.python("1")
	require.Empty(t, again.files)
	require.Empty(t, again.Skipped)

	for _, path := range []string{"link", "fifo"} {
		_, _, err := s.Session.Read(ctx, path)
		var refused *runner.FileError
		require.ErrorAs(t, err, &refused, path)
		require.Equal(t, runner.FileNotPlain, refused.Code, path)
	}
	_, err = s.Write(ctx, "full", strings.NewReader(strings.Repeat(big, 4)))
	var full *runner.FileError
	require.ErrorAs(t, err, &full)
	require.Equal(t, runner.FileNoRoom, full.Code)
	list, _, err = s.List(ctx, "", false)
	require.NoError(t, err)
	require.Len(t, list, 4, "nothing is left of it")
}

// TestSessionBackground: what a command leaves behind lives on, and goes on writing.
func TestSessionStreamsByPath(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	out := s.bash("echo out > /dev/stdout; echo err | tee /dev/stderr > /dev/null")
	require.Equal(t, runner.StatusOK, out.Status)
	require.ElementsMatch(t, []string{"out", "err"}, strings.Fields(out.text))
}

// TestSessionDisplay has the display come again after what ended every process, in a job.
func TestSessionDisplay(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	const connect = "import os, socket\nd = socket.socket(socket.AF_UNIX)\nd.connect('/tmp/.X11-unix/X99')\n" +
		"d.sendall(b'l\\0\\x0b\\0\\0\\0\\0\\0\\0\\0\\0\\0')\nprint(d.recv(1) == b'\\x01')"
	require.Equal(t, "True\n", s.python(connect).text)
	spec := s.spec(time.Second)
	spec.Notebook = runnertest.Notebook("while True:\n try:\n  while True: pass\n except BaseException: pass")
	require.True(t, s.do(spec).KernelRestarted)
	require.Equal(t, "True\n", s.python(connect).text)
}

func TestSessionBackground(t *testing.T) {
	s := openSession(t, runner.SessionSpec{Env: map[string]string{"GREETING": "hello"}})
	begun := time.Now()
	out := s.bash("echo $GREETING; (while sleep 0.02; do echo noise; echo noise >&2; date +%N > new && mv new alive || exit; done) & sleep 0.1")
	require.Less(t, time.Since(begun), 30*time.Second)
	require.Equal(t, runner.StatusOK, out.Status)
	require.Contains(t, out.text, "hello\n")
	require.Equal(t, "hello", strings.Trim(s.python("import os; os.environ['GREETING']").text, "'"))
	require.Eventually(t, func() bool {
		list, _, err := s.List(t.Context(), "", false)
		return err == nil && len(list) > 0 && list[0].Path == "alive"
	}, time.Minute, 10*time.Millisecond)
	first := s.read("alive")
	require.Eventually(t, func() bool { return s.read("alive") != first && s.read("alive") != "" }, time.Minute, 100*time.Millisecond)
	require.NoError(t, s.Restart(t.Context()))
	last := s.read("alive")
	time.Sleep(200 * time.Millisecond)
	require.Equal(t, last, s.read("alive"), "nothing lives after a restart")
}

// TestSessionFlood: who writes faster than it is read waits, and neither side's memory grows.
func TestSessionFlood(t *testing.T) {
	const most = 256 << 20 // bytes, of which an idle sandbox has 70 MiB
	for _, c := range []struct {
		desc, write string
	}{
		{"lines", "print('noise' * 1000)"},
		{"a descriptor", "os.write(1, b'noise' * 1000)"},
		{"large writes", "sys.stdout.write('noise' * 100_000)"},
		{"flushed lines", "print('noise' * 1000, flush=True)"},
		{"displays", "display({'text/html': 'x' * 500_000}, raw=True)"},
		{"what is long in JSON", "print('\\0' * 10_000)"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := openSession(t, runner.SessionSpec{})
			s.python("import os, sys, threading\nn = 0\ndef flood():\n global n\n while True:\n  " + c.write +
				"\n  n += 1\nfor _ in range(3): threading.Thread(target=flood, daemon=True).start()")
			last := 0
			for range 3 {
				time.Sleep(300 * time.Millisecond) // nobody but the session reads
				out := s.python("open('n', 'w').write(str(n)) and None")
				require.Contains(t, []runner.Status{runner.StatusOK, runner.StatusOutputLimit}, out.Status)
				require.Less(t, out.Usage.PeakMemory, int64(most))
				n, err := strconv.Atoi(out.files["n"])
				require.NoError(t, err)
				require.Greater(t, n, last, "it goes on")
				last = n
			}
		})
	}
}

// TestSessionManyFlush: threads that flush at once do not keep each other from it.
func TestSessionManyFlush(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	out := s.python(`import threading
def work():
    for _ in range(2000): print("x", flush=True)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()`)
	require.Equal(t, runner.StatusOK, out.Status)
	require.Equal(t, 8*2000, strings.Count(out.text, "x"))
}

// TestSessionKernelLeaves: a kernel that leaves by an exit of its loop ends at once.
func TestSessionKernelLeaves(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	s.python("import asyncio, sys\nprint('x', flush=True)\nasync def leave(): sys.exit()\n" +
		"task = asyncio.get_running_loop().create_task(leave())")
	require.Eventually(t, func() bool {
		out := s.python("'task' in globals()")
		return out.Status == runner.StatusOK && out.text == "False"
	}, 20*time.Second, time.Second)
}

// TestSessionFullDescriptor: what a flood has filled while nobody read is emptied again.
func TestSessionFullDescriptor(t *testing.T) {
	t.Parallel()
	s := openSession(t, runner.SessionSpec{})
	s.python(`import os, subprocess, threading
over = False
def flood():
    while not over: os.write(2, b"noise" * 1000)
threading.Thread(target=flood, daemon=True).start()`)
	require.Equal(t, runner.StatusOK, s.bash("sleep 15").Status) // a flush waits for 10
	out := s.python("over = True", "subprocess.run('echo child >&2', shell=True, timeout=30)", "print('on')")
	require.Equal(t, runner.StatusOK, out.Status, out.text)
	require.Contains(t, out.text, "on\n")
}

// TestSessionHostile has living processes of the session stop, kill and flood whatever they can.
func TestSessionHostile(t *testing.T) {
	s := openSession(t, runner.SessionSpec{})
	ctx := t.Context()
	// All but the kernel and these themselves.
	s.python(`import os, subprocess, sys, threading
code = f'''
import os, signal, time
spared = {{{os.getpid()}, os.getpid(), os.getppid()}}
while True:
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        if pid not in spared:
            for number in (signal.SIGSTOP, signal.SIGKILL):
                try: os.kill(pid, number)
                except OSError: pass
'''
subprocess.Popen([sys.executable, "-c", code])
def flood():
    while True: print("noise" * 1000)
threading.Thread(target=flood, daemon=True).start()`)
	content := strings.Repeat("x", 1<<20)
	for range 5 {
		_, err := s.Write(ctx, "a", strings.NewReader(content))
		require.NoError(t, err)
		require.Equal(t, content, s.read("a"))
		spec := s.spec(sessionPatience)
		spec.Notebook = runnertest.Notebook("open('b', 'a').write('b') and None")
		out := s.do(spec)
		require.Contains(t, []runner.Status{runner.StatusOK, runner.StatusOutputLimit}, out.Status)
		require.Contains(t, out.files, "b")
		require.NotContains(t, out.files, "a")
	}
	require.NoError(t, s.Restart(ctx))
	require.Equal(t, "1", s.python("1").text)
	require.Equal(t, 0, *s.bash("true").ExitCode)
}
