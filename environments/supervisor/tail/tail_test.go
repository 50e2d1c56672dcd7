package tail

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	var log Tail
	for _, c := range []struct{ write, want string }{
		{"", ""},
		{"abc", "abc"},
		{strings.Repeat("x", Size-3), "abc" + strings.Repeat("x", Size-3)},
		{"y", "bc" + strings.Repeat("x", Size-3) + "y"},
		{strings.Repeat("z", 3*Size), strings.Repeat("z", Size)},
	} {
		n, err := log.Write([]byte(c.write))
		require.NoError(t, err)
		require.Equal(t, len(c.write), n)
		require.Equal(t, c.want, log.String())
	}
}
