package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// TestRunsProveReadiness has runs end one after the other, then asks /readyz of
// a service whose daemon says that it is gone.
func TestRunsProveReadiness(t *testing.T) {
	good := runFunc(func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK), nil
	})
	ends := func(status runner.Status) runFunc {
		return func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
			return executed(spec, status), nil
		}
	}
	fails := func(err error) runFunc {
		return func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) { return nil, err }
	}
	for _, c := range []struct {
		desc  string
		runs  []runFunc
		after time.Duration
		want  int
	}{
		{"no run", nil, 0, 503},
		{"a good one", []runFunc{good}, 9 * time.Second, 200},
		{"too long ago", []runFunc{good}, 10 * time.Second, 503},
		{"code that raised ran", []runFunc{ends(runner.StatusError)}, 0, 200},
		{"code that put out too much ran", []runFunc{ends(runner.StatusOutputLimit)}, 0, 200},
		{"a time limit may be a sandbox that hangs", []runFunc{ends(runner.StatusTimeout)}, 0, 503},
		{"as may memory", []runFunc{ends(runner.StatusOutOfMemory)}, 0, 503},
		{"a kernel that died", []runFunc{ends(runner.StatusKilled)}, 0, 503},
		{"cancelled before it had a sandbox", []runFunc{ends(runner.StatusCancelled)}, 0, 503},
		{"neither undoes a good one", []runFunc{good, ends(runner.StatusTimeout), ends(runner.StatusCancelled)}, 0, 200},
		{"a failure of ours does", []runFunc{good, fails(errors.New("no such container"))}, 0, 503},
		{"one with a public face too", []runFunc{good, fails(&runner.Error{Code: runner.CodeUnavailable, Message: "gone"})}, 0, 503},
		{"until the next good one", []runFunc{good, fails(errors.New("no such container")), good}, 0, 200},
		{"being full says nothing", []runFunc{good, fails(&runner.Error{Code: runner.CodeFull, Message: "full"})}, 0, 200},
		{"nor does a share", []runFunc{good, fails(&runner.Error{Code: runner.CodeShare, Message: "share"})}, 0, 200},
		{"nor do a caller's variables", []runFunc{good, fails(&runner.Error{Code: runner.CodeEnv, Message: "env"})}, 0, 200},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var now, asked atomic.Int64
			s := newService(t, func(cfg *Config) {
				cfg.Now = func() time.Time { return time.Unix(1_800_000_000, now.Load()) }
				cfg.Ready = func(context.Context) error {
					asked.Add(1)
					return errors.New("the daemon does not answer")
				}
			})
			for _, s.run = range c.runs {
				s.postJSON(`{"code":"x"}`)
			}
			now.Add(int64(c.after))
			require.Equal(t, c.want, s.get("/readyz").StatusCode)
			require.Equal(t, c.want != 200, asked.Load() > 0, "the daemon was asked")
		})
	}
}

func TestRunsDoNotProveTheStore(t *testing.T) {
	s := newService(t, func(c *Config) { c.Store = unready{c.Store} })
	require.Equal(t, 200, s.postJSON(`{"code":"x"}`).StatusCode)
	a := s.get("/readyz")
	require.Equal(t, 503, a.StatusCode)
	require.Contains(t, string(a.body), "files cannot be stored")
}
