package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/client"
	"notebox/tests/starter"
)

// answers is a notebox that answers every run the same.
type answers struct {
	status  int
	reply   map[string]any
	content string // of the file at /file
	took    time.Duration

	mu              sync.Mutex
	runs, most, now int
}

func (a *answers) enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs++
	a.now++
	a.most = max(a.most, a.now)
}

func (a *answers) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now--
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/file" {
		fmt.Fprint(w, a.content)
		return
	}
	a.enter()
	defer a.leave()
	time.Sleep(a.took)
	if a.reply == nil {
		http.Error(w, "full", a.status)
		return
	}
	reply := map[string]any{"status": "ok", "text": "hello", "files": []any{map[string]any{
		"name": "f", "bytes": 8, "sha256": "abc", "url": "http://" + r.Host + "/file",
	}}}
	for k, v := range a.reply {
		reply[k] = v
	}
	_ = json.NewEncoder(w).Encode(reply)
}

func openTestCaller(t *testing.T, a *answers, c benchCase) *caller {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	caller, err := newCaller(server.URL, c, "")
	require.NoError(t, err)
	t.Cleanup(caller.close)
	return caller
}

func TestOnce(t *testing.T) {
	f := &expectedFile{name: "f", bytes: 8, sha256: "abc", block: []byte("abcd")}
	for _, c := range []struct {
		desc   string
		answer *answers
		file   *expectedFile
		wrong  string
	}{
		{desc: "a run", answer: &answers{reply: map[string]any{}}},
		{desc: "a run and its file", answer: &answers{reply: map[string]any{}, content: "abcdabcd"}, file: f},
		{desc: "a file that is not what was written", answer: &answers{reply: map[string]any{}, content: "abcdabcx"}, file: f, wrong: "is not what was written"},
		{desc: "a wrong text", answer: &answers{reply: map[string]any{"text": "bye"}}, wrong: "is not in the text"},
		{desc: "refused", answer: &answers{status: 503}, wrong: "refused"},
		{desc: "a failure", answer: &answers{status: 500}, wrong: "500"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			c.answer.took = 5 * time.Millisecond
			took, err := openTestCaller(t, c.answer, benchCase{name: "c", text: []string{"hello"}, file: c.file}).once(t.Context())
			require.Equal(t, 1, c.answer.runs, "one run and no more")
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			require.Greater(t, took, c.answer.took)
		})
	}
}

// TestAttack: so many callers, no more and no fewer, and each waits for its reply.
func TestAttack(t *testing.T) {
	a := &answers{reply: map[string]any{}, took: 10 * time.Millisecond}
	hits, err := openTestCaller(t, a, benchCase{text: []string{"hello"}}).attack(t.Context(), 4, 300*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, 4, a.most)
	require.Len(t, hits, a.runs)
	require.InDelta(t, 120, len(hits), 60, "4 callers, 30 runs each")
}

func TestAttackCountsRefusals(t *testing.T) {
	hits, err := openTestCaller(t, &answers{status: 429, took: time.Millisecond}, benchCase{}).attack(t.Context(), 1, 50*time.Millisecond)
	require.NoError(t, err)
	require.True(t, hits[0].refused)
}

func TestAttackEndsAtAWrongReply(t *testing.T) {
	a := &answers{reply: map[string]any{"status": "error"}}
	_, err := openTestCaller(t, a, benchCase{}).attack(t.Context(), 2, time.Minute)
	require.ErrorContains(t, err, `status "error"`)
}

func TestIdle(t *testing.T) {
	for _, c := range []struct {
		desc string
		pool client.Pool
		idle bool
	}{
		{"full", client.Pool{Warm: 2, Size: 2, Sandboxes: 2}, true},
		{"no pool", client.Pool{}, true},
		{"not full", client.Pool{Warm: 1, Size: 2, Sandboxes: 1}, false},
		{"starting", client.Pool{Warm: 1, Size: 2, Starting: 1, Sandboxes: 2}, false},
		{"removing", client.Pool{Warm: 2, Size: 2, Removing: 1, Sandboxes: 3}, false},
		{"running", client.Pool{Warm: 2, Size: 2, Sandboxes: 3}, false},
	} {
		require.Equal(t, c.idle, atRest(c.pool), c.desc)
	}
}

func TestPoolOfReadyz(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	defer server.Close()
	s := &service{&starter.Process{URL: server.URL}, 2}

	answer = `{"status": "ready", "pool": {"warm": 2, "starting": 0, "size": 2, "removing": 0, "sandboxes": 2}}`
	require.NoError(t, s.awaitIdle(t.Context()))

	answer = `{"status": "ready", "pool": {"warm": 1, "starting": 0, "size": 1, "removing": 0, "sandboxes": 1}}`
	_, state, err := s.isIdle(t.Context())
	require.NoError(t, err)
	require.Contains(t, state, "a pool of 2 was asked for")

	answer = `{"status": "ready"}`
	_, _, err = s.isIdle(t.Context())
	require.ErrorContains(t, err, "tells nothing of a pool")
}
