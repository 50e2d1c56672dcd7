package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptions(t *testing.T) {
	o, err := parseOptions(nil)
	require.NoError(t, err)
	require.Len(t, o.cases, 4)
	require.Len(t, o.loadCases, 4)
	require.GreaterOrEqual(t, o.warmRuns, 200)
	require.Equal(t, []int{1, 4, 16}, o.warmCallers)
	require.Regexp(t, `^tests/bench/results/\d{4}-\d\d-\d\d\.json$`, o.out)

	o, err = parseOptions([]string{"-quick", "-callers", "3", "-cases", "plot,print"})
	require.NoError(t, err)
	require.Equal(t, []int{3}, o.warmCallers, "what is given holds")
	require.Less(t, o.warmRuns, 10)
	require.Equal(t, "plot", o.loadCases[0].name)
	require.Len(t, o.loadCases, 1)

	for _, args := range [][]string{
		{"-cases", "nothing"}, {"-cases", "print", "-load-cases", "plot"}, {"-callers", "0"}, {"-callers", "x"},
		{"-pool-size", "0"}, {"-warm-runs", "10", "-other-runs", "11"}, {"-load", "1ms"}, {"more"},
	} {
		_, err := parseOptions(args)
		require.Error(t, err, "%q", args)
	}
}
