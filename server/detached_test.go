package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/intake"
	"notebox/runner"
	"notebox/storage"
)

// panicking is a store that panics where records are made.
type panicking struct{ Store }

func (panicking) PutNew(context.Context, string, []byte) error { panic("the store has a bug") }

// TestPanicBeforeARun leaves nothing behind, neither a place nor a folder.
func TestPanicBeforeARun(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "Prefer"} {
		t.Run(header, func(t *testing.T) {
			value := map[string]string{"Prefer": async, "Idempotency-Key": "k"}[header]
			s := newService(t, func(c *Config) { c.Store, c.MaxIntake = panicking{c.Store}, 1 })
			body := `{"code":"x","files":[{"name":"in","content":"` + strings.Repeat("QUFB", intake.SpoolMemory) + `"}]}`
			for range 3 {
				require.Equal(t, http.StatusInternalServerError, s.do(s.with(body, header, value)).StatusCode)
			}
			s.requireNoFiles()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, s.server.Wait(ctx))
			require.Zero(t, s.server.Intake.Taken())
		})
	}
}

// slowStore takes long to replace a record.
type slowStore struct {
	Store
	by time.Duration
}

func (s slowStore) Replace(ctx context.Context, key string, content []byte) error {
	time.Sleep(s.by)
	return s.Store.Replace(ctx, key, content)
}

// TestRefusalReachesItsRequest, however slow the store is, and nothing of it is stored.
func TestRefusalReachesItsRequest(t *testing.T) {
	store := sharedStore(t, "mem://", nil)
	s := newService(t, over(slowStore{store, 10 * refusalTime}, "a"))
	s.run = func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) {
		return nil, &runner.Error{Code: runner.CodeFull, Message: "too many runs are waiting", RetryAfter: 2 * time.Second}
	}
	for range 3 {
		a := s.do(s.with(`{"code":"x"}`, "Prefer", async))
		require.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "%s", a.body)
		require.Contains(t, string(a.body), "too many runs are waiting")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, s.server.Wait(ctx))
	for key, err := range store.List(t.Context(), storage.RecordKey("executions")) {
		require.NoError(t, err)
		require.Fail(t, "left", key)
	}
}

// TestShareOfRunsWithoutAClient: one key does not take all places.
func TestShareOfRunsWithoutAClient(t *testing.T) {
	s := newService(t, withKeys(t, "one", "two"))
	var leave []func()
	for range maxDetached / 2 {
		one, err := s.server.detached.Enter(ownerOfKey("one"))
		require.NoError(t, err)
		leave = append(leave, one)
	}
	ask := func(key string) answer {
		return s.do(s.with(`{"code":"x"}`, "Prefer", async, "X-API-Key", key))
	}
	s.requireProblem(ask("one"), 429, "too many runs of this caller go on without a client")
	require.Equal(t, http.StatusAccepted, ask("two").StatusCode)
	for _, l := range leave {
		l()
	}
	require.Eventually(t, func() bool { return s.server.detached.Taken() == 0 }, time.Minute, time.Millisecond)
}

// TestClientThatLeftIsNotStoredFor: nobody could ever see it.
func TestClientThatLeftIsNotStoredFor(t *testing.T) {
	store := sharedStore(t, "mem://", nil)
	s := newService(t, over(store, "a"))
	begun, ended := make(chan struct{}), make(chan struct{})
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		close(begun)
		<-ctx.Done()
		defer close(ended)
		return executed(spec, runner.StatusCancelled, stdout("so far\n")), nil
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	_, err := http.DefaultClient.Do(s.with(`{"code":"x"}`).WithContext(ctx))
	require.Error(t, err)
	<-ended
	wait, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, s.server.Wait(wait))
	_, err = store.Get(t.Context(), storage.RunKey(time.Now(), s.only().ID, storage.KindNotebook, ""))
	require.ErrorIs(t, err, storage.ErrNotFound)
}
