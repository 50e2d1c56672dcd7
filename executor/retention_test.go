package executor

import "testing"

func TestWithoutRetentionNothingIsSwept(*testing.T) {
	(&Executor{}).sweepRuns() // has nothing to wait for
}
