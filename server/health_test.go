package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/access/redis"
	"notebox/runner"
	"notebox/runner/pool"
	"notebox/server/native"
	"notebox/storage/storagetest"
)

func TestReadyz(t *testing.T) {
	var asked atomic.Int64
	var fail atomic.Pointer[error]
	var now atomic.Int64
	s := newService(t, func(c *Config) {
		c.Ready = func(context.Context) error {
			asked.Add(1)
			if err := fail.Load(); err != nil {
				return *err
			}
			return nil
		}
		c.Now = func() time.Time { return time.Unix(1_800_000_000+now.Load(), 0) }
	})
	for range 5 {
		require.Equal(t, 200, s.get("/readyz").StatusCode)
	}
	require.EqualValues(t, 1, asked.Load(), "a probe does not ask each time")

	for _, c := range []struct {
		desc   string
		err    error
		detail string
	}{
		{"known", &runner.Error{Code: runner.CodeUnavailable, Message: "the Docker daemon does not answer", Err: errors.New("/var/run/docker.sock")}, "the Docker daemon does not answer"},
		{"unknown", errors.New("/var/run/docker.sock"), "sandboxes cannot be started"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			fail.Store(&c.err)
			now.Add(10)
			a := s.get("/readyz")
			s.requireProblem(a, 503, c.detail)
			require.Equal(t, "2", a.Header.Get("Retry-After"))
			require.NotContains(t, string(a.body), "docker.sock")
			require.Equal(t, 200, s.get("/healthz").StatusCode)
		})
	}
	require.Contains(t, s.logged.String(), "docker.sock")
	fail.Store(nil)
	now.Add(10)
	require.Equal(t, 200, s.get("/readyz").StatusCode)
}

func TestReadyzAsksTheStore(t *testing.T) {
	s := newService(t, func(c *Config) { c.Store = unready{c.Store} })
	s.requireProblem(s.get("/readyz"), 503, "files cannot be stored")
}

type unready struct{ Store }

func (unready) Ready(context.Context) error { return errors.New("no space left on /dev/sda1") }

func TestEnvironments(t *testing.T) {
	s := newService(t)
	a := s.get("/v1/environments")
	require.Equal(t, 200, a.StatusCode)
	var list native.EnvironmentList
	require.NoError(t, json.Unmarshal(a.body, &list))
	require.Len(t, list.Environments, 2)
	require.True(t, list.Environments[0].Default)
	require.Equal(t, "python", list.Environments[0].Language)
	require.Equal(t, python.Packages, list.Environments[0].Packages)
	require.EqualValues(t, DefaultMaxBody, list.Limits.MaxBody)
	require.EqualValues(t, 30, list.Limits.Timeout)
	require.NotContains(t, string(a.body), "secret-digest", "images are nobody's business")
	require.NotContains(t, string(a.body), "null")
}

// TestPoolIsForCallers: who may not run code learns no more than whether others can.
func TestPoolIsForCallers(t *testing.T) {
	pool := func(c *Config) { c.Pool = func() pool.Stats { return pool.Stats{Warm: 3} } }
	const shown = `"warm":3`
	open, closed := newService(t, pool), newService(t, pool, withKeys(t, "one"))
	require.Contains(t, string(open.get("/readyz").body), shown)
	require.JSONEq(t, `{"status":"ready"}`, string(closed.get("/readyz").body))
	require.Contains(t, string(closed.call(http.MethodGet, "/readyz", "X-API-Key", "one").body), shown)
}

// TestIsolationIsForCallers, and says why runs do not have what they might.
func TestIsolationIsForCallers(t *testing.T) {
	isolation := func(c *Config) {
		c.Isolation = Isolation{Kind: "container", MissingWall: "proc", Remedy: "mount it"}
	}
	const shown = `"isolation":{"kind":"container","missing_wall":"proc","remedy":"mount it"}`
	open, closed := newService(t, isolation), newService(t, isolation, withKeys(t, "one"))
	require.Contains(t, string(open.get("/readyz").body), shown)
	require.NotContains(t, string(closed.get("/readyz").body), "isolation")
	require.Contains(t, string(closed.call(http.MethodGet, "/readyz", "X-API-Key", "one").body), shown)
}

// TestLimitsOfSeveralServices: a store that is down is said to callers, and the service is ready.
func TestLimitsOfSeveralServices(t *testing.T) {
	server := storagetest.Redis(t)
	store, err := redis.Open(server.URL(t))
	require.NoError(t, err)
	defer store.Close()
	keys, err := access.New([]access.Entry{access.PlainEntry("one")}, access.Options{Store: store})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go keys.Watch(ctx)
	s := newService(t, func(c *Config) { c.Keys = keys })
	ready := func() answer { return s.call(http.MethodGet, "/readyz", "X-API-Key", "one") }
	require.JSONEq(t, `{"status":"ready","limits":{"store":"ok","services":1}}`, string(ready().body))
	require.JSONEq(t, `{"status":"ready"}`, string(s.get("/readyz").body))
	server.Stop(t)
	require.Eventually(t, func() bool {
		r := ready()
		require.Equal(t, http.StatusOK, r.StatusCode)
		return strings.Contains(string(r.body), `"limits":{"store":"down","services":1}`)
	}, 20*time.Second, 50*time.Millisecond)
}
