package faults_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner/admission"
	"notebox/runner/docker"
	"notebox/runner/pool"
	"notebox/server"
	"notebox/storage"
)

// clock is the wall's, and can be set.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// library is the service as a library, on the machine's daemon with the real image,
// so that its store and its clock can be a test's.
type library struct {
	service // its url alone is used
	files   string
}

// newLibrary starts one. wrap may be nil; c is the clock of server and store.
func newLibrary(t *testing.T, c *clock, wrap func(*storage.Store) server.Store) *library {
	t.Helper()
	folder := t.TempDir()
	l := &library{service: service{t: t}, files: filepath.Join(folder, "files")}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	all, err := environments.Load("")
	require.NoError(t, err)
	disk, err := storage.Open(t.Context(), storage.Options{
		URL: "file://" + l.files, KeyFile: filepath.Join(folder, "key"), Now: c.now,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, disk.Close()) })
	store := server.Store(disk)
	if wrap != nil {
		store = wrap(disk)
	}
	engine, err := docker.New(docker.Options{ServiceID: filepath.Base(suite.folder) + "-" + filepath.Base(filepath.Dir(folder)), Log: log})
	require.NoError(t, err)
	pool := pool.New(engine, pool.Options{Log: log})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, pool.Close(ctx))
		require.NoError(t, engine.Close(ctx))
	})
	s, err := server.New(server.Config{
		Runner: admission.New(pool, admission.Limits{MaxRunning: 2, MaxWaiting: 2, MaxWait: patience}),
		Store:  store, Environments: all, TempDir: filepath.Join(folder, "uploads"), Log: log, Now: c.now,
	})
	require.NoError(t, err)
	listening := httptest.NewUnstartedServer(nil)
	listening.Config = s.HTTPServer()
	listening.Start()
	t.Cleanup(func() {
		listening.Close()
		require.NoError(t, s.Close())
	})
	l.url = listening.URL
	return l
}

// requireWhole holds that nothing but whole objects is in the store.
func (l *library) requireWhole(t *testing.T) {
	t.Helper()
	requireNoParts(t, l.files, nil)
}

// requireNoParts waits until no part of an object is below folder but those from before:
// what is kept of a run for later is written after its reply.
func requireNoParts(t *testing.T, folder string, before map[string]int64) {
	t.Helper()
	eventually(t, "no part of an object is left", func() bool {
		for path := range filesBelow(t, folder) {
			if _, old := before[path]; !old && filepath.Ext(path) == ".tmp" {
				return false
			}
		}
		return true
	})
}

// runJSON has it run what a request in JSON says.
func (l *library) runJSON(body string) answer {
	return send(http.MethodPost, l.url+"/v1/execute", "application/json", []byte(body))
}
