package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"notebox/storage"
)

func records(t *testing.T, s *storage.Store, _ *clock) {
	ctx, key := t.Context(), storage.RecordKey("leases", "me", "1")
	_, err := s.Read(ctx, key, 100)
	require.ErrorIs(t, err, storage.ErrNotFound)
	require.NoError(t, s.PutNew(ctx, key, []byte("first")))
	require.ErrorIs(t, s.PutNew(ctx, key, []byte("second")), storage.ErrExists)
	read := func() string {
		content, err := s.Read(ctx, key, 6)
		require.NoError(t, err)
		return string(content)
	}
	require.Equal(t, "first", read())
	require.NoError(t, s.Replace(ctx, key, []byte("second")))
	require.Equal(t, "second", read())
	require.ErrorIs(t, s.PutNew(ctx, key, []byte("third")), storage.ErrExists)
	require.NoError(t, s.Replace(ctx, key, []byte("too long")))
	_, err = s.Read(ctx, key, 6)
	require.ErrorContains(t, err, "more than 6 bytes")

	require.NoError(t, s.Delete(ctx, key))
	require.NoError(t, s.PutNew(ctx, key, nil), "what was deleted may come again")
	require.Empty(t, read())

	share, page := storage.RunKey(time.Now(), "run_1", storage.KindShare, ""), bytes.Repeat([]byte("a page "), 1<<20)
	require.NoError(t, s.PutNew(ctx, share, page))
	require.ErrorIs(t, s.PutNew(ctx, share, []byte("another")), storage.ErrExists)
	require.True(t, string(page) == mustGet(t, s, share))
	require.NoError(t, s.Delete(ctx, share))
}

func recordKeys(t *testing.T, s *storage.Store, _ *clock) {
	found := map[string]bool{}
	for _, parts := range [][]string{
		{"a"}, {"a", "b"}, {"a/b"}, {"a", ""}, {"..", "."}, {"a.tmp"}, {"a.attrs"}, {"a\n"}, {strings.Repeat("ü", 300)}, {"a=b"},
	} {
		key := storage.RecordKey(parts...)
		require.True(t, strings.HasPrefix(key, "records/"))
		require.False(t, found[key], "%q", parts)
		found[key] = true
	}
	delete(found, storage.RecordKey("a")) // a folder of others
	for key := range found {
		require.NoError(t, s.PutNew(t.Context(), key, []byte(key)), "%q", key)
		require.Equal(t, key, mustGet(t, s, key))
		_, _, err := s.Link(t.Context(), key, "http://localhost")
		require.Error(t, err, "no link leads to a record")
		require.ErrorIs(t, s.Verify(key, nil), storage.ErrSignature)
	}
	for _, key := range []string{"runs/a", "runs/2026-01-01/run_1/result.json", "runs/2026-01-01/run_1/files/share.jsonl", "recordsx/a", "records/../runs/a", "records//a", "", "a"} {
		require.Error(t, s.PutNew(t.Context(), key, nil), key)
		require.Error(t, s.Replace(t.Context(), key, nil), key)
		_, err := s.Read(t.Context(), key, 1)
		require.ErrorIs(t, err, storage.ErrNotFound, key)
	}
}

func listing(t *testing.T, s *storage.Store, _ *clock) {
	list := func(parts ...string) (keys []string) {
		for key, err := range s.List(t.Context(), storage.RecordKey(parts...)) {
			require.NoError(t, err)
			keys = append(keys, key)
		}
		slices.Sort(keys)
		return keys
	}
	require.Empty(t, list("some"))
	var want []string
	var puts errgroup.Group
	puts.SetLimit(8)
	for i := range 2500 { // more than two pages
		key := storage.RecordKey("some", fmt.Sprint(i%3), fmt.Sprint(i))
		puts.Go(func() error { return s.PutNew(t.Context(), key, nil) })
		want = append(want, key)
	}
	require.NoError(t, puts.Wait())
	slices.Sort(want)
	require.NoError(t, s.PutNew(t.Context(), storage.RecordKey("somebody"), nil))
	require.Equal(t, want, list("some"))
	require.Len(t, list("some", "1"), 833)
	for range s.List(t.Context(), storage.RecordKey("some")) {
		break
	}
	for key, err := range s.List(t.Context(), storage.RecordKey("some")) {
		require.NoError(t, err)
		puts.Go(func() error { return s.Delete(t.Context(), key) })
	}
	require.NoError(t, puts.Wait())
	require.Empty(t, list("some"))
	for _, err := range s.List(t.Context(), "runs") {
		require.Error(t, err)
	}
}

func onePutNewWins(t *testing.T, s *storage.Store, _ *clock) { requireOneWins(t, s, s) }

// TestOnePutNewWinsInAFolder of two stores, which share nothing but the folder.
func TestOnePutNewWinsInAFolder(t *testing.T) {
	url := "file://" + filepath.Join(t.TempDir(), "store")
	var both []*storage.Store
	for range 2 {
		s, err := storage.Open(t.Context(), storage.Options{URL: url})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		both = append(both, s)
	}
	requireOneWins(t, both...)
}

func requireOneWins(t *testing.T, stores ...*storage.Store) {
	t.Helper()
	const writers, rounds = 16, 20
	for round := range rounds {
		key := storage.RecordKey("claims", fmt.Sprint(round))
		begin := make(chan struct{})
		won := make([]bool, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				<-begin
				err := stores[i%len(stores)].PutNew(t.Context(), key, []byte(fmt.Sprint(i)))
				if won[i] = err == nil; err != nil && !errors.Is(err, storage.ErrExists) {
					t.Error(err)
				}
			})
		}
		close(begin)
		all.Wait()
		winner := slices.Index(won, true)
		require.NotEqual(t, -1, winner)
		require.Equal(t, -1, slices.Index(won[winner+1:], true), "two won")
		require.Equal(t, fmt.Sprint(winner), mustGet(t, stores[0], key))
	}
}
