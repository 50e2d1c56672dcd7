package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

var errCut = errors.New("the sandbox is gone")

// cuts are the ways in which a content ends that is not whole.
var cuts = []struct {
	desc    string
	content func(cancel context.CancelFunc) io.Reader
	want    error
}{
	{"before the first byte", func(context.CancelFunc) io.Reader { return iotest.ErrReader(errCut) }, errCut},
	{"within the first bytes", after(100, errCut), errCut},
	{"within the first bytes, as a cut HTTP body says it", after(100, io.ErrUnexpectedEOF), io.ErrUnexpectedEOF},
	{"within", after(1<<20, errCut), errCut},
	{"within, as a cut HTTP body says it", after(1<<20, io.ErrUnexpectedEOF), io.ErrUnexpectedEOF},
	{"by the context, within the first bytes", cancelled(100), context.Canceled},
	{"by the context, within", cancelled(1 << 20), context.Canceled},
}

func after(n int, err error) func(context.CancelFunc) io.Reader {
	return func(context.CancelFunc) io.Reader {
		return io.MultiReader(bytes.NewReader(randomBytes(n)), iotest.ErrReader(err))
	}
}

// cancelled ends its context where n bytes are read, and would go on.
func cancelled(n int) func(context.CancelFunc) io.Reader {
	return func(cancel context.CancelFunc) io.Reader {
		return io.MultiReader(bytes.NewReader(randomBytes(n)), readerFunc(func([]byte) (int, error) {
			cancel()
			return 0, io.EOF
		}))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func cutPuts(t *testing.T, s *storage.Store, _ *clock) {
	for _, test := range cuts {
		t.Run(test.desc, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := s.Put(ctx, "runs/cut", test.content(cancel), "cut")
			require.ErrorIs(t, err, test.want)
			requireNotFound(t, s, "runs/cut")
		})
	}
	t.Run("by a panic", func(t *testing.T) {
		require.Panics(t, func() {
			_, _ = s.Put(t.Context(), "runs/cut", io.MultiReader(bytes.NewReader(randomBytes(1<<20)),
				readerFunc(func([]byte) (int, error) { panic("reader") })), "cut")
		})
		requireNotFound(t, s, "runs/cut")
	})
}

func cutReplacement(t *testing.T, s *storage.Store, _ *clock) {
	mustPut(t, s, "runs/cut", []byte("whole"))
	for _, test := range cuts {
		t.Run(test.desc, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := s.Put(ctx, "runs/cut", test.content(cancel), "cut")
			require.ErrorIs(t, err, test.want)
			require.Equal(t, "whole", mustGet(t, s, "runs/cut"))
		})
	}
}

func concurrentPuts(t *testing.T, s *storage.Store, _ *clock) {
	const writers, rounds = 8, 5
	mustPut(t, s, "runs/a", bytes.Repeat([]byte("0"), 1000))
	whole := func(content string) error {
		if content == "" || content != string(bytes.Repeat([]byte(content[:1]), 1000)) {
			return fmt.Errorf("%d bytes, not all of one writer", len(content))
		}
		return nil
	}
	var all sync.WaitGroup
	failures := make(chan error, 2*writers*rounds)
	for i := range writers {
		all.Go(func() {
			for range rounds {
				_, err := s.Put(t.Context(), "runs/a", bytes.NewReader(bytes.Repeat([]byte{byte('a' + i)}, 1000)), "a")
				failures <- err
			}
		})
		all.Go(func() {
			for range rounds {
				r, err := s.Get(t.Context(), "runs/a")
				if err != nil {
					failures <- err
					continue
				}
				content, err := io.ReadAll(r)
				_ = r.Close()
				if err != nil && strings.Contains(err.Error(), "replaced while it was read") {
					continue // found by its tag: better than half of each
				}
				failures <- errors.Join(err, whole(string(content)))
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.NoError(t, whole(mustGet(t, s, "runs/a")))
}

func ready(t *testing.T, s *storage.Store, _ *clock) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := s.Ready(t.Context())
			for end := time.Now().Add(2 * time.Minute); errors.Is(err, context.DeadlineExceeded) && time.Now().Before(end); {
				err = s.Ready(t.Context()) // its 5 s are too few for a busy machine
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	requireNotFound(t, s, "probe")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// Either the answer or the end of the context comes first, but no wait.
	if err := s.Ready(ended); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
}
