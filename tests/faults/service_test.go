package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// codeHello and codeSleep are known to standin as well, see runner/runnertest.
const (
	codeHello = `print("hello")`
	codeSleep = "import time\nprint(\"started\", flush=True)\ntime.sleep(600)"
)

// service is the program as a process of its own.
type service struct {
	t                *testing.T
	host             string // of its daemon; "" is the machine's
	id               string
	folder           string // with its state, files and log
	flags            []string
	url              string
	*starter.Process // of its last start; nil before
}

var services atomic.Int32

// newService is one that is not started yet, in a folder of its own.
func newService(t *testing.T, host string, flags ...string) *service {
	t.Helper()
	name := fmt.Sprintf("s%d", services.Add(1))
	s := &service{t: t, host: host, id: filepath.Base(suite.folder) + "-" + name, folder: filepath.Join(suite.folder, name), flags: flags}
	t.Cleanup(s.remove)
	return s
}

// onDaemon is one on a daemon of the test's own, whose images have no supervisor of cells.
func onDaemon(t *testing.T, d *daemon, flags ...string) *service {
	t.Helper()
	return newService(t, d.host, append([]string{"--isolation", "container", "--image", imageServes}, flags...)...)
}

// launch starts the process.
func (s *service) launch() {
	s.t.Helper()
	o := starter.Options{Program: suite.notebox, ID: s.id, Folder: s.folder, Flags: append([]string{"--timeout", "5m", "--max-timeout", "10m"}, s.flags...)}
	if s.host != "" {
		o.Env = []string{"DOCKER_HOST=" + s.host}
	}
	var err error
	s.Process, err = starter.Launch(o)
	require.NoError(s.t, err)
}

// start starts the process, also again, and waits until it serves.
func (s *service) start() *service {
	s.t.Helper()
	s.launch()
	require.NoError(s.t, s.Await(s.t.Context()))
	s.url = s.URL
	return s
}

// exit waits until it has ended, and returns its exit code.
func (s *service) exit() int {
	s.t.Helper()
	select {
	case <-s.Ended():
	case <-time.After(patience):
		require.FailNow(s.t, "the service does not end")
	}
	return s.ExitCode()
}

// end ends it as an operator does, and holds it to leave nothing.
func (s *service) end() {
	s.t.Helper()
	require.NoError(s.t, s.Signal(syscall.SIGTERM))
	require.Zero(s.t, s.exit(), s.Logged())
	require.Empty(s.t, s.containers())
}

func (s *service) remove() {
	if s.Process != nil {
		if !s.Over() {
			_ = s.Stop(context.Background()) // how it ends is a matter of the test
		}
		if s.t.Failed() {
			s.t.Logf("the service's log:\n%s", s.Logged())
		}
	}
	if s.host == "" { // another daemon is gone with all that it had
		for _, name := range containers(s.t, s.host, s.id) {
			s.t.Errorf("container %s is left", name)
			_ = exec.Command("docker", "rm", "--force", name).Run()
		}
	}
}

// containers are the sandboxes of its runs and sessions: containers, and cells on this machine's
// daemon.
func (s *service) containers() []string {
	if s.host != "" {
		return containers(s.t, s.host, s.id)
	}
	names, err := starter.Sandboxes(s.t.Context(), s.id)
	require.NoError(s.t, err)
	return names
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error // none came
}

// reply is the part of a reply, or of a problem, that these tests look at.
type reply struct {
	ID, Status, Text string
	Files            []struct{ Path, Name, URL string }
	Skipped          []struct{ Path, Reason string }
	Notebook         struct{ URL string }
	Detail           string
}

// UnmarshalJSON takes a problem's status, which is a number, for none.
func (r *reply) UnmarshalJSON(raw []byte) error {
	type plain reply
	var problem struct{ Detail string }
	if err := json.Unmarshal(raw, &problem); err != nil || problem.Detail != "" {
		r.Detail = problem.Detail
		return err
	}
	return json.Unmarshal(raw, (*plain)(r))
}

// stored are the names of the files that can be had.
func (r reply) stored() []string {
	var names []string
	for _, f := range r.Files {
		if f.URL != "" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// url is where a stored file is; "" if there is none of that name.
func (r reply) url(name string) string {
	for _, f := range r.Files {
		if f.Name == name {
			return f.URL
		}
	}
	return ""
}

// lost are the paths of what the caller is told that it could not be stored.
func (r reply) lost() []string {
	var paths []string
	for _, s := range r.Skipped {
		if strings.HasPrefix(s.Reason, "it could not be stored") {
			paths = append(paths, s.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

func (a answer) reply(t *testing.T) (r reply) {
	t.Helper()
	require.NoError(t, a.err)
	require.NoError(t, json.Unmarshal(a.body, &r), "%s", a.body)
	return r
}

// send may be called from any goroutine. Headers are "Name: value".
func send(method, url, contentType string, body []byte, headers ...string) answer {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, raw, err}
}

// run has the service run code.
func (s *service) run(code string) answer {
	return send(http.MethodPost, s.url+"/v1/execute", "text/x-python", []byte(code))
}

// runLater does the same meanwhile.
func (s *service) runLater(code string) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- s.run(code) }()
	return answers
}

// begin has it run code by a stream, and returns when the code has put something
// out. The answer's body is that of the last event.
func (s *service) begin(contentType string, body []byte) <-chan answer {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.url+"/v1/execute", bytes.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "text/event-stream")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, res.StatusCode)
	answers, begun := make(chan answer, 1), make(chan struct{})
	go func() {
		defer res.Body.Close()
		out := sync.OnceFunc(func() { close(begun) })
		defer out()
		a := answer{status: res.StatusCode, header: res.Header}
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				a.body = []byte(data)
			} else if lines.Text() == "event: output" {
				out()
			}
		}
		a.err = lines.Err()
		answers <- a
	}()
	select {
	case <-begun:
	case <-time.After(patience):
		require.FailNow(s.t, "the run does not begin")
	}
	return answers
}

// beginCode is begin with code alone.
func (s *service) beginCode(code string) <-chan answer {
	s.t.Helper()
	return s.begin("text/x-python", []byte(code))
}

// requireRuns has it run something, and well.
func (s *service) requireRuns() {
	s.t.Helper()
	a := s.run(codeHello)
	require.NoError(s.t, a.err)
	require.Equal(s.t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(s.t, "hello\n", a.reply(s.t).Text)
}

// requireUnavailable is the answer of a service that cannot run code now.
func requireUnavailable(t *testing.T, a answer) {
	t.Helper()
	require.NoError(t, a.err)
	require.Equal(t, http.StatusServiceUnavailable, a.status, "%s", a.body)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.NotContains(t, a.reply(t).Detail, suite.folder)
}

// ready is what /readyz says.
func (s *service) ready() answer { return send(http.MethodGet, s.url+"/readyz", "", nil) }

// requireReady waits until /readyz answers so.
func (s *service) requireReady(status int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("readyz answers %d", status), func() bool { return s.ready().status == status })
}

// requireContainers waits until it has so many.
func (s *service) requireContainers(n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("there are %d containers", n), func() bool { return len(s.containers()) == n })
}

// pool is what there is of sandboxes, which a service that is ready tells.
func (s *service) pool() (p struct{ Warm, Starting, Running, Removing, Sandboxes int }) {
	var r struct{ Pool any }
	r.Pool = &p
	_ = json.Unmarshal(s.ready().body, &r)
	return p
}

// requireRunning waits until so many runs have a sandbox.
func (s *service) requireRunning(n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d runs go on", n), func() bool { return s.pool().Running == n })
}
