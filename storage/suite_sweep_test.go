package storage_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

// sweepRuns goes by the store's own time of an object, which is that of the machine and
// not of the test's clock.
func sweepRuns(t *testing.T, s *storage.Store, _ *clock) {
	now := time.Now()
	before, young := now.Add(time.Hour), now.AddDate(0, 0, 3)
	var old []string
	for _, day := range []time.Time{now.AddDate(0, 0, -40), now.AddDate(0, 0, -1), now} {
		old = append(old,
			storage.RunKey(day, "run_1", storage.KindFile, "out.csv"),
			storage.RunKey(day, "run_1", storage.KindFile, "plots/a b.png"),
			storage.RunKey(day, "run_2", storage.KindImage, "image_0.png"),
			storage.RunKey(day, "run_2", storage.KindNotebook, ""),
			storage.RunKey(day, "run_2", storage.KindResult, ""),
			storage.RunKey(day, "run_2", storage.KindShare, ""),
			storage.InputKey(day, "me", "file_1", storage.PartAbout),
			storage.InputKey(day, "me", "file_1", storage.PartContent),
		)
	}
	stay := []string{
		storage.RunKey(young, "run_3", storage.KindFile, "out.csv"),
		storage.InputKey(young, "me", "file_2", storage.PartContent),
		storage.RecordKey("leases", "me", "1"),
		"runs/2020-01-01/run_1/other/x", "runs/2020-01-01/x", "runs/notes/run_1/files/x", "inputs/2020-01-01/me/x/y/z",
		"other/2020-01-01/run_1/files/x",
	}
	for _, key := range append(append([]string(nil), old...), stay...) {
		mustPut(t, s, key, []byte(key))
	}

	removed, err := s.Sweep(t.Context(), now.Add(-time.Hour))
	require.NoError(t, err)
	require.Zero(t, removed, "what was written since stays, whatever day its run began")
	require.Equal(t, old[0], mustGet(t, s, old[0]))

	var all sync.WaitGroup
	var sum atomic.Int64
	for range 4 { // as several services do it
		all.Go(func() {
			removed, err := s.Sweep(t.Context(), before)
			sum.Add(int64(removed))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, int(sum.Load()), len(old))
	for _, key := range old {
		requireNotFound(t, s, key)
	}
	for _, key := range stay {
		require.Equal(t, key, mustGet(t, s, key))
	}
	removed, err = s.Sweep(t.Context(), before)
	require.NoError(t, err)
	require.Zero(t, removed)
	mustPut(t, s, old[0], []byte("again"))
	require.Equal(t, "again", mustGet(t, s, old[0]))
}
