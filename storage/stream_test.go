package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file passes through in both directions in far less memory than it has bytes.
func TestBigFileInLittleMemory(t *testing.T) {
	const size, limit = 64 << 20, 4 << 20
	content := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{7}), size) }
	s := openTestFolder(t, t.TempDir())
	sum := sha256.New()
	_, err := io.Copy(sum, content())
	require.NoError(t, err)

	var put Object
	require.Less(t, allocated(func() { put, err = s.Put(t.Context(), "runs/big", content(), "big") }), uint64(limit))
	require.NoError(t, err)
	require.EqualValues(t, size, put.Bytes)
	require.Equal(t, hex.EncodeToString(sum.Sum(nil)), put.SHA256)

	got := sha256.New()
	require.Less(t, allocated(func() {
		r, err := s.Get(t.Context(), "runs/big")
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		http.ServeContent(hashWriter{got, http.Header{}}, request, "", r.ModTime, r)
	}), uint64(limit))
	require.Equal(t, put.SHA256, hex.EncodeToString(got.Sum(nil)))
}

// allocated is how many bytes f allocates in all, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hashWriter is a response that keeps its body's hash alone.
type hashWriter struct {
	io.Writer
	header http.Header
}

func (w hashWriter) Header() http.Header { return w.header }
func (hashWriter) WriteHeader(int)       {}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int64{1 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s, err := Open(b.Context(), Options{URL: "file://" + b.TempDir()})
			require.NoError(b, err)
			defer func() { require.NoError(b, s.Close()) }()
			b.SetBytes(size)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := RunKey(started, "run_1", KindFile, fmt.Sprint(i%10))
				_, err := s.Put(b.Context(), key, io.LimitReader(zeros{}, size), "a.bin")
				require.NoError(b, err)
			}
		})
	}
}

// zeros is an endless reader that costs nothing.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
