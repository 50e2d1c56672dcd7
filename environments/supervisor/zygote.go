package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/tail"
	"notebox/environments/supervisor/wire"
)

const (
	python  = "/opt/venv/bin/python3"
	program = "/opt/notebox"
	// importTimeout bounds the zygote's start: all libraries on a busy host.
	importTimeout = 60 * time.Second
)

// zygote is the process that harnesses of cells are forked from, with its builder, which forks their
// first processes, and the socket by which that is asked to.
type zygote struct {
	fd      int // messages in sequence
	process *exec.Cmd
	log     tail.Tail // its last words
	owner   owner

	mu    sync.Mutex
	cells map[uint32]*cell // that were forked
}

// birth is what the builder is told of a cell. The JSON names are those of the harness.
type birth struct {
	Cell   uint32            `json:"cell"`
	Mounts map[string]string `json:"mounts"`
	Limits map[string]string `json:"limits"` // by files below /sys/fs/cgroup
}

// common is what the zygote is told, and with it each cell. The JSON names are those of the
// harness. The worker's token is not in it: who has that can end all cells.
type common struct {
	Kernel   string            `json:"kernel"`
	Modules  []string          `json:"modules"`
	Filter   []byte            `json:"filter"`       // of everything
	Own      []byte            `json:"cells_filter"` // of cells
	Masked   []string          `json:"masked"`
	ReadOnly []string          `json:"read_only"`
	Sysctls  map[string]string `json:"sysctls"`
	Groups   map[string]string `json:"groups"`
}

func commonOf(s wire.Setup, f filters, groups map[string]string) common {
	return common{Kernel: s.Kernel, Modules: s.Modules, Filter: f.common, Own: f.own, Masked: s.Masked, ReadOnly: s.ReadOnly, Sysctls: s.Sysctls, Groups: groups}
}

// startZygote returns when it has imported everything.
func startZygote(setup wire.Setup, f filters, g *groups) (*zygote, error) {
	fd, theirs, err := control(startTimeout)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	ids := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: setup.FirstUser, Size: 1},
		{ContainerID: setup.FirstUser + wire.ZygoteIDs, HostID: setup.FirstUser + wire.ZygoteIDs, Size: setup.Users - wire.ZygoteIDs},
	}
	z := &zygote{fd: fd, owner: owner{setup.FirstUser + 1}, cells: map[uint32]*cell{}, process: exec.Command(python, program, "zygote")}
	z.process.Dir = "/"
	z.process.Env = append(os.Environ(), "HOME=/run/notebox")
	z.process.Stderr = &z.log
	z.process.ExtraFiles = []*os.File{theirs}
	z.process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{},
		Setsid:     true,
	}
	err = z.owner.do(z.process.Start)
	theirs.Close() // so that the end of the zygote is the end of the socket
	if err != nil {
		return nil, wire.Missed(wire.WallUser, err)
	}
	message, err := json.Marshal(commonOf(setup, f, g.own))
	if err == nil {
		err = z.send(message, nil)
	}
	if err == nil {
		err = z.await()
	}
	if err != nil {
		return nil, errors.Join(err, z.end())
	}
	return z, nil
}

// control makes the socket by which the zygote is told. Nobody waits longer than timeout for
// one that does not read.
func control(timeout time.Duration) (fd int, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, err
	}
	limit := unix.NsecToTimeval(timeout.Nanoseconds())
	return pair[0], os.NewFile(uintptr(pair[1]), "zygote"), unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
}

// end ends the zygote, if it has not ended, and says how it went.
func (z *zygote) end() error {
	late := time.AfterFunc(statusTimeout, func() { _ = z.owner.do(z.process.Process.Kill) })
	defer late.Stop()
	err := z.process.Wait()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%w: %s", err, z.log.String())
}

func (z *zygote) await() error {
	timeout := unix.NsecToTimeval(importTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(z.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	var up [16]byte
	n, err := z.read(up[:])
	if err != nil || string(up[:n]) != "up" {
		return errors.Join(errors.New("it did not come up"), err)
	}
	return unix.SetsockoptTimeval(z.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
}

// read takes one message; 0 bytes are the zygote's end.
func (z *zygote) read(buffer []byte) (int, error) {
	for {
		n, err := unix.Read(z.fd, buffer)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// send sends one message.
func (z *zygote) send(message, rights []byte) error {
	for {
		err := unix.Sendmsg(z.fd, message, rights, nil, 0)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// serve takes what the zygote says of ends, until it ends itself.
func (z *zygote) serve() error {
	var buffer [64]byte
	for {
		n, err := z.read(buffer[:])
		if err != nil || n == 0 {
			return errors.Join(err, z.end())
		}
		var number uint32
		var status int
		var who string
		if _, err := fmt.Sscanf(string(buffer[:n]), "%s %d %d", &who, &number, &status); err != nil {
			return fmt.Errorf("what it says: %w", err)
		}
		z.mu.Lock()
		c := z.cells[number]
		z.mu.Unlock()
		if c == nil {
			continue
		}
		if who == "first" {
			c.first <- exitCode(status)
		} else {
			c.harness <- exitCode(status)
		}
	}
}

// stopped reports whether a signal has stopped it, or its builder, or a debugger has.
func (z *zygote) stopped() bool {
	return slices.ContainsFunc(z.withBuilder(), isStopped)
}

func isStopped(pid int) bool {
	its, err := status(proc(pid, "status"))
	return err == nil && strings.HasPrefix(strings.ToLower(its["State"]), "t")
}

// withBuilder are the zygote's process and its builder's, which is its first child.
func (z *zygote) withBuilder() []int {
	pids := []int{z.process.Process.Pid}
	children, _ := os.ReadFile(proc(pids[0], fmt.Sprintf("task/%d/children", pids[0]))) // not every kernel tells
	var builder int
	if _, err := fmt.Sscan(string(children), &builder); err == nil {
		pids = append(pids, builder)
	}
	return pids
}

func exitCode(status int) int {
	w := syscall.WaitStatus(status)
	if w.Signaled() {
		return signalled + int(w.Signal())
	}
	return w.ExitStatus()
}

func (z *zygote) forget(number uint32) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.cells, number)
}

// fork has a cell forked that has one end of a new stream, and of a pipe for its last words.
// It returns this side's ends.
func (z *zygote) fork(c *cell, limits map[string]string) (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[1])
	stream := os.NewFile(uintptr(pair[0]), "cell")
	defer stream.Close()
	if err := errors.Join(
		unix.SetNonblock(pair[1], false),
		unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1),
	); err != nil {
		return nil, nil, err
	}
	words, word, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer word.Close()
	rights := []int{pair[1], int(word.Fd())}
	group, err := c.s.groups.birthplace(c.number)
	if err != nil {
		words.Close()
		return nil, nil, err
	}
	if group != nil {
		defer group.Close()
		rights = append(rights, int(group.Fd()))
	}
	z.mu.Lock()
	z.cells[c.number] = c
	z.mu.Unlock()
	message, err := json.Marshal(birth{Cell: c.number, Mounts: c.open.Mounts, Limits: limits})
	if err == nil {
		err = z.send(message, unix.UnixRights(rights...))
	}
	if err != nil {
		words.Close()
		return nil, nil, fmt.Errorf("ask the builder: %w", err)
	}
	conn, err := net.FileConn(stream)
	if err != nil {
		words.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), words, nil
}
