package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/runner"
	"notebox/server/native"
	"notebox/storage"
)

// held is a runner whose runs go on until they are let go or cancelled.
type held struct {
	started chan string // ids
	letGo   chan struct{}
	count   atomic.Int32
}

// hold makes the service's runs held ones.
func (s *service) hold() *held {
	h := &held{started: make(chan string, 100), letGo: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = h.run
	return h
}

func (h *held) run(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
	h.count.Add(1)
	h.started <- spec.ID
	select {
	case <-h.letGo:
		files, err := readInputs(spec)
		if err != nil {
			return nil, err
		}
		return executed(spec, runner.StatusOK, stdout(fmt.Sprintf("%s is done, with %d bytes\n", spec.ID, len(files["in"])))), nil
	case <-ctx.Done():
		return executed(spec, runner.StatusCancelled, stdout("so far\n")), nil
	}
}

// sharedStore is a store for several services.
func sharedStore(t *testing.T, url string, now func() time.Time) *storage.Store {
	t.Helper()
	store, err := storage.Open(context.Background(), storage.Options{URL: url, Now: now})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// over makes a service use a store, and be called id there.
func over(store Store, id string) func(*Config) {
	return func(c *Config) { c.Store, c.ServiceID = store, id }
}

func withKeys(t *testing.T, keys ...string) func(*Config) {
	all, err := NewKeys(keys...)
	require.NoError(t, err)
	return func(c *Config) { c.Keys = all }
}

// with is a POST of JSON with headers: name, value, name, value.
func (s *service) with(body string, headers ...string) *http.Request {
	s.t.Helper()
	req := s.request(http.MethodPost, "/v1/execute", "application/json", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func (s *service) call(method, path string, headers ...string) answer {
	s.t.Helper()
	req := s.request(method, path, "", nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return s.do(req)
}

// accepted is the id in an answer 202.
func (s *service) accepted(a answer) string {
	s.t.Helper()
	require.Equal(s.t, http.StatusAccepted, a.StatusCode, "%s", a.body)
	var state native.ExecutionState
	require.NoError(s.t, json.Unmarshal(a.body, &state))
	require.Equal(s.t, "/v1/executions/"+state.ID, a.Header.Get("Location"))
	require.Equal(s.t, "respond-async", a.Header.Get("Preference-Applied"))
	return state.ID
}

// ends polls an execution until it has a reply.
func (s *service) ends(id string) replyJSON {
	s.t.Helper()
	var a answer
	require.Eventually(s.t, func() bool {
		a = s.get("/v1/executions/" + id)
		return !bytes.Contains(a.body, []byte(`"status":"running"`))
	}, time.Minute, 10*time.Millisecond)
	return s.replied(a)
}

const async = "respond-async"

func TestAsynchronous(t *testing.T) {
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		t.Run(url[:4], func(t *testing.T) {
			store := sharedStore(t, url, nil)
			s := newService(t, over(store, "a"))
			runs := s.hold()
			input := strings.Repeat("QUFB", intake.SpoolMemory)
			a := s.do(s.with(`{"code":"x","files":[{"name":"in","content":"`+input+`"}]}`, "Prefer", "wait=100, Respond-Async"))
			id := s.accepted(a)
			require.Equal(t, id, <-runs.started)
			require.JSONEq(t, `{"id":"`+id+`","status":"running"}`, string(a.body))
			require.JSONEq(t, string(a.body), string(s.get("/v1/executions/"+id).body))

			close(runs.letGo)
			r := s.ends(id)
			require.Equal(t, "ok", r.Status)
			require.Equal(t, id, r.ID)
			require.Equal(t, fmt.Sprintf("%s is done, with %d bytes\n", id, 3*intake.SpoolMemory), r.Text)
			s.requireNoFiles()

			elsewhere := newService(t, over(store, "b"))
			require.Equal(t, r, elsewhere.replied(elsewhere.get("/v1/executions/"+id)), "and so after a restart")
			require.Equal(t, int64(len(elsewhere.get("/v1/executions/"+id).body)), elsewhere.call("HEAD", "/v1/executions/"+id).ContentLength)
			require.Equal(t, 403, s.get("/v1/files/"+ledger.ExecutionKey("", id, ledger.RecordReply)+"?expires=9999999999&signature=x").StatusCode)
		})
	}
}

func TestAsynchronousThatFails(t *testing.T) {
	full := &runner.Error{Code: runner.CodeFull, Message: "too many runs are waiting", RetryAfter: 2 * time.Second}
	env := &runner.Error{Code: runner.CodeEnv, Message: "the kernel does not start"}
	for _, c := range []struct {
		desc     string
		err      error
		posted   int // where the run fails at once
		polled   int // if it fails later
		detail   string
		panicked bool
	}{
		{"full", full, 503, 500, "too many runs are waiting", false},
		{"env", env, 422, 422, "env: the kernel does not start", false},
		{"broken", errors.New("secret"), 500, 500, "the service failed; its log says why", false},
		{"panic", nil, 500, 500, "the service failed; its log says why", true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			delay := make(chan struct{})
			s.run = func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) {
				<-delay
				if c.panicked {
					panic("secret")
				}
				return nil, c.err
			}
			id := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async)))
			close(delay)
			var a answer
			require.Eventually(t, func() bool {
				a = s.get("/v1/executions/" + id)
				return a.StatusCode != http.StatusOK
			}, time.Minute, 10*time.Millisecond)
			require.Equal(t, c.polled, a.StatusCode)
			require.Contains(t, string(a.body), c.detail)
			require.Empty(t, a.Header.Get("Retry-After"), "it is final")
			require.NotContains(t, string(a.body), "secret")

			a = s.do(s.with(`{"code":"x"}`, "Prefer", async))
			require.Equal(t, c.posted, a.StatusCode)
			require.Contains(t, string(a.body), c.detail)
			require.Equal(t, c.posted == 503, a.Header.Get("Retry-After") == "2")
			if c.polled == 500 && c.err != full {
				why := "secret"
				if c.panicked { // with a text that may be a caller's: its stack is what helps
					why = "executions_test.go"
				}
				require.Contains(t, s.logged.String(), why)
				require.Equal(t, !c.panicked, strings.Contains(s.logged.String(), "secret"))
			}
		})
	}
	t.Run("by itself", func(t *testing.T) {
		s := newService(t)
		s.requireProblem(s.do(s.with(`{"code":""}`, "Prefer", async)), 400, "code: is empty")
		s.requireProblem(s.do(s.with(`{"code":"x","files":[{"name":"a","url":"http://127.0.0.1:1/a"}]}`, "Prefer", async)), 422, "files[0].url")
	})
}

func TestCancel(t *testing.T) {
	for _, c := range []struct {
		desc                    string
		elsewhere, stream, sync bool
	}{
		{desc: "asynchronous"},
		{desc: "synchronous", sync: true},
		{desc: "streamed", stream: true},
		{desc: "asynchronous, of another service", elsewhere: true},
		{desc: "streamed, of another service", elsewhere: true, stream: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			store := sharedStore(t, "file://"+t.TempDir(), nil)
			keys := withKeys(t, "one", "other")
			s := newService(t, over(store, "a"), keys)
			at := s
			if c.elsewhere {
				at = newService(t, over(store, "b"), keys)
			}
			runs := s.hold()
			req := s.with(`{"code":"x"}`, "X-API-Key", "one")
			switch {
			case c.stream:
				req.Header.Set("Accept", "text/event-stream")
			case !c.sync:
				req.Header.Set("Prefer", async)
			}
			answers := make(chan answer, 1)
			go func() { answers <- s.do(req) }()
			id := <-runs.started
			path := "/v1/executions/" + id
			require.Eventually(t, func() bool { return at.call("GET", path, "X-API-Key", "one").StatusCode == 200 }, time.Minute, 5*time.Millisecond)

			require.Equal(t, 404, at.call("DELETE", path, "X-API-Key", "other").StatusCode)
			require.Equal(t, 404, at.call("GET", path, "X-API-Key", "other").StatusCode)
			require.Equal(t, 401, at.call("DELETE", path).StatusCode)
			began := time.Now()
			for range 2 {
				a := at.call("DELETE", path, "X-API-Key", "one")
				if a.StatusCode == 204 || a.StatusCode == 404 {
					break // it has ended
				}
				require.Equal(t, 202, a.StatusCode, "%s", a.body)
				require.JSONEq(t, `{"id":"`+id+`","status":"cancelling"}`, string(a.body))
			}
			require.Eventually(t, func() bool { return !s.server.Executor.Here(runs.owner(s), id) }, time.Minute, time.Millisecond)
			require.Less(t, time.Since(began), 30*time.Second)

			a := <-answers
			if !c.stream && !c.sync {
				a = at.call("GET", path, "X-API-Key", "one")
				require.Equal(t, 204, at.call("DELETE", path, "X-API-Key", "one").StatusCode)
			} else {
				require.NoError(t, s.server.Wait(t.Context()))
				require.Equal(t, 404, at.call("GET", path, "X-API-Key", "one").StatusCode)
				require.Equal(t, 404, at.call("DELETE", path, "X-API-Key", "one").StatusCode)
				for key, err := range store.List(t.Context(), storage.RecordKey("executions")) {
					t.Errorf("left: %s %v", key, err)
				}
			}
			require.Equal(t, 200, a.StatusCode)
			require.Contains(t, string(a.body), `"status":"cancelled"`)
			require.Contains(t, string(a.body), `so far`)
		})
	}
}

// owner is that of the last run of a service.
func (h *held) owner(s *service) string {
	runs := s.started()
	return runs[len(runs)-1].Owner
}

func TestExecutionsThatAreNotThere(t *testing.T) {
	s := newService(t)
	for _, id := range []string{"run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", "run_", "x", "..", "run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9.lease", "%2e%2e%2f"} {
		for _, method := range []string{"GET", "DELETE"} {
			require.Equal(t, 404, s.call(method, "/v1/executions/"+id).StatusCode, "%s %s", method, id)
		}
	}
}

func TestEndOfTheService(t *testing.T) {
	store := sharedStore(t, "mem://", nil)
	s := newService(t, over(store, "a"))
	runs := s.hold()
	asynchronous := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async)))
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		_, err := http.DefaultTransport.RoundTrip(s.with(`{"code":"y"}`, "Idempotency-Key", "k").WithContext(ctx))
		require.Error(t, err)
	}()
	<-runs.started
	<-runs.started
	leave()

	soon, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.server.Wait(soon), context.DeadlineExceeded, "runs without a client are waited for")
	s.server.CancelRuns()
	require.NoError(t, s.server.Wait(t.Context()))
	require.NoError(t, s.server.Close())
	s.requireNoFiles()

	next := newService(t, over(store, "a"))
	r := next.replied(next.get("/v1/executions/" + asynchronous))
	require.Equal(t, "cancelled", r.Status)
	require.Equal(t, "so far\n", r.Text)
	require.Equal(t, "cancelled", next.replied(next.do(next.with(`{"code":"y"}`, "Idempotency-Key", "k"))).Status, "the first reply")
	require.Empty(t, next.started())
}

func TestTooManyWithoutAClient(t *testing.T) {
	s := newService(t)
	s.server.detached.Most = 0
	s.requireProblem(s.do(s.with(`{"code":"x"}`, "Prefer", async)), 503, "too many runs go on without a client")
	s.requireProblem(s.do(s.with(`{"code":"x"}`, "Idempotency-Key", "k")), 503, "too many runs go on without a client")
	s.server.detached.Most = 1
	s.replied(s.do(s.with(`{"code":"x"}`, "Idempotency-Key", "k")))
}

// mortalStore is the store of a service that can be killed: from then on nothing that
// it does is seen.
type mortalStore struct {
	Store
	dead atomic.Bool
}

var errDead = errors.New("the service was killed")

func (m *mortalStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	if m.dead.Load() {
		return storage.Object{}, errDead
	}
	return m.Store.Put(ctx, key, content, name)
}

func (m *mortalStore) PutNew(ctx context.Context, key string, content []byte) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.PutNew(ctx, key, content)
}

func (m *mortalStore) Replace(ctx context.Context, key string, content []byte) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.Replace(ctx, key, content)
}

func (m *mortalStore) Read(ctx context.Context, key string, most int64) ([]byte, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.Store.Read(ctx, key, most)
}

func (m *mortalStore) Delete(ctx context.Context, key string) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.Delete(ctx, key)
}

// TestCancelBeforeTheRun: what is cancelled while its inputs are fetched has a reply too.
func TestCancelBeforeTheRun(t *testing.T) {
	asked, end := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-end
	}))
	defer slow.Close()
	defer close(end)
	s := newService(t, func(c *Config) { c.FetchAllow = []string{"127.0.0.1"} })
	body := `{"code":"x","files":[{"name":"a","url":"` + slow.URL + `"}]}`
	answers := make(chan answer, 1)
	go func() { answers <- s.do(s.with(body, idempotent, "k")) }()
	<-asked
	id := s.accepted(s.do(s.with(body, idempotent, "k", "Prefer", async)))
	require.Equal(t, 202, s.call("DELETE", "/v1/executions/"+id).StatusCode)
	r := s.replied(<-answers)
	require.Equal(t, "cancelled", r.Status)
	require.Equal(t, id, r.ID)
	require.Equal(t, r, s.ends(id))
	require.Empty(t, s.started())
	s.requireNoFiles()
}
