package executor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

// TestRunDoesNotWaitForEachFile of a store that fails slowly.
func TestRunDoesNotWaitForEachFile(t *testing.T) {
	k := &keeper{store: unasked{}, log: slog.New(slog.DiscardHandler), started: time.Now(), run: "run_x", tempDir: t.TempDir(), stall: time.Hour}
	k.waited.Store(int64(storePatience))
	_, size, err := k.file(t.Context(), "a", "a", strings.NewReader("content"))
	require.Equal(t, errStoreAway, err)
	require.EqualValues(t, 7, size, "it was read, so that the next file comes")
	_, lost := k.keep(t.Context(), storeTime, storage.KindImage, "a", nil)
	require.Equal(t, errStoreAway, lost)
}

// TestStoreThatHangs takes a file, and then never says that it has it.
func TestStoreThatHangs(t *testing.T) {
	k := &keeper{store: hangingPut{}, log: slog.New(slog.DiscardHandler), started: time.Now(), run: "run_x", stall: 50 * time.Millisecond}
	_, size, err := k.file(t.Context(), "a", "a", strings.NewReader("content"))
	require.Equal(t, errStoreAway, err)
	require.EqualValues(t, 7, size)
	require.Positive(t, k.waited.Load())
}

// unasked is a store that panics if it is asked for anything.
type unasked struct{ Store }

// hangingPut reads what it is given, and never says that it has it.
type hangingPut struct{ Store }

func (hangingPut) Replay(content io.Reader, _ string) io.ReadCloser { return io.NopCloser(content) }

func (hangingPut) Put(ctx context.Context, _ string, content io.Reader, _ string) (storage.Object, error) {
	_, _ = io.Copy(io.Discard, content)
	<-ctx.Done()
	return storage.Object{}, ctx.Err()
}

// TestSandboxMayPause: while a file is read, the store's clock stands still.
func TestSandboxMayPause(t *testing.T) {
	var fired atomic.Bool
	timer := time.AfterFunc(time.Hour, func() { fired.Store(true) })
	r := &steadyReader{Reader: strings.NewReader("content"), stall: timer, after: time.Hour}
	r.Reader = io.TeeReader(r.Reader, writing(func([]byte) { require.False(t, timer.Stop(), "it is stopped") }))
	_, err := r.Read(make([]byte, 3))
	require.NoError(t, err)
	require.True(t, timer.Stop(), "it waits for the store again")
	require.False(t, fired.Load())
	_, err = r.Seek(0, io.SeekStart)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

type writing func([]byte)

func (f writing) Write(p []byte) (int, error) { f(p); return len(p), nil }

// TestInputsClock runs while the store is read, and no longer.
func TestInputsClock(t *testing.T) {
	content, err := openWatched(t.Context(), time.Hour, func(ctx context.Context) (io.ReadCloser, error) {
		return io.NopCloser(untilDone{ctx}), nil
	})
	require.NoError(t, err)
	content.after = time.Millisecond
	c := &inputContent{content, t.Context()}
	_, err = c.Read(make([]byte, 1))
	require.ErrorContains(t, err, "the store of files does not answer")
	require.NoError(t, c.Close())
	require.Error(t, content.ctx.Err(), "nothing of it is left")
}

// untilDone is a reader that hangs.
type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}
