package storage

import (
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKey asks a store that is a folder for any key: it gives what is stored there and
// nothing else of the disk.
func FuzzKey(f *testing.F) {
	dir := f.TempDir()
	require.NoError(f, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	s, err := Open(f.Context(), Options{URL: "file://" + filepath.Join(dir, "store")})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, s.Close()) })
	key := RunKey(started, "run_1", KindFile, "a/b.csv")
	_, err = s.Put(f.Context(), key, strings.NewReader("content"), "a/b.csv")
	require.NoError(f, err)
	record := RecordKey("leases", "run_1")
	require.NoError(f, s.PutNew(f.Context(), record, []byte("{}")))
	for _, seed := range []string{
		key, record, key + "/", "../secret", "runs/../../secret", filepath.Join(dir, "secret"), "", ".", "runs", "a\x00b", "\xff",
		key + ".attrs", "runs//x", "records/../" + key, strings.Repeat("a/", 600),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, k string) {
		r, err := s.Get(t.Context(), k)
		if err == nil {
			require.Contains(t, []string{key, record}, k)
			content, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Contains(t, []string{"content", "{}"}, string(content))
			require.NoError(t, r.Close())
		} else {
			require.ErrorIs(t, err, ErrNotFound)
		}
		if _, err := s.Read(t.Context(), k, 100); err == nil {
			require.Equal(t, record, k)
		} else {
			require.ErrorIs(t, err, ErrNotFound)
		}
		for below, err := range s.List(t.Context(), k) {
			if err == nil {
				require.Equal(t, record, below)
			}
		}
		if _, _, err := s.Link(t.Context(), k, ""); err == nil {
			require.True(t, validKey(k))
			require.False(t, isRecord(k))
		}
	})
}

// FuzzRecordKey holds that records do not meet each other, nor a run's files.
func FuzzRecordKey(f *testing.F) {
	f.Add("executions", "run_1.lease", "../x")
	f.Add("a/b", "", strings.Repeat("=", 300))
	f.Add("a", "b.tmp", "\xff")
	f.Fuzz(func(t *testing.T, folder, a, b string) {
		key := RecordKey(folder, a)
		require.True(t, validKey(key), "%q", key)
		require.True(t, isRecord(key))
		require.Equal(t, filepath.Join("/store", key), "/store/"+key, "a file system resolves nothing in it")
		require.Equal(t, a == b, key == RecordKey(folder, b))
		require.NotEqual(t, key, RecordKey(folder, a, b))
	})
}

// FuzzUnescape reads keys that this package did not make.
func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"a=/b", "=41", "=4", "=h0=/x", "a=-/b", "=-", "=_", "a=-", "=ZZ", "a/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name, ok := unescapeName(key)
		require.LessOrEqual(t, len(name), len(key))
		if !ok || strings.HasPrefix(key, digestMark) {
			return
		}
		again := escapeName(name)
		if strings.HasPrefix(again, digestMark) {
			return // too long: the folders are not kept
		}
		back, ok := unescapeName(again)
		require.True(t, ok)
		require.Equal(t, name, back)
	})
}

// FuzzMediaType holds that a browser shows in place only what begins as it is called.
func FuzzMediaType(f *testing.F) {
	f.Add("a.png", []byte("\x89PNG\x0d\x0a\x1a\x0a"))
	f.Add("a.png", []byte("<!DOCTYPE html><script>"))
	f.Add("a.JPG", []byte("GIF89a"))
	f.Add("a.svg", []byte("<svg onload=x>"))
	f.Fuzz(func(t *testing.T, name string, head []byte) {
		got := MediaType(name, head)
		parsed, parameters, err := mime.ParseMediaType(got)
		require.NoError(t, err)
		require.Equal(t, got, parsed)
		require.Empty(t, parameters)
		if (Object{MediaType: got}).Inline() {
			require.Equal(t, http.DetectContentType(head), got)
		}
	})
}
