package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

const (
	// startTimeout bounds a fork, which takes milliseconds on an idle machine.
	startTimeout = 10 * time.Second
	// stoppedEvery is how often a zygote that does not fork is asked whether somebody has
	// stopped it.
	stoppedEvery = 250 * time.Millisecond
	// statusTimeout is how long the zygote may take to tell a status after the end.
	statusTimeout = 2 * time.Second
	// logTail is how much of a cell's last words is kept, bytes: a Python traceback.
	logTail = 8 << 10
	// pieces are read from a cell at one time, bytes.
	piece = 16 << 10
)

// errUnborn is that the zygote does not fork.
var errUnborn = errors.New("the zygote did not fork the cell")

// cell is one, from open to gone.
type cell struct {
	s      *supervisor
	number uint32
	open   wire.Open
	log    tail
	status chan int // from the zygote, once

	once   sync.Once
	killed chan struct{} // closed when the service wants it gone

	mu     sync.Mutex
	stream *wire.Stream  // the service's end
	ours   *net.UnixConn // the cell's; nil before it is there
	copied chan struct{} // closed when nothing of the stream goes to the cell any more
	kept   bool
	over   bool // it has ended by itself
}

func newCell(s *supervisor, number uint32, o wire.Open) *cell {
	return &cell{s: s, number: number, open: o, stream: s.link.Stream(number), copied: closed, status: make(chan int, 1), killed: make(chan struct{})}
}

// closed is a channel that is.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// isKept reports whether the cell outlives its service: one that has ended does not.
func (c *cell) isKept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept && !c.over
}

// keep has the cell outlive its service.
func (c *cell) keep() {
	c.mu.Lock()
	c.kept = true
	c.mu.Unlock()
	c.s.groups.keep(c.number)
	_ = c.s.link.Send(wire.KindKept, c.number, nil)
}

// attach begins the stream anew.
func (c *cell) attach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.stream.Close()
	// In this order: what comes after the answer is the new stream's.
	_ = c.s.link.Send(wire.KindHere, c.number, nil)
	c.stream = c.s.link.Stream(c.number)
	if c.ours != nil {
		c.copy()
	}
}

// copy moves what the service says to the cell, after what an earlier one has said. The lock
// is held.
func (c *cell) copy() {
	stream, ours, before, copied := c.stream, c.ours, c.copied, make(chan struct{})
	c.copied = copied
	go func() {
		defer close(copied)
		<-before
		_, err := io.Copy(ours, stream)
		if err == nil { // the stream does not end; the cell did
			err = io.EOF
		}
		stream.End(err)
	}()
}

// current is the service's end of the stream.
func (c *cell) current() *wire.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream
}

func (c *cell) kill() { c.once.Do(func() { close(c.killed) }) }

// run makes the cell, serves it, and removes it. Of a cell that ended by itself the service
// is told, and its number stays in the table until the service has it killed.
func (c *cell) run() {
	err := c.live()
	if err != nil {
		fmt.Fprintf(&c.log, "%v\n", err)
	}
	unborn := errors.Is(err, errUnborn)
	var gone wire.Gone
	if err := c.s.groups.remove(c.number); err != nil {
		gone.Error = err.Error()
	}
	select {
	case <-c.killed:
	default:
		c.tellEnd(unborn)
		<-c.killed
	}
	c.current().Close()
	c.s.zygote.forget(c.number)
	c.s.forget(c.number)
	_ = c.s.current().SendJSON(wire.KindGone, c.number, gone)
}

func (c *cell) tellEnd(unborn bool) {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	ended := wire.Ended{Code: -1, Log: c.log.String(), Unborn: unborn}
	if unborn {
		_ = c.s.current().SendJSON(wire.KindEnded, c.number, ended)
		return
	}
	select {
	case ended.Code = <-c.status:
	case <-time.After(statusTimeout):
	}
	_ = c.s.current().SendJSON(wire.KindEnded, c.number, ended)
}

// live returns when no process of the cell is left, and all that it has sent is on its way
// unless the cell was killed.
func (c *cell) live() error {
	if err := c.s.groups.make(c.number, c.open); err != nil {
		return err
	}
	ours, words, err := c.s.zygote.fork(c)
	if err != nil {
		return err
	}
	defer ours.Close()
	var listening sync.WaitGroup
	defer listening.Wait()
	defer words.Close()
	listening.Go(func() { _, _ = io.Copy(&c.log, words) })
	process, err := c.admit(ours)
	if err != nil {
		return err
	}
	defer process.close()
	c.mu.Lock()
	c.ours = ours
	c.copy()
	c.mu.Unlock()
	sent := make(chan struct{})
	go func() { c.send(ours); close(sent) }()
	select {
	case <-process.ended:
		select {
		case <-sent:
		case <-c.killed:
		}
		return nil
	case <-c.killed:
	}
	process.kill()
	<-process.ended
	c.current().Close()
	return nil
}

// send moves what the cell writes to the service that is there. What is for one that is not is
// lost.
func (c *cell) send(ours *net.UnixConn) {
	buffer := make([]byte, piece)
	for {
		n, err := ours.Read(buffer)
		if n > 0 {
			_, _ = c.current().Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// admit waits for the cell's first byte, puts its process into the groups, and lets it go on.
func (c *cell) admit(ours *net.UnixConn) (*process, error) {
	var hello [1]byte
	credentials := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n int
	for begun := time.Now(); ; {
		_ = ours.SetReadDeadline(time.Now().Add(stoppedEvery))
		var err error
		if _, n, _, _, err = ours.ReadMsgUnix(hello[:], credentials); err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) > startTimeout || c.s.zygote.stopped() {
			return nil, fmt.Errorf("%w: %w", errUnborn, err)
		}
	}
	_ = ours.SetReadDeadline(time.Time{})
	messages, err := unix.ParseSocketControlMessage(credentials[:n])
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(errors.New("the cell did not say who it is"), err)
	}
	who, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return nil, err
	}
	process, err := watch(int(who.Pid), c.s.zygote.owner)
	if err != nil {
		return nil, err
	}
	if err := c.s.groups.join(c.number, int(who.Pid)); err != nil {
		process.kill()
		return nil, err
	}
	if _, err := ours.Write([]byte{'g'}); err != nil {
		process.kill()
		return nil, fmt.Errorf("the cell did not go on: %w", err)
	}
	return process, nil
}

// process is the first one of a cell: with it all others of its pid namespace end.
type process struct {
	file  *os.File // a pidfd
	owner owner    // who may kill it
	ended chan struct{}
}

func watch(pid int, owner owner) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	p := &process{file: os.NewFile(uintptr(fd), "cell"), owner: owner, ended: make(chan struct{})}
	raw, err := p.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	go func() {
		_ = raw.Read(func(fd uintptr) bool {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, _ := unix.Poll(poll, 0)
			return n > 0
		})
		close(p.ended)
	}()
	return p, nil
}

func (p *process) kill() {
	raw, err := p.file.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = p.owner.do(func() error { return unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
		})
	}
}

func (p *process) close() { p.file.Close() }

// tail keeps the last logTail bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - logTail; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
