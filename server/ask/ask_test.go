package ask

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlacesAreShared(t *testing.T) {
	several := false
	a := newQuestions(&Config{AtOnce: 4}, func() bool { return several })
	var leaves []func()
	enter := func(owner string) bool {
		leave, err := a.Enter(owner)
		if err == nil {
			leaves = append(leaves, leave)
		}
		return err == nil
	}
	several = true
	require.True(t, enter("a"))
	require.True(t, enter("a"))
	require.False(t, enter("a"), "two are left for others")
	require.True(t, enter("b"))
	leaves[0]()
	require.True(t, enter("c"))
	require.True(t, enter("d"))
	require.False(t, enter("e"))
	for _, leave := range leaves[1:] {
		leave()
	}
	require.Zero(t, a.Taken())
}
