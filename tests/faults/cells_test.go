package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner/runnertest"
	"notebox/tests/starter"
)

// backTime bounds how long no code runs after a fault of a worker. A supervisor that stands still is
// given ten seconds; the rest is for a busy machine.
const backTime = 20 * time.Second

// TestG15WorkersUnderLoad: a worker of cells ends, or stands still, while many ask. Who asks has
// the right answer, or is told to come back; the service has another worker soon.
func TestG15WorkersUnderLoad(t *testing.T) {
	if os.Getenv("NOTEBOX_TEST_ISOLATION") == "container" {
		t.Skip("there are no workers: runs have containers")
	}
	for _, c := range []struct {
		desc  string
		fault func(t *testing.T, worker string)
	}{
		{"removed by hand", func(t *testing.T, worker string) { command(t, "docker", "rm", "--force", worker) }},
		{"the supervisor is killed", signalling("KILL", "supervisor")},
		{"the supervisor is stopped", signalling("STOP", "supervisor")},
		{"the zygote is killed", signalling("KILL", "zygote")},
		{"the zygote is stopped", signalling("STOP", "zygote")},
		{"the zygote is out of memory", func(t *testing.T, worker string) {
			tighten(t, workerProcess(t, worker, "zygote"))
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			s := newService(t, "", "--isolation", "cell", "--pool-size", "2", "--max-running", "4", "--max-waiting", "100").start()
			all := s.askOften(4)
			eventually(t, "a spare worker waits", func() bool { return s.workers("spare") > 0 })
			worker := ""
			eventually(t, "a worker has a cell", func() bool { worker = s.worker(""); return worker != "" })
			c.fault(t, worker)
			fault := time.Now()
			eventually(t, "another worker has cells", func() bool { return s.worker(worker) != "" })
			other := time.Since(fault)
			eventually(t, "code runs in another worker", func() bool { return all.backAfter(fault.Add(other)) > 0 })
			all.stop()
			t.Logf("%s: another worker had cells after %v, a run that came then %v later; %d answers, %d of them 503",
				c.desc, other, all.backAfter(fault.Add(other)), len(all.answers), all.failed())
			require.Less(t, other+all.backAfter(fault.Add(other)), backTime)
			s.requireRuns()
			s.end()
		})
	}
}

// TestG15DaemonRestartsUnderLoad: the Docker daemon ends while many ask, or is killed, and comes
// back. Who asks has the right answer, or is told to come back; soon after the daemon is there, code
// runs again.
func TestG15DaemonRestartsUnderLoad(t *testing.T) {
	if os.Getenv("NOTEBOX_TEST_ISOLATION") == "container" {
		t.Skip("TestG03DaemonRestarts is this in containers")
	}
	for _, c := range daemonEnds {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			d := newEmptyDaemon(t, smallestImage)
			image := imageOf(t, "bash") // the smallest, and it has a kernel of Python, too
			d.give(image)
			s := newService(t, d.host, "--isolation", "cell", "--image", image, "--pool-size", "2", "--max-running", "4", "--max-waiting", "100").start()
			all := s.askOften(4)
			eventually(t, "code runs", func() bool { return all.backAfter(time.Time{}) > 0 })
			d.stop(c.by)
			eventually(t, "who asks is told to come back", func() bool { return all.failed() > 0 })
			d.start()
			there := time.Now()
			eventually(t, "code runs again", func() bool { return all.backAfter(there) > 0 })
			all.stop()
			t.Logf("%s: code ran again %v after the daemon was there; %d answers, %d of them 503", c.desc, all.backAfter(there), len(all.answers), all.failed())
			require.Less(t, all.backAfter(there), backTime)
			s.requireRuns()
			s.end()
		})
	}
}

// smallestImage has room for the smallest image with cells, packed and not, in bytes.
const smallestImage = 1 << 30

// imageOf is the image of an environment of notebox's own.
func imageOf(t *testing.T, name string) string {
	t.Helper()
	all, err := environments.Load("")
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(e environments.Environment) bool { return e.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return all[i].Image
}

// TestG15SessionInAWorkerThatStandsStill: it is over, and says so. The next one goes well.
func TestG15SessionInAWorkerThatStandsStill(t *testing.T) {
	if os.Getenv("NOTEBOX_TEST_ISOLATION") == "container" {
		t.Skip("there are no workers: runs have containers")
	}
	t.Parallel()
	s := newService(t, "", "--isolation", "cell", "--pool-size", "1").start()
	id := s.open()
	s.step(id, runnertest.CellSet)
	signalling("STOP", "supervisor")(t, s.worker(""))
	stopped := time.Now()
	a := s.inSession(id, runnertest.CellGet)
	require.NoError(t, a.err)
	require.Contains(t, []int{http.StatusGone, http.StatusServiceUnavailable}, a.status, "%s", a.body)
	require.Less(t, time.Since(stopped), backTime)
	s.requireNoSession(id, http.StatusGone)
	next := s.open()
	s.step(next, runnertest.CellSet)
	s.step(next, runnertest.CellGet)
	s.closeSession(next)
	s.end()
}

// asked is one request of several.
type asked struct {
	begun, ended time.Time
	ok           bool
}

// askers are clients that run something all the time.
type askers struct {
	done    chan struct{}
	all     sync.WaitGroup
	mu      sync.Mutex
	answers []asked
}

// askOften has so many clients run something, each time something else. No answer is wrong: it is
// the right one, or says when to come back.
func (s *service) askOften(clients int) *askers {
	a := &askers{done: make(chan struct{})}
	for client := range clients {
		a.all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-a.done:
					return
				default:
				}
				a.ask(s, fmt.Sprintf("%d of %d\n", i, client))
			}
		})
	}
	s.t.Cleanup(a.stop)
	return a
}

func (a *askers) ask(s *service, want string) {
	one := asked{begun: time.Now()}
	res := s.run(fmt.Sprintf("print(%q, end='')", want))
	one.ended, one.ok = time.Now(), res.status == http.StatusOK
	var r reply
	told := res.err == nil && json.Unmarshal(res.body, &r) == nil
	switch {
	case told && one.ok && r.Status == "ok" && r.Text == want:
	case told && res.status == http.StatusServiceUnavailable && res.header.Get("Retry-After") != "":
		time.Sleep(poll)
	default:
		s.t.Errorf("asked for %q: %d %v %s", want, res.status, res.err, res.body)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers = append(a.answers, one)
}

func (a *askers) stop() {
	select {
	case <-a.done:
	default:
		close(a.done)
	}
	a.all.Wait()
}

// backAfter is the time from then to the first right answer of a request that came later, 0 if
// there was none yet.
func (a *askers) backAfter(then time.Time) (back time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.answers {
		if took := one.ended.Sub(then); one.ok && one.begun.After(then) && (back == 0 || took < back) {
			back = took
		}
	}
	return back
}

// failed is how many were told to come back.
func (a *askers) failed() (n int) {
	for _, one := range a.answers {
		if !one.ok {
			n++
		}
	}
	return n
}

// workers is how many the service has in a state.
func (s *service) workers(state string) int {
	a := send(http.MethodGet, s.url+"/metrics", "", nil)
	_, rest, _ := strings.Cut(string(a.body), fmt.Sprintf("\nnotebox_workers{state=%q} ", state))
	n := 0
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// workerOf finds the container in the name of a cell, on version 1 and 2 of control groups.
var workerOf = regexp.MustCompile(`notebox-[a-z0-9]{20,}|[0-9a-f]{64}`)

// worker is one that has cells, but not that one; "" if there is none.
func (s *service) worker(but string) string {
	for _, cell := range starter.Cells(s.id) {
		if worker := workerOf.FindString(cell[strings.LastIndex(cell, "worker-")+1:]); worker != but {
			return worker
		}
	}
	return ""
}

// signalling sends a process of a worker a signal.
func signalling(name, process string) func(t *testing.T, worker string) {
	return func(t *testing.T, worker string) {
		command(t, "kill", "-"+name, workerProcess(t, worker, process))
	}
}

// workerProcess is the lowest id of a process of a worker whose command line ends so: cells have the
// zygote's.
func workerProcess(t *testing.T, worker, end string) string {
	t.Helper()
	for line := range strings.Lines(dockerCLI(t, "", "top", worker, "-eo", "pid,args")) {
		if pid, args, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasSuffix(args, end) {
			return pid
		}
	}
	require.Fail(t, "there is no such process", end)
	return ""
}

// tighten lowers the limit of memory of a process's control group until nothing can be given back
// any more: what it wants next is too much.
func tighten(t *testing.T, pid string) {
	t.Helper()
	groups, err := os.ReadFile("/proc/" + pid + "/cgroup")
	require.NoError(t, err)
	for line := range strings.Lines(string(groups)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controller, path, _ := strings.Cut(rest, ":")
		file := map[string]string{"memory": "/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes", "": "/sys/fs/cgroup" + path + "/memory.max"}[controller]
		if _, err := os.Stat(file); err != nil {
			continue // of another controller
		}
		for limit := int64(1 << 30); limit > 1<<20; limit -= 1 << 20 {
			if err := os.WriteFile(file, fmt.Append(nil, limit), 0); errors.Is(err, syscall.EBUSY) {
				return
			}
		}
	}
}

func command(t *testing.T, words ...string) {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
