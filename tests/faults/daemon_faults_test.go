package faults_test

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestG03DaemonRestarts: the Docker daemon restarts in mid-run, in both ways. Who
// asks meanwhile is told to come back; the service recovers by itself.
func TestG03DaemonRestarts(t *testing.T) {
	t.Parallel()
	for _, c := range daemonEnds {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t)
			s := onDaemon(t, d, "--pool-size", "2", "--max-running", "8").start()
			s.requireReady(http.StatusOK)
			s.requireContainers(2)
			cut := s.runLater(codeSleep)
			s.requireRunning(1)

			stopAsking := s.keepAsking(4)
			d.stop(c.by)
			requireUnavailable(t, <-cut)
			s.requireReady(http.StatusServiceUnavailable)
			requireUnavailable(t, s.run(codeHello))
			require.Equal(t, http.StatusOK, send(http.MethodGet, s.url+"/healthz", "", nil).status)

			d.start()
			s.requireReady(http.StatusOK)
			eventually(t, "code runs again", func() bool { return s.run(codeHello).status == http.StatusOK })
			answers := stopAsking()
			require.Positive(t, answers[http.StatusOK])
			require.Positive(t, answers[http.StatusServiceUnavailable])
			require.Len(t, answers, 2, "what clients were answered: %v", answers)
			eventually(t, "what the daemon left is removed, and the pool full", func() bool {
				return s.pool().Warm >= 2 && len(s.containers()) == s.pool().Sandboxes
			})
			s.end()
		})
	}
}

// TestG04ImageMissing: at the start and while the service serves.
func TestG04ImageMissing(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	s := onDaemon(t, d, "--image", "standin:none")
	s.launch()
	require.Equal(t, 1, s.exit())
	require.Contains(t, s.Logged(), "the sandbox image is missing: build it with `notebox image build`")
	require.NotContains(t, s.Logged(), " url=", "it never served")

	s = onDaemon(t, d, "--pool-size", "0").start()
	s.requireRuns()
	s.requireContainers(0) // they hold their image
	d.docker("image", "rm", "--force", imageServes)
	a := s.run(codeHello)
	requireUnavailable(t, a)
	require.Contains(t, a.reply(t).Detail, "the sandbox image is missing")
	s.requireReady(http.StatusServiceUnavailable)
	require.Contains(t, string(s.ready().body), "the sandbox image is missing")

	d.load(imageServes, `["/standin"]`)
	s.requireReady(http.StatusOK)
	s.requireRuns()
	s.end()
}

// TestG06DaemonHangs: the daemon is there and says nothing.
func TestG06DaemonHangs(t *testing.T) {
	t.Parallel()
	const startTimeout = 3 * time.Second
	d := newDaemon(t)
	s := onDaemon(t, d, "--pool-size", "0", "--max-running", "8", "--start-timeout", startTimeout.String()).start()
	s.requireRuns()
	s.requireContainers(0)

	d.signal(syscall.SIGSTOP)
	begun := time.Now()
	a := s.run(codeHello)
	requireUnavailable(t, a)
	require.Contains(t, a.reply(t).Detail, "starting a sandbox took too long")
	require.GreaterOrEqual(t, time.Since(begun), startTimeout)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.run(codeHello) })
	}
	all.Wait()
	s.requireReady(http.StatusServiceUnavailable)
	require.Zero(t, s.pool().Running)

	d.signal(syscall.SIGCONT) // and it does all that it was asked for
	s.requireReady(http.StatusOK)
	eventually(t, "code runs again", func() bool { return s.run(codeHello).status == http.StatusOK })
	s.requireContainers(0)
	time.Sleep(time.Second) // nor do they come later, to stay
	s.requireContainers(0)
	s.end()
}

// TestG07ContainerExitsAtOnce: it is no run of the user's that failed, and the log
// has the reason.
func TestG07ContainerExitsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	s := onDaemon(t, d, "--image", imageExits, "--pool-size", "0").start()
	a := s.run(codeHello)
	requireUnavailable(t, a)
	require.Equal(t, "a sandbox ended before it was ready, with exit code 3", a.reply(t).Detail)
	require.Contains(t, s.Logged(), "standin: there is no kernel", "its last words are in the log")
	s.requireContainers(0)
	s.end()
}

// keepAsking has so many clients run something all the time, until it is told to
// stop; then it returns how often they were answered with which status.
func (s *service) keepAsking(clients int) (stop func() map[int]int) {
	done := make(chan struct{})
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[int]int{}
	for range clients {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(poll):
				}
				a := s.run(codeHello)
				mu.Lock()
				answers[a.status]++
				if a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
					s.t.Log(fmt.Sprint(a.status, string(a.body), a.err))
				}
				mu.Unlock()
			}
		})
	}
	return func() map[int]int {
		close(done)
		all.Wait()
		return answers
	}
}
