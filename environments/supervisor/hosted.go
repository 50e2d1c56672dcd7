package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/tail"
	"notebox/environments/supervisor/wire"
)

// worker is one of a listener.
type worker struct {
	listener    *listener
	id, service string
	token       []byte
	user        int // the first of its ids

	cmd   *exec.Cmd
	in    *os.File  // what it reads
	log   tail.Tail // its last words
	ended chan struct{}
	code  int // the exit code, once it has ended

	attaching sync.Mutex // one service comes at a time
	mu        sync.Mutex
	conn      net.Conn      // to the service that is there; nil: what it says is lost
	intake    chan struct{} // closed when nothing more comes from that one
}

const (
	// endPause is that between looks at what a worker has left, which is told of after so many.
	endTries, endPause = 1000, 10 * time.Millisecond
	// endTime bounds the wait for an end.
	endTime = 15 * time.Second
)

// begin starts it.
func (w *worker) begin() error {
	theirs, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	out, said, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer said.Close()
	w.in = in
	w.cmd = exec.Command(w.listener.me, cmdWork, w.listener.groups)
	w.cmd.Dir, w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = "/", theirs, said, &w.log
	w.cmd.WaitDelay = time.Second
	group, err := w.group()
	if err == nil {
		if group != nil {
			defer group.Close()
			w.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
		}
		err = w.cmd.Start()
	}
	if err != nil {
		w.removeGroups()
		in.Close()
		out.Close()
		return err
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		w.tell(out)
	}()
	go func() {
		_ = w.cmd.Wait() // which is in the state, or the worker said why
		<-told
		w.finish()
	}()
	return nil
}

// group makes the worker's group on version 2, and opens it. On version 1 it makes its own.
func (w *worker) group() (*os.File, error) {
	if _, err := os.Stat(filepath.Join(w.listener.groups, "cgroup.controllers")); err != nil {
		return nil, nil
	}
	path := filepath.Join(w.listener.groups, workerPrefix+w.id)
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// tell sends what the worker says to the service that is there, to the worker's end.
func (w *worker) tell(out *os.File) {
	defer out.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := out.Read(buffer)
		w.mu.Lock()
		conn := w.conn
		w.mu.Unlock()
		if conn != nil && n > 0 {
			if _, err := conn.Write(buffer[:n]); err != nil {
				conn.Close() // its reading side ends by that, too
			}
		}
		if err != nil {
			return
		}
	}
}

// attach has a connection be the worker's stream, and ends the one before. in is what is read
// from it.
func (w *worker) attach(conn net.Conn, in *bufio.Reader) {
	w.attaching.Lock()
	defer w.attaching.Unlock()
	w.mu.Lock()
	before, over := w.conn, w.intake
	now := make(chan struct{})
	w.mu.Unlock()
	if before != nil {
		before.Close()
		_ = w.in.SetWriteDeadline(time.Now()) // for a worker that reads nothing
		<-over
		_ = w.in.SetWriteDeadline(time.Time{})
	}
	w.mu.Lock()
	w.conn, w.intake = conn, now
	w.mu.Unlock()
	go func() {
		defer close(now)
		_, _ = io.Copy(w.in, in)
	}()
	if w.hasEnded() {
		conn.Close()
	}
}

// hangUp ends the stream of the service that is there.
func (w *worker) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		w.conn.Close()
	}
}

func (w *worker) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// end kills the worker, and returns when nothing is left of it.
func (w *worker) end() error {
	_ = w.cmd.Process.Kill()
	w.hangUp() // who reads nothing would have its last words wait
	select {
	case <-w.ended:
		return nil
	case <-time.After(endTime):
		return errors.New("the worker does not end")
	}
}

// finish removes what a worker has left that has ended, and tells its end.
func (w *worker) finish() {
	w.code = exitCode(int(w.cmd.ProcessState.Sys().(syscall.WaitStatus)))
	w.in.Close()
	pause := endPause
	for tries := 1; w.killZygote() || w.removeGroups(); tries++ { // its ids are nobody else's before
		if tries == endTries {
			fmt.Fprintln(os.Stderr, "supervisor: a worker has left what cannot be removed:", w.id)
			pause = time.Second
		}
		time.Sleep(pause)
	}
	close(w.ended)
	w.hangUp()
	time.AfterFunc(remembered, func() { w.listener.forget(w.id) })
}

// killZygote ends the zygote of a worker that has ended, which is this process's child then, and
// takes all cells along. It reports whether there was one.
func (w *worker) killZygote() (found bool) {
	threads, _ := filepath.Glob("/proc/self/task/*/children")
	for _, thread := range threads {
		children, _ := os.ReadFile(thread)
		for _, field := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(field)
			if err != nil || !w.owns(pid) {
				continue
			}
			found = true
			_ = owner{w.user + 1}.do(func() error { return unix.Kill(pid, unix.SIGKILL) })
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
	return found
}

// owns reports whether a process is one of the worker's users.
func (w *worker) owns(pid int) bool {
	its, err := status(proc(pid, "status"))
	if err != nil {
		return false
	}
	fields := strings.Fields(its["Uid"])
	if len(fields) == 0 {
		return false
	}
	user, err := strconv.Atoi(fields[0])
	return err == nil && user >= w.user && user < w.user+idsOfWorker
}

// removeGroups removes what the worker has had, and reports whether something is left.
func (w *worker) removeGroups() (left bool) {
	name := workerPrefix + w.id
	thaw(filepath.Join(w.listener.groups, wire.Freezer, name))
	for _, place := range append([]string{""}, wire.Controllers...) {
		path := filepath.Join(w.listener.groups, place, name)
		removeTree(path)
		if _, err := os.Stat(path); err == nil {
			left = true
		}
	}
	return left
}
