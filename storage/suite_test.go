package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
	"notebox/storage/storagetest"
)

// stores are what the suite runs over. fresh starts what a store needs, to end with the
// test, and gives what opens a new one each time.
var stores = []struct {
	desc  string
	fresh func(t *testing.T) func(t *testing.T) storage.Options
}{
	{"file", func(*testing.T) func(*testing.T) storage.Options {
		return func(t *testing.T) storage.Options {
			return storage.Options{URL: "file://" + filepath.Join(t.TempDir(), "new", "store")}
		}
	}},
	{"mem", func(*testing.T) func(*testing.T) storage.Options {
		return func(*testing.T) storage.Options { return storage.Options{URL: "mem://"} }
	}},
	{"azblob", func(t *testing.T) func(*testing.T) storage.Options { return optionsOf(storagetest.Azurite(t)) }},
	{"s3", func(t *testing.T) func(*testing.T) storage.Options { return optionsOf(storagetest.S3(t)) }},
	{"gs", func(t *testing.T) func(*testing.T) storage.Options {
		server, _ := storagetest.GCS(t)
		return optionsOf(server)
	}},
}

func optionsOf(server *storagetest.Server) func(*testing.T) storage.Options {
	return func(t *testing.T) storage.Options {
		return storage.Options{URL: server.URL(t), Getenv: server.Getenv}
	}
}

// suite is what every store must do, with links of notebox's own: see cloudSuite for a
// cloud's. Each case gets a store of its own.
var suite = []struct {
	desc string
	run  func(t *testing.T, s *storage.Store, clock *clock)
}{
	{"what was put is got", putAndGet},
	{"reads ranges and seeks", rangesAndSeeks},
	{"what is not there is not found", notFound},
	{"a key that means something else is refused", badKeys},
	{"a second put replaces the first", putReplaces},
	{"any name comes back, and stays in its run", names},
	{"a link serves over HTTP, by range and by tag", linkServes},
	{"a changed link is refused", changedLinks},
	{"an expired link is refused", expiredLinks},
	{"a put that is cut leaves nothing", cutPuts},
	{"a put that is cut leaves what was there", cutReplacement},
	{"puts on one key at once leave one of them whole", concurrentPuts},
	{"a record is created once, replaced, read and deleted", records},
	{"records are apart from runs, and out of reach of links", recordKeys},
	{"records are listed", listing},
	{"of many that create a record one does", onePutNewWins},
	{"what is old is swept, and nothing else", sweepRuns},
	{"is ready, and leaves nothing of the probe", ready},
}

func TestStores(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.desc, func(t *testing.T) {
			t.Parallel()
			fresh := store.fresh(t)
			for _, test := range suite {
				t.Run(test.desc, func(t *testing.T) {
					clock := &clock{time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
					o := fresh(t)
					o.TTL, o.Now, o.ServeFiles = time.Hour, clock.Now, storage.ServeProxy
					test.run(t, mustOpen(t, o), clock)
				})
			}
		})
	}
}

func mustOpen(t *testing.T, o storage.Options) *storage.Store {
	t.Helper()
	s, err := storage.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// clock is set by hand.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func putAndGet(t *testing.T, s *storage.Store, clock *clock) {
	for _, test := range []struct {
		desc    string
		name    string
		content []byte
		want    string
	}{
		{"empty", "empty.csv", nil, "text/csv"},
		{"one byte", "one.txt", []byte("x"), "text/plain"},
		{"as long as what the type is told by", "a.py", randomBytes(512), "text/x-python"},
		{"in a folder", "plots/a b.json", []byte(`{"a":1}`), "application/json"},
		{"longer than one buffer", "big.bin", randomBytes(1 << 20), "application/octet-stream"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			key := fileKey(test.name)
			put, err := s.Put(t.Context(), key, bytes.NewReader(test.content), test.name)
			require.NoError(t, err)
			sum := sha256.Sum256(test.content)
			require.Equal(t, storage.Object{
				Key: key, Name: test.name, MediaType: test.want, Bytes: int64(len(test.content)),
				SHA256: hex.EncodeToString(sum[:]), ModTime: clock.now,
			}, put)

			got, err := s.Get(t.Context(), key)
			require.NoError(t, err)
			defer func() { require.NoError(t, got.Close()) }()
			require.NotEmpty(t, got.ETag)
			require.WithinDuration(t, time.Now(), got.ModTime, time.Minute)
			put.SHA256, put.ModTime = "", got.ModTime
			require.Equal(t, put, got.Object)
			content, err := io.ReadAll(got)
			require.NoError(t, err)
			require.Equal(t, string(test.content), string(content))
		})
	}
}

func rangesAndSeeks(t *testing.T, s *storage.Store, _ *clock) {
	content := randomBytes(100_000)
	mustPut(t, s, "runs/a", content)
	r, err := s.Get(t.Context(), "runs/a")
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for _, test := range []struct {
		desc   string
		offset int64
		whence int
		want   int64
	}{
		{"from the start", 99_000, io.SeekStart, 99_000},
		{"back", -99_100, io.SeekCurrent, 0}, // 100 bytes were read
		{"forth", 50_000, io.SeekCurrent, 50_100},
		{"nowhere", 0, io.SeekCurrent, 50_200},
		{"from the end", -100, io.SeekEnd, 99_900},
		{"to the end", 0, io.SeekEnd, 100_000},
		{"beyond the end", 10, io.SeekEnd, 100_010},
		{"to the start", 0, io.SeekStart, 0},
	} {
		t.Run(test.desc, func(t *testing.T) {
			got, err := r.Seek(test.offset, test.whence)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			part := make([]byte, 100)
			n, err := io.ReadFull(r, part)
			if test.want >= int64(len(content)) {
				require.ErrorIs(t, err, io.EOF)
				return
			}
			require.NoError(t, err)
			require.Equal(t, content[test.want:test.want+100], part[:n])
		})
	}
	_, err = r.Seek(-1, io.SeekStart)
	require.Error(t, err)
	_, err = r.Seek(0, 7)
	require.Error(t, err)
	at, err := r.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	require.EqualValues(t, 100, at, "a failed seek moves nothing")
}

func notFound(t *testing.T, s *storage.Store, _ *clock) {
	mustPut(t, s, "runs/folder/a", []byte("a"))
	for _, key := range []string{"runs/b", "runs/folder", "runs/folder/a/b", "runs"} {
		requireNotFound(t, s, key)
		require.ErrorIs(t, s.Delete(t.Context(), key), storage.ErrNotFound, key)
	}
	require.NoError(t, s.Delete(t.Context(), "runs/folder/a"))
	requireNotFound(t, s, "runs/folder/a")
}

func badKeys(t *testing.T, s *storage.Store, _ *clock) {
	mustPut(t, s, "runs/a", []byte("a"))
	for _, key := range []string{
		"", "/", "/runs/a", "runs/a/", "runs//a", "runs/./a", "runs/../runs/a", "..", "../runs/a", "runs/..",
		"runs/a.attrs", "runs/a.18f0000000000000.tmp", "runs/a\n", "runs/\x00a", "runs/\xff",
		"runs/a.", "runs/a../b", "runs/a__0x2f__b", `runs/a\b`, "runs/a?b", "runs/a%2fb", "runs/a#b",
		"runs/" + strings.Repeat("a", 250), strings.Repeat("a/", 600) + "a",
	} {
		_, err := s.Put(t.Context(), key, strings.NewReader("b"), "b")
		require.Error(t, err, "%q", key)
		requireNotFound(t, s, key)
		require.ErrorIs(t, s.Delete(t.Context(), key), storage.ErrNotFound, "%q", key)
		_, _, err = s.Link(t.Context(), key, "http://localhost")
		require.Error(t, err, "%q", key)
	}
	require.Equal(t, "a", mustGet(t, s, "runs/a"))
}

func putReplaces(t *testing.T, s *storage.Store, _ *clock) {
	mustPut(t, s, "runs/a", randomBytes(5000))
	before, err := s.Get(t.Context(), "runs/a")
	require.NoError(t, err)
	defer func() { require.NoError(t, before.Close()) }()
	mustPut(t, s, "runs/a", []byte("second"))
	require.Equal(t, "second", mustGet(t, s, "runs/a"))
	after, err := s.Get(t.Context(), "runs/a")
	require.NoError(t, err)
	require.NoError(t, after.Close())
	require.NotEqual(t, before.ETag, after.ETag)
	_, err = io.ReadAll(before)
	require.Error(t, err, "a reader never mixes the two")
}

func fileKey(name string) string {
	return storage.RunKey(time.Date(2026, 7, 1, 1, 2, 3, 0, time.UTC), "run_1", storage.KindFile, name)
}

func mustPut(t *testing.T, s *storage.Store, key string, content []byte) {
	t.Helper()
	_, err := s.Put(t.Context(), key, bytes.NewReader(content), "x.bin")
	require.NoError(t, err)
}

func mustGet(t *testing.T, s *storage.Store, key string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(content)
}

func requireNotFound(t *testing.T, s *storage.Store, key string) {
	t.Helper()
	_, err := s.Get(context.WithoutCancel(t.Context()), key)
	require.ErrorIs(t, err, storage.ErrNotFound, "%q", key)
}

// randomBytes are the same in each run, and start as no known type does.
func randomBytes(n int) []byte {
	source := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = source.Read(b)
	return b
}
