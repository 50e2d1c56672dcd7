package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/storage"
)

// TestG12Panics has what a request goes through panic, and looks at the places that
// it held: there is one for running, one for waiting, and one sandbox.
func TestG12Panics(t *testing.T) {
	const files = `{"code":"for name in \"abc\":\n    open(name, \"w\").write(\"0123456789\")"}`
	for _, c := range []struct {
		desc string
		path string // of a GET; "": files are run
		at   string // where it panics
	}{
		{"while a file is stored, in the middle of the conversation with the sandbox", "", "file"},
		{"before a run has a sandbox", "", "start"},
		{"when a run has ended", "", "end"},
		{"in a handler", "/readyz", "pool"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var at atomic.Pointer[string]
			panicAt := func(place string) {
				if p := at.Load(); p != nil && *p == place {
					panic("secret of " + place)
				}
			}
			host := runnertest.NewFake()
			single := pool.New(host.Engine("panics"), pool.Options{MaxSandboxes: 1, Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(func() { require.NoError(t, single.Close(context.Background())) })
			admission := admission.New(runFunc(func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				panicAt("start")
				out, err := single.Run(ctx, spec, events)
				panicAt("end")
				return out, err
			}), admission.Limits{MaxRunning: 1, MaxWait: time.Minute})
			s := newService(t, func(cfg *Config) {
				cfg.Runner = admission
				cfg.Store = panickingPut{cfg.Store, func(key string) {
					if strings.Contains(key, "/files/") {
						panicAt("file")
					}
				}}
				cfg.Pool = func() pool.Stats { panicAt("pool"); return single.Stats() }
			})
			ask := func() answer {
				if c.path != "" {
					return s.get(c.path)
				}
				return s.postJSON(files)
			}
			at.Store(&c.at)
			for range 3 { // more than there are places
				a := ask()
				s.requireProblem(a, http.StatusInternalServerError, "the service failed; its log says why")
				require.NotContains(t, string(a.body), "secret")
			}
			require.Contains(t, s.logged.String(), "panic: a value of type string", "and where, but not its text")
			require.Contains(t, s.logged.String(), "faults_test.go")
			require.NotContains(t, s.logged.String(), "secret of "+c.at)
			require.Zero(t, admission.Running())
			require.Zero(t, admission.Waiting())
			require.Eventually(t, func() bool { return single.Stats() == pool.Stats{} }, time.Minute, 10*time.Millisecond)
			require.Empty(t, host.Sandboxes(""))
			s.requireNoFiles()

			at.Store(nil)
			require.Equal(t, http.StatusOK, ask().StatusCode)
			require.Equal(t, http.StatusOK, s.postJSON(files).StatusCode)
		})
	}
}

// panickingPut is a store that may panic when it is given something.
type panickingPut struct {
	Store
	before func(key string)
}

func (p panickingPut) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	p.before(key)
	return p.Store.Put(ctx, key, content, name)
}
