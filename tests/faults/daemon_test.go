package faults_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// patience bounds every wait for what happens within seconds on a quiet
	// machine: no test is to fail because the machine is busy.
	patience = 5 * time.Minute
	// poll is the time between two looks.
	poll = 50 * time.Millisecond
	// dataRoot is the size of a daemon's disk in bytes: the two images and the
	// files of some containers.
	dataRoot = 64 << 20
	// stopTime is how long a daemon may take to end when it is asked to.
	stopTime = 30 * time.Second

	imageServes = "standin:serves"
	imageExits  = "standin:exits"
)

// daemon is a Docker daemon that a test may do everything to.
type daemon struct {
	t      *testing.T
	folder string
	host   string // for DOCKER_HOST
	cmd    *exec.Cmd
	ended  chan struct{} // of this start of it
}

// daemonEnds are the ways in which a daemon ends.
var daemonEnds = []struct {
	desc string
	by   syscall.Signal
}{
	{"it is ended, and ends its containers", syscall.SIGTERM},
	{"it is killed", syscall.SIGKILL},
}

// daemons counts those that were made, for their names.
var daemons atomic.Int32

// newDaemon starts one, with both images.
func newDaemon(t *testing.T) *daemon {
	t.Helper()
	d := newEmptyDaemon(t, dataRoot)
	d.load(imageServes, `["/standin"]`)
	d.load(imageExits, `["/standin", "exits"]`)
	return d
}

// newEmptyDaemon starts one on a disk of so many bytes.
func newEmptyDaemon(t *testing.T, size int64) *daemon {
	t.Helper()
	needRoot(t)
	d := &daemon{t: t, folder: filepath.Join(suite.folder, fmt.Sprintf("d%d", daemons.Add(1)))}
	d.host = "unix://" + filepath.Join(d.folder, "s")
	t.Cleanup(d.remove)
	require.NoError(t, os.MkdirAll(d.folder, 0o755))
	mountDisk(t, filepath.Join(d.folder, "data"), size)
	require.NoError(t, os.WriteFile(filepath.Join(d.folder, "daemon.json"), []byte("{}"), 0o600))
	d.start()
	return d
}

// start starts the daemon, also again, and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	name := d.cgroup()
	log, err := os.OpenFile(d.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(d.t, err)
	d.cmd = exec.Command("dockerd", "--host", d.host, "--config-file", filepath.Join(d.folder, "daemon.json"),
		"--data-root", filepath.Join(d.folder, "data"), "--exec-root", filepath.Join(d.folder, "exec"),
		"--pidfile", filepath.Join(d.folder, "pid"),
		// Sandboxes have no network. In a namespace of its own, as a daemon without a bridge
		// removes docker0, which is the other daemon's.
		"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false",
		"--cgroup-parent", "/"+name, "--exec-opt", "native.cgroupdriver=cgroupfs",
		// If the machine has a containerd, it is used: not under the other daemon's names.
		"--containerd-namespace", name, "--containerd-plugins-namespace", name+"-plugins",
		"--log-level", "warn")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM} // if these tests are killed
	begun, ended := make(chan error, 1), make(chan struct{})
	d.ended = ended
	cmd := d.cmd
	go func() {
		runtime.LockOSThread() // Pdeathsig is that of the thread
		defer runtime.UnlockOSThread()
		defer close(ended)
		defer log.Close()
		err := cmd.Start()
		begun <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	require.NoError(d.t, <-begun)
	eventually(d.t, "the daemon answers", func() bool { return d.answers() || d.over() })
	if d.over() {
		d.print()
		require.FailNow(d.t, "the daemon did not start")
	}
}

func (d *daemon) over() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

func (d *daemon) answers() bool {
	api := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(d.host, "unix://"))
		},
	}}
	res, err := api.Get("http://docker/_ping")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// load gives the daemon an image with standin alone in it.
func (d *daemon) load(image, entrypoint string) {
	d.t.Helper()
	d.feed(exec.Command("tar", "-c", "-C", filepath.Dir(suite.standin), filepath.Base(suite.standin)),
		"import", "--change", "ENTRYPOINT "+entrypoint, "-", image)
}

// give gives the daemon an image of the machine's.
func (d *daemon) give(image string) {
	d.t.Helper()
	d.feed(exec.Command("docker", "save", image), "load")
}

// feed calls the client with what another command writes.
func (d *daemon) feed(from *exec.Cmd, arguments ...string) {
	d.t.Helper()
	to := exec.Command("docker", append([]string{"--host", d.host}, arguments...)...)
	var err error
	to.Stdin, err = from.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, from.Start())
	out, err := to.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
	require.NoError(d.t, from.Wait())
}

// docker calls the client on this daemon.
func (d *daemon) docker(arguments ...string) string {
	d.t.Helper()
	return dockerCLI(d.t, d.host, arguments...)
}

// dockerCLI calls the client on the daemon at host; "" is the machine's.
func dockerCLI(t *testing.T, host string, arguments ...string) string {
	t.Helper()
	if host != "" {
		arguments = append([]string{"--host", host}, arguments...)
	}
	out, err := exec.Command("docker", arguments...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// containers are the names of those that a service has on the daemon at host.
func containers(t *testing.T, host, service string) []string {
	t.Helper()
	return strings.Fields(dockerCLI(t, host, "ps", "--all", "--filter", "label=notebox.service="+service, "--format", "{{.Names}}"))
}

// signal is for the daemon alone, and not for what it has started.
func (d *daemon) signal(s syscall.Signal) {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(s))
}

// stop ends it by a signal, and waits for that.
func (d *daemon) stop(s syscall.Signal) {
	d.t.Helper()
	d.signal(s)
	select {
	case <-d.ended:
	case <-time.After(patience):
		require.FailNow(d.t, "the daemon does not end")
	}
	// The next one would take what is left of its containerd for one that serves.
	pid, err := os.ReadFile(filepath.Join(d.folder, "exec", "containerd", "containerd.pid"))
	if err != nil {
		return // it had ended first, or is the machine's
	}
	eventually(d.t, "its containerd is gone", func() bool {
		_, err := os.Stat(filepath.Join("/proc", strings.TrimSpace(string(pid))))
		return err != nil
	})
}

// remove ends the daemon, whatever state it is in, and all that it has started.
func (d *daemon) remove() {
	if d.t.Failed() {
		d.print()
	}
	if d.cmd != nil && d.cmd.Process != nil && !d.over() {
		_ = d.cmd.Process.Signal(syscall.SIGCONT)
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.ended:
		case <-time.After(stopTime):
			_ = d.cmd.Process.Kill()
			<-d.ended
		}
	}
	// Its containerd, and the shims of what it could not stop any more.
	for deadline := time.Now().Add(stopTime); ; time.Sleep(poll) {
		rest := processesOf(d.folder)
		if len(rest) == 0 || time.Now().After(deadline) {
			break
		}
		for _, p := range rest {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	unmountBelow(d.folder)
	removeCgroups(d.cgroup())
	if err := os.RemoveAll(d.folder); err != nil {
		d.t.Error(err)
	}
}

// cgroup is also the daemon's name at containerd.
func (d *daemon) cgroup() string { return filepath.Base(suite.folder) + "-" + filepath.Base(d.folder) }

func (d *daemon) log() string { return filepath.Join(d.folder, "log") }

func (d *daemon) print() {
	raw, _ := os.ReadFile(d.log())
	d.t.Logf("the daemon's log:\n%s", raw)
}
