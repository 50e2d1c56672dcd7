package server

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// TestReadyWhileItsOwnRunIsLate: where runs of callers prove meanwhile that all is
// well, what is asked beside has an answer of its own, and not that of a late run.
func TestReadyWhileItsOwnRunIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		life, end := context.WithCancel(t.Context())
		defer work.Wait()
		defer end()
		began := time.Now()
		r := readiness{
			proven: func() bool { return time.Since(began) >= readyTime }, // by a run that ends just then
			prober: &prober{
				runner: runFunc(func(ctx context.Context, _ runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}),
				every: time.Minute, now: time.Now, work: &work, life: life, observer: unobserved{},
			},
			store: func(ctx context.Context) error { return ctx.Err() },
			disk:  func(ctx context.Context) error { return ctx.Err() },
			log:   slog.New(slog.DiscardHandler),
			now:   time.Now,
		}
		require.Nil(t, r.check(t.Context()))
		require.Equal(t, readyTime, time.Since(began))
	})
}
