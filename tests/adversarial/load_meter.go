package adversarial

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// loadPoll is how often the machine is looked at.
	loadPoll = 100 * time.Millisecond
	// loadWindow is how many looks in a row are averaged: a second, as a burst that
	// is shorter delays nothing by much.
	loadWindow = 10
)

// loadMeter follows how busy this machine is, so that a limit in seconds means the
// same on a quiet machine and on one that runs other tests beside these: with twice
// as many threads that want to run as there are cores, all takes twice as long.
type loadMeter struct {
	mu     sync.Mutex
	most   float64
	window []float64
	stop   func()
}

// measureLoad begins to look, until stop is called.
func measureLoad() *loadMeter {
	m := &loadMeter{most: 1}
	quit, done := make(chan struct{}), make(chan struct{})
	m.stop = func() { close(quit); <-done }
	go func() {
		defer close(done)
		tick := time.NewTicker(loadPoll)
		defer tick.Stop()
		for {
			m.look()
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return m
}

func (m *loadMeter) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.window = append(m.window, float64(runnable())/float64(runtime.NumCPU()))
	if len(m.window) > loadWindow {
		m.window = m.window[1:]
	}
	sum := 0.0
	for _, one := range m.window {
		sum += one
	}
	m.most = max(m.most, sum/float64(len(m.window)))
}

// highest returns how many times slower than alone a program may have been until
// now: 1 or more.
func (m *loadMeter) highest() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// runnable returns how many threads of this machine run or want to; 0 if that is
// not told. See proc_stat(5).
func runnable() int {
	raw, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(raw)) {
		if text, ok := strings.CutPrefix(line, "procs_running "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(text))
			return n
		}
	}
	return 0
}

func loaded(d time.Duration, load float64) time.Duration {
	return time.Duration(float64(d) * load)
}
