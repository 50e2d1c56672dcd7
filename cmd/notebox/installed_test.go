package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
)

// imagesOnly is an engine that is asked for images alone.
type imagesOnly struct {
	runner.Engine
	answer atomic.Pointer[error]
	takes  time.Duration
}

func (e *imagesOnly) Ready(ctx context.Context, _ runner.Environment) error {
	select {
	case <-time.After(e.takes):
		return *e.answer.Load()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *imagesOnly) says(err error) { e.answer.Store(&err) }

// TestInstalled is about an image that is built, and removed, while the service runs.
func TestInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := fmt.Errorf("missing: %w", runner.ErrNoImage)
		engine := &imagesOnly{}
		engine.says(missing)
		i := newInstalled(engine, []environments.Environment{{Name: "r"}})
		later := func() bool {
			time.Sleep(2 * installedFor)
			i.has("r")
			time.Sleep(time.Second)
			synctest.Wait()
			return i.has("r")
		}
		require.False(t, i.has("r"))
		require.False(t, i.has("another"))
		engine.says(nil)
		require.False(t, i.has("r"), "it was looked for just now")
		require.True(t, later())
		engine.says(errors.New("the daemon is away"))
		require.True(t, later(), "which says nothing of an image")
		engine.takes = time.Hour
		asked := time.Now()
		require.True(t, later())
		require.Less(t, time.Since(asked), 20*time.Second, "nobody waits for a daemon that hangs")
		time.Sleep(installedWait)
		engine.takes = 0
		engine.says(missing)
		require.False(t, later())
	})
}
