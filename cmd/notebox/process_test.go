package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// count returns how many containers a service has on the daemon.
func count(t *testing.T, id string) int {
	t.Helper()
	out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=notebox.service="+id).Output()
	require.NoError(t, err)
	return len(strings.Fields(string(out)))
}

// created returns how many containers a service has had made since then.
func created(t *testing.T, id string, since time.Time) int {
	t.Helper()
	out, err := exec.Command("docker", "events", "--filter", "label=notebox.service="+id, "--filter", "event=create",
		"--since", fmt.Sprint(since.Unix()-1), "--until", fmt.Sprint(time.Now().Unix()+1)).Output()
	require.NoError(t, err)
	return strings.Count(string(out), "\n")
}

// process is the program as a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// startProcess builds the program, starts it and waits until it serves.
func startProcess(t *testing.T, id, folder string) *process {
	t.Helper()
	binary := folder + "/notebox"
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--service-id", id,
		"--state-dir", folder+"/state", "--storage", "file://"+folder+"/files", "--drain", "2s", "--timeout", "5m", "--pool-size", "0")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), " url="); ok {
			p.url, _, _ = strings.Cut(rest, " ")
			break
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	require.NotEmpty(t, p.url, "the program did not start")
	return p
}

// sleep posts a run that goes on until something ends it.
func (p *process) sleep() {
	go func() {
		res, err := http.Post(p.url+"/v1/execute", "text/plain", strings.NewReader("import time; time.sleep(300)"))
		if err == nil {
			res.Body.Close()
		}
	}()
}

// TestSigkill: what a service leaves behind when it is killed is gone at the
// next start; its sandboxes notice by themselves as well.
func TestSigkill(t *testing.T) {
	t.Parallel()
	id, folder := serviceID+"-sigkill", t.TempDir()
	p := startProcess(t, id, folder)
	p.sleep()
	require.Eventually(t, func() bool { return count(t, id) == 1 }, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()

	p = startProcess(t, id, folder)
	require.Zero(t, count(t, id), "a start removes what was left")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.cmd.Wait(), "SIGTERM ends with exit code 0")
}

// TestSecondServiceInOneStateFolder is refused.
func TestSecondServiceInOneStateFolder(t *testing.T) {
	t.Parallel()
	_, _, err := start(suite.folder)
	require.ErrorContains(t, err, "another notebox uses the state folder")
}

// TestSandboxNoticesThatItIsAlone: without a service a sandbox ends by itself.
func TestSandboxNoticesThatItIsAlone(t *testing.T) {
	t.Parallel()
	id, folder := serviceID+"-alone", t.TempDir()
	p := startProcess(t, id, folder)
	p.sleep()
	require.Eventually(t, func() bool { return count(t, id) == 1 }, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	require.Eventually(t, func() bool { return count(t, id) == 0 }, 35*time.Second, 200*time.Millisecond)
}
