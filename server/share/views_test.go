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
		begin := func(owner, run string) *view { return v.begin(viewed{owner, run}, func() { cut[run]++ }) }

		for range maxOfRun {
			require.NotNil(t, begin("", "slow"))
		}
		require.Nil(t, begin("", "slow"), "a run has half of the places")
		require.NotNil(t, begin("", "other"), "others have the rest")
		for range maxViews - maxOfRun - 1 {
			require.NotNil(t, begin("", "another"))
		}
		late := begin("", "late")
		require.NotNil(t, late, "all are taken: whoever has most makes way at once")
		require.Equal(t, map[string]int{"slow": 1}, cut)
		require.Nil(t, begin("", "slow"), "not for who has as many")

		time.Sleep(viewTime)
		require.NotNil(t, begin("", "slow"), "but after a while")
		require.Equal(t, map[string]int{"slow": 2}, cut)
		require.Len(t, v.all, maxViews)

		v.end(late)
		v.end(late)
		require.Len(t, v.all, maxViews-1)
		require.NotNil(t, begin("", "next"))
	})
}

// TestViewsOfOwners: many shared runs of one key, read by those who come again and again, keep
// nobody from another key's.
func TestViewsOfOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v views
		theirs := func(i int) bool { return v.begin(viewed{"alice", fmt.Sprint(i)}, func() {}) != nil }
		for i := range maxViews {
			require.True(t, theirs(i))
		}
		for range 20 {
			mine := v.begin(viewed{"bob", "bobs"}, func() { require.Fail(t, "it is cut") })
			require.NotNil(t, mine)
			time.Sleep(viewTime + time.Second)
			for i := range maxViews {
				theirs(i)
			}
			v.end(mine)
			theirs(0)
		}
	})
}
