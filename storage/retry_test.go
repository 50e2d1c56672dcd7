package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/cenkalti/backoff/v5"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
)

func TestTemporary(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		desc string
		err  error
		want bool
	}{
		{"a connection refused", &url.Error{Op: "Put", URL: "http://x", Err: refused}, true},
		{"no such host", &url.Error{Op: "Put", URL: "http://x", Err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}}, true},
		{"a connection cut", &url.Error{Op: "Put", URL: "http://x", Err: io.EOF}, true},
		{"no answer in time", fmt.Errorf("put: %w", context.DeadlineExceeded), true},
		{"a caller that gave up", &url.Error{Op: "Put", URL: "http://x", Err: context.Canceled}, false},
		{"no object", ErrNotFound, false},
		{"a full disk", &os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, false},
		{"no right to write", &os.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}, false},
		{"too many open files", &os.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE}, true},
		{"a cloud that is overloaded", &azcore.ResponseError{StatusCode: 503}, true},
		{"a cloud that refuses", &azcore.ResponseError{StatusCode: 403}, false},
		{"Google's", &googleapi.Error{Code: 429}, true},
		{"anything else", errors.New("no"), false},
		{"nothing", nil, false},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.want, Temporary(c.err)) })
	}
}

// TestAgain: the pauses double to the most, and there is an end with the time.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var tries []time.Time
		_, err := again(t.Context(), func() (int, error) {
			tries = append(tries, time.Now())
			return 0, io.EOF
		})
		require.ErrorIs(t, err, io.EOF)
		require.LessOrEqual(t, time.Since(began), retryFor, "with the time")
		require.Greater(t, len(tries), 5)
		for i, mean := 1, retryFirst; i < len(tries); i, mean = i+1, min(2*mean, retryMost) {
			require.InDelta(t, mean, tries[i].Sub(tries[i-1]), retrySpread*float64(mean)+1, "pause %d", i)
		}
	})
}

func TestAgainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tries := 0
		fail := func() (int, error) { tries++; return 0, io.EOF }
		time.AfterFunc(retryFirst/4, cancel)
		began := time.Now()
		_, err := again(ctx, fail)
		require.ErrorIs(t, err, context.Canceled, "with the caller")
		require.Equal(t, retryFirst/4, time.Since(began))
		require.Equal(t, 1, tries)

		_, err = again(t.Context(), func() (int, error) { tries++; return 0, backoff.Permanent(io.EOF) })
		require.Equal(t, io.EOF, err, "with what a person has to mend")
		require.Equal(t, 2, tries)
	})
}

func TestSourceIsReadAgain(t *testing.T) {
	content := bytes.NewReader([]byte("skipped content"))
	_, err := content.Seek(8, io.SeekStart)
	require.NoError(t, err)
	s := newSource(content)
	for range 2 {
		got, err := io.ReadAll(s)
		require.NoError(t, err)
		require.Equal(t, "content", string(got))
		require.True(t, s.rewind())
	}
	require.False(t, newSource(io.MultiReader(content)).rewind(), "what comes once")
	cut := newSource(iotest.ErrReader(syscall.ECONNRESET))
	_, _ = io.ReadAll(cut)
	cut.seeker = content
	require.False(t, cut.rewind(), "its own failure is none of the store")
}

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		desc  string
		bytes int
		first int // bytes that are read before it begins anew
	}{
		{"nothing of nothing", 0, 0},
		{"in memory, from the middle", 1000, 300},
		{"in memory, from the end", 1000, 2000},
		{"as much as memory keeps", replayMemory, replayMemory},
		{"on the disk", 3*replayMemory + 7, 2 * replayMemory},
		{"on the disk, in full", 3*replayMemory + 7, 4 * replayMemory},
	} {
		t.Run(c.desc, func(t *testing.T) {
			want := bytes.Repeat([]byte("0123456789a"), c.bytes/11+1)[:c.bytes]
			dir := t.TempDir()
			r := &replay{from: iotest.HalfReader(bytes.NewReader(want)), dir: dir}
			defer func() { require.NoError(t, r.Close()) }()
			s := newSource(r)
			for range 3 {
				_, err := io.CopyN(io.Discard, s, int64(c.first))
				if c.first > c.bytes {
					require.ErrorIs(t, err, io.EOF)
				}
				require.True(t, s.rewind())
			}
			got, err := io.ReadAll(s)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries, "its file has no name")
		})
	}
}

func TestReplayWithoutRoomComesOnce(t *testing.T) {
	want := bytes.Repeat([]byte("x"), 2*replayMemory)
	r := &replay{from: bytes.NewReader(want), dir: t.TempDir() + "/none"}
	s := newSource(r)
	got, err := io.ReadAll(s)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	require.False(t, s.rewind())
}

func TestReplayOfAFolderKeepsNothing(t *testing.T) {
	r := new(Store).Replay(bytes.NewReader(nil), "")
	require.False(t, newSource(r).rewind())
}
