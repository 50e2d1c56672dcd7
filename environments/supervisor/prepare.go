package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// hostGroups is where a runtime mounts a container's own control groups.
	hostGroups = "/sys/fs/cgroup"
	// coreLimit, openFiles and oomScore are those of package posture, which a container of a
	// cluster cannot be given.
	coreLimit, openFiles, oomScore = 1, 8192, 500
	oomFile                        = "/proc/self/oom_score_adj"
)

// names are files that runtimes mount into a container, and which tell code of the pod. Code finds
// these instead, which are Docker's for a container without a network.
var names = map[string]string{
	"/etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
	"/etc/hostname":    "sandbox\n",
	"/etc/resolv.conf": "",
}

// prepare makes of a container what Docker makes of a worker's when the service tells it to, and
// what a cluster has no words for: control groups that can be written, and a /proc in which
// nothing is covered, as without one the kernel lets no cell have its own. It needs the capability
// SYS_ADMIN for that, gives it up, and becomes the listener. What it may not do is left: which
// wall is missing then is found by the probe of cells.
func prepare(socket string) error {
	runtime.LockOSThread() // what is given up is this thread's, which goes on in the next program
	me, err := os.Executable()
	if err != nil {
		return err
	}
	err = errors.Join(
		allowed(unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")),
		writableGroups(),
	)
	for file, content := range names {
		if left := replace(file, content); left != nil { // no wall: it tells of the pod
			fmt.Fprintln(os.Stderr, "supervisor: code will see the container's own", file+":", left)
		}
	}
	if err != nil {
		return fmt.Errorf("prepare the container: %w", err)
	}
	limits := map[int]uint64{unix.RLIMIT_CORE: coreLimit, unix.RLIMIT_NOFILE: openFiles}
	for kind, most := range limits {
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	if number(oomFile) < oomScore { // a cluster gives more to whom it can do without
		if err := write(oomFile, strconv.Itoa(oomScore)); err != nil {
			return err
		}
	}
	// Without new privileges a program of root's gets no more than this thread has.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: setgid | setuid, Permitted: setgid | setuid}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w; the container needs SETUID and SETGID", err)
	}
	return unix.Exec(me, []string{me, cmdServe, socket}, os.Environ())
}

// replace has a file have another content, also where the file system is read-only.
func replace(file, content string) error {
	other, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	defer os.Remove(other.Name()) // it stays where it is bound
	_, err = other.WriteString(content)
	if err := errors.Join(err, other.Chmod(0o644), other.Close()); err != nil {
		return err
	}
	return unix.Mount(other.Name(), file, "", unix.MS_BIND, "")
}

// allowed leaves out that something is not allowed, or not there.
func allowed(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writableGroups has the container write to its own control groups, which runtimes mount
// read-only.
func writableGroups() error {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer mounts.Close()
	var all []string
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		kind := slices.Index(fields, "-") + 1
		if len(fields) > 4 && kind > 0 && kind < len(fields) && strings.HasPrefix(fields[kind], "cgroup") {
			all = append(all, fields[4])
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for _, folder := range all {
		if folder != hostGroups && filepath.Dir(folder) != hostGroups {
			continue
		}
		err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		if err := allowed(err); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return nil
}
