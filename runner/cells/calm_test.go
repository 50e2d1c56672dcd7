package cells_test

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCalm: cells with a crowd of processes stand still for a moment, so that another one can
// begin; one with few does not.
func TestCalm(t *testing.T) {
	engine := newEngine(t, "test-calm-"+strings.ToLower(rand.Text()))
	const gap = `import os, time
for _ in range(%d):
    if os.fork() == 0:
        time.sleep(100)
print("begun", flush=True)
last, most = time.monotonic(), 0
for _ in range(300):
    time.sleep(0.01)
    most = max(most, time.monotonic() - last)
    last = time.monotonic()
print(most)`
	limits := smallLimits()
	limits.Timeout = time.Minute
	longest := func(forks int, got chan<- float64) {
		s := spec(t, strings.Replace(gap, "%d", strconv.Itoa(forks), 1))
		s.Limits = limits
		out := strings.Fields(printed(t, engine, s))
		n, err := strconv.ParseFloat(out[len(out)-1], 64)
		require.NoError(t, err)
		got <- n
	}
	crowded, alone := make(chan float64, 2), make(chan float64, 1)
	go longest(200, crowded)
	go longest(200, crowded)
	go longest(0, alone)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				engine.Calm()
			}
		}
	}()
	first, second, other := <-crowded, <-crowded, <-alone
	const calm = 0.45 // seconds, nearly all of the time
	// Without one of the two there is no crowd.
	require.Greater(t, max(first, second), calm)
	require.Less(t, other, max(first, second))
}
