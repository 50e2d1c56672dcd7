package share

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestViews: who reads slowly keeps nobody else from a page.
func TestViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v views
		cut := map[string]int{}
		begin := func(run string) *view { return v.begin(run, func() { cut[run]++ }) }

		for range maxOfRun {
			require.NotNil(t, begin("slow"))
		}
		require.Nil(t, begin("slow"), "a run has half of the places")
		require.NotNil(t, begin("other"), "others have the rest")
		for i := range maxViews - maxOfRun - 1 {
			require.NotNil(t, begin(fmt.Sprint(i)))
		}
		require.Nil(t, begin("late"), "all are taken, and nobody has had his time")
		require.Empty(t, cut)

		time.Sleep(viewTime)
		late := begin("late")
		require.NotNil(t, late)
		require.Equal(t, map[string]int{"slow": 1}, cut, "whoever has most makes way")
		require.NotNil(t, begin("slow"), "also for itself")
		require.Equal(t, map[string]int{"slow": 2}, cut)
		require.Len(t, v.all, maxViews)

		v.end(late)
		v.end(late)
		require.Len(t, v.all, maxViews-1)
		require.NotNil(t, begin("next"))
	})
}
