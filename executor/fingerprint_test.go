package executor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFingerprintsOfLargePrograms: they tell programs apart without all of their text as JSON.
func TestFingerprintsOfLargePrograms(t *testing.T) {
	of := func(code string) string {
		print, err := fingerprint(&Order{Code: &code}, &plan{inputs: &Inputs{}})
		require.NoError(t, err)
		return print
	}
	large := strings.Repeat("<", 1<<20)
	require.Equal(t, of(large), of(strings.Clone(large)))
	require.NotEqual(t, of(large), of(large+"x"))
	require.NotEqual(t, of(large), of("x"))
	allocated := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			of(large)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(2<<20), "as JSON it is six times as long")
}
