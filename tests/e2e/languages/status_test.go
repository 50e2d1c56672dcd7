package languages

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// TestStatuses produces each status by a real run.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc   string
		code   string
		with   map[string]any
		status string
		text   string // is in the text
		hint   string // is in the hint
		within time.Duration
	}{
		{desc: "ok", code: "print('fine')\n6 * 7", status: "ok", text: "fine\n42"},
		{
			desc: "print, then raise", code: "print('before')\nx = 1\nraise ValueError('no good')",
			status: "error", text: "before\n", hint: "ValueError",
		},
		{
			desc: "input", code: "input('name? ')",
			status: "error", text: "StdinNotImplementedError", hint: "input",
		},
		{
			desc: "timeout interrupts, so that the line is known", with: map[string]any{"timeout": 2},
			code:   "print('printed')\nimport time\ntime.sleep(60)",
			status: "timeout", text: "printed\n", hint: "2", within: 5 * time.Second,
		},
		{
			desc: "timeout kills what does not listen", with: map[string]any{"timeout": 2},
			code: `import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('printed', flush=True)
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass`,
			status: "timeout", text: "printed\n", hint: "2", within: 6 * time.Second,
		},
		{
			desc: "a long call in C", with: map[string]any{"timeout": 2},
			code:   "import math\nprint('printed', flush=True)\nmath.factorial(2**30)",
			status: "timeout", text: "printed\n", within: 6 * time.Second,
		},
		{
			desc: "one large allocation", code: "print('before', flush=True)\nx = bytearray(16 << 30)",
			with: map[string]any{"timeout": 60}, status: "out_of_memory", text: "before\n", hint: "memory",
		},
		{
			desc: "many small ones", code: "print('before', flush=True)\nx = []\nwhile True: x.append(bytes(1 << 20) + b'x')",
			with: map[string]any{"timeout": 60}, status: "out_of_memory", text: "before\n", hint: "memory",
		},
		{
			desc: "a MemoryError that nobody caught", code: "raise MemoryError",
			status: "out_of_memory", text: "MemoryError",
		},
		{
			desc: "a worker that is ended for its memory",
			code: `import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'x = []\nwhile True: x.append(bytes(1 << 20) + b"x")']).returncode)`,
			with: map[string]any{"timeout": 60}, status: "out_of_memory", text: "-9\n",
		},
		{
			desc: "killed by itself", code: "import os\nprint('before', flush=True)\nos.kill(os.getpid(), 9)",
			status: "killed", text: "before\n", hint: "process", within: 5 * time.Second,
		},
		{
			desc: "killed after a large print", code: "import os\nprint('x' * 300_000 + 'end', flush=True)\nos.kill(os.getpid(), 9)",
			status: "killed", text: "xend\n", within: 5 * time.Second,
		},
		{
			desc: "a crash", code: "import ctypes\nprint('before', flush=True)\nctypes.string_at(0)",
			status: "killed", text: "before\n", within: 5 * time.Second,
		},
		{
			desc: "endless output", code: "while True: print('spam ' * 20)",
			status: "output_limit", text: "spam spam", hint: "8 MiB",
		},
		{
			desc: "one endless line", code: "print('before', flush=True)\nprint('x' * 10**9)",
			status: "output_limit", text: "before\nxxxxx",
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			request := map[string]any{"code": c.code}
			for k, v := range c.with {
				request[k] = v
			}
			r := shared.Execute(t, request)
			require.Equal(t, c.status, r.Status, r.Text)
			require.Contains(t, r.Text, c.text)
			require.Contains(t, r.Hint, c.hint)
			require.Equal(t, c.status == "ok", r.Hint == "", "a hint if there is something to change: %q", r.Hint)
			require.Equal(t, c.status == "output_limit", r.Truncated)
			require.LessOrEqual(t, len(r.Text), 64<<20)
			if c.within > 0 {
				require.LessOrEqual(t, time.Duration(r.Usage.WallMS)*time.Millisecond, c.within)
			}
			least := int64(10 << 20)
			if shared.InCells(t) {
				least = 4 << 20 // what it has of its own
			}
			require.Greater(t, r.Usage.PeakMemoryBytes, least)
		})
	}
}

// TestFloodAtTheEnd: a thread that prints on while the kernel ends does not keep it from that.
func TestFloodAtTheEnd(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"code": `import atexit, threading, time
f = open('f.txt', 'w')
f.write('whole')
def flood():
    time.sleep(0.05)
    while True: print('noise' * 40_000)
threading.Thread(target=flood, daemon=True).start()
atexit.register(time.sleep, 0.6)`})
	require.Equal(t, "ok", r.Status)
	require.Len(t, r.Files, 1)
	require.Equal(t, len("whole"), r.Files[0].Bytes)
}

func TestTimeoutKeepsTheLine(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, map[string]any{"code": "import time\n\ntime.sleep(60)", "timeout": 1.5})
	require.Equal(t, "timeout", r.Status)
	require.NotNil(t, r.Error)
	require.Equal(t, "KeyboardInterrupt", r.Error.Name)
	require.Equal(t, 3, r.Error.Line)
	require.GreaterOrEqual(t, r.Usage.WallMS, int64(1500))
}

// TestCancelled cancels by the end of the service, which still answers.
func TestCancelled(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "cancelled", "--drain", "100ms", "--pool-size", "1")
	require.Eventually(t, func() bool { return p.Sandboxes(t, "warm") > 0 }, time.Minute, 20*time.Millisecond)
	stopped := make(chan error, 1)
	time.AfterFunc(intoTheRun, func() { stopped <- p.Stop(context.Background()) })
	r := p.Execute(t, map[string]any{"code": "print('before', flush=True)\nimport time\ntime.sleep(60)"})
	require.Equal(t, "cancelled", r.Status)
	require.Contains(t, r.Text, "before\n")
	require.NotEmpty(t, r.Hint)
	require.NoError(t, <-stopped)
}

// TestDisconnect ends a run whose caller has left.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "disconnect", "--pool-size", "0")
	// A busy machine may need longer; one that never needs less does not keep the promise.
	for range 3 {
		if leavesWithin(t, p, 2*time.Second) {
			return
		}
	}
	require.Fail(t, "the sandbox is never gone within 2 s")
}

// intoTheRun is how long code may take to begin.
const intoTheRun = 5 * time.Second

// leavesWithin starts a run, leaves it, and reports whether its sandbox is gone in time.
// That it goes at all is required.
func leavesWithin(t *testing.T, p *service.Service, limit time.Duration) bool {
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/execute", strings.NewReader("import time; time.sleep(60)"))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "text/x-python")
	left := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(req)
		left <- err
	}()
	require.Eventually(t, func() bool { return len(service.SandboxNames(t, p.ID)) == 1 }, time.Minute, 50*time.Millisecond)
	time.Sleep(intoTheRun)
	began := time.Now()
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Eventually(t, func() bool { return len(service.SandboxNames(t, p.ID)) == 0 }, time.Minute, 50*time.Millisecond)
	return time.Since(began) < limit
}
