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

	"notebox/environments/supervisor/tail"
	"notebox/environments/supervisor/wire"
)

const (
	// startTimeout bounds a fork, which takes milliseconds on an idle machine. Others who read
	// what the kernel tells of mounts can make it take many seconds: that is no fault of the
	// zygote, and the next worker's would be as late.
	startTimeout = 30 * time.Second
	// stoppedEvery is how often a zygote that does not fork is asked whether somebody has
	// stopped it.
	stoppedEvery = 250 * time.Millisecond
	// statusTimeout is how long the zygote may take to tell a status after the end.
	statusTimeout = 2 * time.Second
	// endTimeout is how long the first process of a cell may take to end after its harness, and
	// its last words to come.
	endTimeout = time.Second
	// busyPause is between tries to remove groups that stay busy.
	busyPause = 100 * time.Millisecond
	// signalled and above are codes of processes that a signal has ended.
	signalled = 128
	// piece is how much is read from a cell at one time, bytes.
	piece = 16 << 10
)

// cell is one, from open to gone.
type cell struct {
	s      *supervisor
	number uint32
	open   wire.Open
	log    tail.Tail
	// The exit codes of its harness and of its first process, once each.
	harness, first chan int

	once   sync.Once
	killed chan struct{} // closed when the service wants it gone

	mu     sync.Mutex
	stream *wire.Stream  // the service's end
	ours   *net.UnixConn // the cell's; nil before it is there
	copied chan struct{} // closed when nothing of the stream goes to the cell any more
	kept   bool
	ended  *wire.Ended // by itself; nil before
}

func newCell(s *supervisor, number uint32, o wire.Open) *cell {
	return &cell{s: s, number: number, open: o, stream: s.link.Stream(number), copied: closed, harness: make(chan int, 1), first: make(chan int, 1), killed: make(chan struct{})}
}

// closed is a channel that is closed already.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// isKept reports whether the cell outlives its service: one that has ended does not.
func (c *cell) isKept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept && c.ended == nil
}

// keep has the cell outlive its service.
func (c *cell) keep() {
	c.mu.Lock()
	c.kept = true
	c.mu.Unlock()
	asked := c.s.current() // a service that comes later is not answered
	go func() {
		c.s.groups.keep(c.number)
		_ = asked.Send(wire.KindKept, c.number, nil)
	}()
}

// attach begins the stream anew. Who comes to a cell that has ended meanwhile is told that.
func (c *cell) attach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.stream.Close()
	// In this order: what comes after the answer is the new stream's.
	_ = c.s.link.Send(wire.KindHere, c.number, nil)
	c.stream = c.s.link.Stream(c.number)
	switch {
	case c.ended != nil:
		_ = c.s.link.SendJSON(wire.KindEnded, c.number, c.ended)
	case c.ours != nil:
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
		_, _ = io.Copy(ours, stream)
		_, _ = io.Copy(io.Discard, stream) // if the cell does not listen any more, it may still speak
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
	unborn := err != nil
	busy := c.s.groups.remove(c.number)
	select {
	case <-c.killed:
	default:
		c.tellEnd(unborn)
		<-c.killed
	}
	for errors.Is(busy, unix.EBUSY) { // the kernel holds on to a group whose processes have ended
		time.Sleep(busyPause)
		busy = c.s.groups.remove(c.number)
	}
	var gone wire.Gone
	if busy != nil {
		gone.Error = busy.Error()
	}
	c.current().Close()
	c.s.zygote.forget(c.number)
	c.s.forget(c.number)
	_ = c.s.current().SendJSON(wire.KindGone, c.number, gone)
}

func (c *cell) tellEnd(unborn bool) {
	ended := wire.Ended{Code: -1, Log: c.log.String(), Unborn: unborn}
	if !unborn {
		ended.Code = c.code()
	}
	c.mu.Lock()
	c.ended = &ended
	c.mu.Unlock()
	// The service that is there, or the one that attaches, is told; it may be both.
	_ = c.s.current().SendJSON(wire.KindEnded, c.number, ended)
}

// code is the exit code of the harness; if the first process has failed, which takes the harness
// along, that one's; -1 if nobody tells. That a signal has ended the first process says nothing of
// the harness.
func (c *cell) code() int {
	late := time.After(statusTimeout)
	harness := -1
	for range 2 {
		select {
		case harness = <-c.harness:
		case first := <-c.first:
			if first > 0 && first < signalled {
				return first
			}
		case <-late:
			return harness
		}
	}
	return harness
}

// live returns when no process of the cell is left, and all that it has sent is on its way
// unless the cell was killed. An error is that the cell never went on.
func (c *cell) live() error {
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	defer begin()
	go c.hurry(begun)
	limits, err := c.s.groups.make(c.number, c.open)
	if err != nil {
		return err
	}
	ours, words, err := c.s.zygote.fork(c, limits)
	if err != nil {
		return err
	}
	defer ours.Close()
	listened := make(chan struct{})
	go func() { _, _ = io.Copy(&c.log, words); close(listened) }()
	defer func() {
		select {
		case <-listened: // all who write there have ended
		case <-c.killed:
		case <-time.After(endTimeout): // the zygote has it, and does not move
		}
		words.Close()
		<-listened
	}()
	process, err := c.admit(ours)
	begin()
	if errors.Is(err, errNoHarness) && c.failed() {
		fmt.Fprintf(&c.log, "%v\n", err)
		return nil
	}
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
	case <-sent: // the harness has ended, and with it the first process ends
		select {
		case <-process.ended:
		case <-c.killed:
		case <-time.After(endTimeout):
		}
	case <-c.killed:
	}
	process.kill()
	c.awaitEnd(process)
	c.current().Close()
	return nil
}

// awaitEnd returns when a first process that was killed has ended. It waits for all others of its
// pid namespace to be buried, and the harness is for the zygote to bury. If somebody has stopped
// that, they are killed, and nobody waits.
func (c *cell) awaitEnd(first *process) {
	for {
		select {
		case <-first.ended:
			return
		case <-time.After(stoppedEvery):
			if isStopped(c.s.zygote.process.Process.Pid) {
				return
			}
		}
	}
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

// errNoHarness is that a first process has ended before there was a harness.
var errNoHarness = errors.New("the cell has ended before there was a harness")

// failed reports whether the first process, which has ended, could not build the walls. Otherwise it
// was not given a harness.
func (c *cell) failed() bool {
	select {
	case code := <-c.first:
		c.first <- code
		return code != 0
	case <-time.After(statusTimeout):
		return false
	}
}

// admit waits for the first byte of the cell's first process, and of its harness, sees that both
// are in the groups, and lets them go on. It returns the first one.
func (c *cell) admit(ours *net.UnixConn) (*process, error) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-c.killed:
			ours.Close()
		case <-done:
		}
	}()
	var first *process
	for _, which := range []string{"first process", "harness"} {
		pid, err := c.hello(ours)
		if err == nil && first == nil {
			first, err = watch(pid, c.s.zygote.owner)
		}
		if err == nil {
			err = c.join(pid)
		}
		if err == nil {
			_, err = ours.Write([]byte{'g'})
		}
		if err != nil {
			if first != nil {
				first.kill()
				first.close()
			}
			if first != nil && errors.Is(err, io.EOF) {
				err = errNoHarness
			}
			return nil, fmt.Errorf("the %s of a cell did not begin: %w", which, err)
		}
	}
	return first, nil
}

// join puts a process into the groups of the cell.
func (c *cell) join(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(fd)
	if err := c.s.groups.join(c.number, pid); err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, 0, nil, 0); errors.Is(err, unix.ESRCH) { // its number may be another's
		return errors.New("it has ended")
	}
	return nil
}

// hello waits for a byte of a process that has begun, and returns which that is.
func (c *cell) hello(ours *net.UnixConn) (pid int, err error) {
	var hello [1]byte
	credentials := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n int
	for begun := time.Now(); ; {
		_ = ours.SetReadDeadline(time.Now().Add(stoppedEvery))
		if _, n, _, _, err = ours.ReadMsgUnix(hello[:], credentials); err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) > startTimeout || c.s.zygote.stopped() {
			return 0, fmt.Errorf("it was not forked: %w", err)
		}
	}
	_ = ours.SetReadDeadline(time.Time{})
	messages, err := unix.ParseSocketControlMessage(credentials[:n])
	if err != nil || len(messages) == 0 {
		return 0, errors.Join(errors.New("it did not say who it is"), err)
	}
	who, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return 0, err
	}
	return int(who.Pid), nil
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
