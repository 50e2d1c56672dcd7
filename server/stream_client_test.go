package server

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

func TestStreamWhoseClientLeavesIsCancelled(t *testing.T) {
	s := newService(t)
	over := make(chan error, 1)
	s.run = func(ctx context.Context, _ runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout("x"))})
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		over <- ctx.Err()
		return &runner.Outcome{Status: runner.StatusCancelled}, nil
	}
	ctx, leave := context.WithCancel(context.Background())
	r := s.stream(ctx, `{"code":"x"}`)
	r.want("started", nil)
	r.want("output", nil)
	leave()
	require.ErrorIs(t, <-over, context.Canceled)
	require.Eventually(t, func() bool {
		entries, _ := os.ReadDir(s.temp)
		return len(entries) == 0
	}, time.Minute, 5*time.Millisecond)
}

// TestStreamOfAClientThatDoesNotRead: its run is cancelled, and what waits for it
// is bounded.
func TestStreamOfAClientThatDoesNotRead(t *testing.T) {
	const piece = 100 << 10
	for _, c := range []struct {
		desc  string
		limit int64         // of output
		write time.Duration // deadline of a write
		most  int           // bytes that the run puts out by itself
	}{
		{"by bytes", 1 << 10, time.Minute, 1 << 30},
		{"by time", 64 << 20, 100 * time.Millisecond, 32 << 20},
	} {
		t.Run(c.desc, func(t *testing.T) {
			limits := runner.DefaultLimits()
			limits.Output = c.limit
			s := newService(t, func(cfg *Config) { cfg.Limits = limits })
			s.server.Pace.Write = c.write
			out := 0
			over := make(chan error, 1)
			s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				text := stdout(strings.Repeat("x", piece-1) + "\n")
				for ctx.Err() == nil && out < c.most {
					events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(text)})
					out += piece
				}
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Second):
				}
				over <- ctx.Err()
				return executed(spec, runner.StatusCancelled), nil
			}
			r := s.stream(context.Background(), `{"code":"x"}`)
			require.ErrorIs(t, <-over, context.Canceled)
			require.Less(t, out, 64<<20, "more than sockets and the backlog hold")
			if c.write < time.Second {
				require.Eventually(t, func() bool { return strings.Contains(s.logged.String(), "route=/v1/execute") }, time.Minute, 5*time.Millisecond)
				return
			}
			// Whoever reads on is told.
			last := sentEvent{}
			for e, ok := r.next(); ok; e, ok = r.next() {
				last = e
			}
			require.Equal(t, "error", last.name)
			require.Contains(t, last.data, "too slowly")
		})
	}
}

// TestStreamOfASlowClient loses nothing of what a run may put out.
func TestStreamOfASlowClient(t *testing.T) {
	s := newService(t)
	const pieces = 8 << 10
	text := strings.Repeat("x", 1000) + "\n"
	s.run = func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for range pieces {
			events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout(text))})
		}
		return executed(spec, runner.StatusOK), nil
	}
	r := s.stream(context.Background(), `{"code":"x"}`)
	time.Sleep(300 * time.Millisecond)
	r.want("started", nil)
	for range pieces {
		r.want("output", nil)
	}
	r.want("done", nil)
	r.wantEnd()
}
