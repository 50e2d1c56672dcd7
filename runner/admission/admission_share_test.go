package admission_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/runnertest"
)

// TestShareWaitingChanges: keys come and go while the service runs.
func TestShareWaitingChanges(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		a := admission.New(&slow{}, admission.Limits{MaxRunning: 1, MaxWaiting: 4, MaxWait: maxWait})
		got := make([]answer, 7)
		arrive := func(i int) {
			go func() { got[i] = ask(context.Background(), t, a, "a") }()
			synctest.Wait()
		}
		for i := range 3 { // one runs, two wait
			arrive(i)
		}
		a.ShareWaiting(true)
		arrive(3)
		require.Equal(t, runner.CodeShare, got[3].code)
		a.ShareWaiting(false)
		arrive(4)
		arrive(5)
		require.Equal(t, 4, a.Waiting())
		arrive(6)
		require.Equal(t, runner.CodeFull, got[6].code)
		time.Sleep(time.Minute)
		synctest.Wait()
		requireEmpty(t, a)
	})
}
