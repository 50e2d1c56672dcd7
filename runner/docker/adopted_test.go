package docker

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
	"notebox/runner/runnertest"
)

// wire is the stream of a session's sandbox, frame by frame.
type wire struct {
	t *testing.T
	runner.Sandbox
}

func (w wire) send(kind frame.Kind, v any) {
	w.t.Helper()
	if v == nil {
		require.NoError(w.t, frame.Write(w, kind, nil))
		return
	}
	require.NoError(w.t, frame.WriteJSON(w, kind, v))
}

// until reads to the next frame of that kind, past others.
func (w wire) until(kind frame.Kind) []byte {
	w.t.Helper()
	for {
		got, payload, err := frame.Read(w, 64<<20)
		require.NoError(w.t, err)
		require.NotEqual(w.t, frame.KindFailed, got, string(payload))
		if got == kind {
			return payload
		}
	}
}

func (w wire) job(code string) {
	w.t.Helper()
	nb := runnertest.Notebook(code)
	w.send(frame.KindJob, frame.Job{
		NotebookBytes: len(nb), Inputs: []string{}, Env: map[string]string{}, StopOnError: true,
		TimeoutSeconds: 600, MaxOutput: 8 << 20, MaxFiles: 10, MaxFileBytes: 1 << 20,
	})
	require.NoError(w.t, frame.Write(w, frame.KindNotebookIn, nb))
	w.send(frame.KindGo, nil)
}

// result returns what a job's cell evaluates to.
func (w wire) result(code string) string {
	w.t.Helper()
	w.job(code)
	var event struct {
		Output struct {
			Ename string
			Data  map[string]string
		}
	}
	require.NoError(w.t, json.Unmarshal(w.until(frame.KindEvent), &event))
	w.until(frame.KindDone)
	return event.Output.Ename + event.Output.Data["text/plain"]
}

// resumed attaches anew, and returns what there is then.
func resumed(t *testing.T, e *Engine, name string, token []byte) (wire, frame.Resumed) {
	t.Helper()
	s, err := e.Adopt(t.Context(), name)
	require.NoError(t, err)
	w := wire{t, s}
	nonce := make([]byte, frame.TokenSize)
	_, _ = rand.Read(nonce)
	_, err = w.Write(append(bytes.Clone(token), nonce...))
	require.NoError(t, err)
	last := make([]byte, frame.TokenSize)
	for !bytes.Equal(last, nonce) {
		copy(last, last[1:])
		_, err := io.ReadFull(w, last[len(last)-1:])
		require.NoError(t, err)
	}
	kind, payload, err := frame.Read(w, 0)
	require.NoError(t, err)
	require.Equal(t, frame.KindResumed, kind)
	r, err := frame.Decode[frame.Resumed](kind, payload)
	require.NoError(t, err)
	require.Equal(t, frame.Version, r.Version)
	return w, r
}

// TestSessionAdopted has a service vanish in the middle of what it does.
func TestSessionAdopted(t *testing.T) {
	e := newEngine(t, "test-adopted-"+strings.ToLower(rand.Text()))
	s, err := e.Start(t.Context(), environment(t), smallLimits())
	require.NoError(t, err)
	token := make([]byte, frame.TokenSize)
	_, _ = rand.Read(token)
	w := wire{t, s}
	w.send(frame.KindWarm, runnertest.Warm())
	w.until(frame.KindReady)
	w.send(frame.KindSession, frame.Session{Token: token, TTLSeconds: 3600, Env: map[string]string{}})
	w.until(frame.KindKept)
	name, err := e.Keep(t.Context(), s)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Kill(t.Context())) }()
	require.Equal(t, "1", w.result("x = 1; x"))

	for _, c := range []struct {
		desc, code string
		rest       []byte // written last
		restarted  bool
	}{
		{desc: "between jobs"},
		{desc: "in the middle of a job", rest: []byte{frame.Version, byte(frame.KindNotebookIn), 0, 0, 1, 0, 'x'}},
		{desc: "while code floods", code: "while True: print('x' * 10000)"},
		{desc: "while code sleeps", code: "print(1)\nimport time; time.sleep(1000)"},
		{desc: "while code heeds no interrupt", code: "print(1)\nwhile True:\n try:\n  while True: pass\n except BaseException: pass", restarted: true},
	} {
		t.Log(c.desc)
		if c.code != "" {
			w.job(c.code)
			w.until(frame.KindEvent)
		}
		_, err := w.Write(c.rest)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		time.Sleep(100 * time.Millisecond) // code goes on without anybody
		var r frame.Resumed
		w, r = resumed(t, e, name, token)
		require.Equal(t, c.restarted, r.KernelRestarted, c.desc)
		require.InDelta(t, 3600, r.TTLSeconds, 600)
		want := "1"
		if c.restarted {
			want = "NameError"
		}
		require.Equal(t, want, w.result("x"), c.desc)
	}
}

// TestSessionOnABusyMachine has a sandbox get little of a processor, as on a machine that
// others use: what is interrupted has the time that it needs, and nothing is lost.
func TestSessionOnABusyMachine(t *testing.T) {
	e := newEngine(t, "test-busy-"+strings.ToLower(rand.Text()))
	s, err := e.Start(t.Context(), environment(t), smallLimits())
	require.NoError(t, err)
	w := wire{t, s}
	defer func() { require.NoError(t, w.Kill(t.Context())) }()
	w.send(frame.KindWarm, runnertest.Warm())
	w.until(frame.KindReady)
	w.send(frame.KindSession, frame.Session{Token: make([]byte, frame.TokenSize), TTLSeconds: 3600, Env: map[string]string{}})
	w.until(frame.KindKept)
	name, err := e.Keep(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "1", w.result("x = 1; x"))
	// A twentieth of a core: what takes 0.1 s elsewhere takes two seconds.
	busy := container.UpdateConfig{Resources: container.Resources{NanoCPUs: 1e9 / 20}}
	_, err = e.api.ContainerUpdate(t.Context(), name, busy)
	require.NoError(t, err)
	for _, c := range []struct{ desc, code string }{
		{desc: "while code floods", code: "while True: print('x' * 10000)"},
		{desc: "while threads compute", code: threads},
	} {
		w.job(c.code)
		w.until(frame.KindEvent)
		w.send(frame.KindCancel, nil)
		outcome, err := frame.Decode[frame.Outcome](frame.KindOutcome, w.until(frame.KindOutcome))
		require.NoError(t, err)
		require.False(t, outcome.KernelRestarted, c.desc)
		w.until(frame.KindDone)
		require.Equal(t, "1", w.result("x"), c.desc)
	}
}

// threads keeps the main thread, which alone takes an interrupt, from running most of the time.
const threads = `
import threading
end = threading.Event()
def compute():
    while not end.is_set(): sum(range(10_000))
for _ in range(4): threading.Thread(target=compute).start()
print(1)
try:
    while True: sum(range(10_000))
finally:
    end.set()
`

// TestSessionTTL: the sandbox ends by itself when its time is over, whoever is there.
func TestSessionTTL(t *testing.T) {
	e := newEngine(t, "test-ttl-"+strings.ToLower(rand.Text()))
	s, err := e.Start(t.Context(), environment(t), smallLimits())
	require.NoError(t, err)
	w := wire{t, s}
	w.send(frame.KindWarm, runnertest.Warm())
	w.until(frame.KindReady)
	w.send(frame.KindSession, frame.Session{Token: make([]byte, frame.TokenSize), TTLSeconds: 1, Env: map[string]string{}})
	w.until(frame.KindKept)
	name, err := e.Keep(t.Context(), s)
	require.NoError(t, err)
	w.job("while True: print('x' * 1000)")
	require.NoError(t, w.Close(), "and nobody reads")
	require.Eventually(t, func() bool { return e.runs(t.Context(), name) != nil }, time.Minute, 100*time.Millisecond)
	require.NoError(t, s.Kill(t.Context()))
}
