package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

const (
	// socketMode lets the service in: it has the group that the cluster gives the folder.
	socketMode = 0o660
	// callTimeout bounds the wait for a call on a connection.
	callTimeout = 10 * time.Second
	// acceptPause is the wait after a connection that could not be taken.
	acceptPause = 100 * time.Millisecond
	// remembered is how long the end of a worker is told to who waits for it late.
	remembered = time.Minute
	// maxWorkers bounds workers: a service has one or two for each language, and a few more where
	// each key has its own.
	maxWorkers = 64
	// idsOfWorker, as with Docker: two for the zygote and two for each cell.
	idsOfWorker = 512
	// firstID and lastID are where a worker's ids are sought on a host without user namespaces.
	// They are above those that systemd gives to containers, and above those of runner/kubernetes.
	// Of so many blocks two pods have the same one hardly ever: that would have them share what the
	// kernel counts by user.
	firstID, lastID = 0x78000000, 0x7fffffff
	// firstMapped and lastMapped are sought inside a user namespace, which has 65,536 ids of its
	// own: above those of people, below those of Debian's own.
	firstMapped, lastMapped = 10_000, 59_999
)

// listener is the state of the one that serves.
type listener struct {
	me     string // this program
	groups string // the folder of control groups
	ids    [2]int // where those of workers are sought

	mu      sync.Mutex
	workers map[string]*worker // by id
}

// serve serves to the end of this process, which is that of its container.
func serve(socket string) error {
	me, err := os.Executable()
	if err != nil {
		return err
	}
	l := &listener{me: me, groups: hostGroups, workers: map[string]*worker{}}
	if l.ids, err = mappedIDs("/proc/self/uid_map"); err != nil {
		return err
	}
	if err := delegate(l.groups); err != nil {
		return wire.Missed(wire.WallGroups, err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unix.Umask(0o777 &^ socketMode)
	in, err := net.Listen("unix", socket)
	unix.Umask(0o022)
	if err != nil {
		return err
	}
	for {
		conn, err := in.Accept()
		if err != nil { // for want of descriptors, say: an end would be that of all cells
			fmt.Fprintln(os.Stderr, "supervisor:", err)
			time.Sleep(acceptPause)
			continue
		}
		go l.answer(conn.(*net.UnixConn))
	}
}

// mappedIDs are those that workers may have in this user namespace.
func mappedIDs(file string) ([2]int, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return [2]int{}, err
	}
	var inside, outside, length int
	if _, err := fmt.Sscan(string(raw), &inside, &outside, &length); err != nil {
		return [2]int{}, fmt.Errorf("%s: %w", file, err)
	}
	if inside == 0 && length > lastID {
		return [2]int{firstID, lastID}, nil
	}
	return [2]int{firstMapped, lastMapped}, nil
}

// delegate has groups with limits in the container's group, on version 2: it has no process of its
// own then.
func delegate(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "cgroup.controllers")); err != nil {
		return nil
	}
	own := filepath.Join(folder, "listener")
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := write(filepath.Join(own, "cgroup.procs"), "0"); err != nil {
		return err
	}
	return write(filepath.Join(folder, "cgroup.subtree_control"), "+cpu +memory +pids")
}

// errUnknown is that there is no such worker.
var errUnknown = errors.New("there is no such worker")

// answer serves one connection.
func (l *listener) answer(conn *net.UnixConn) {
	var call wire.Call
	in := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(callTimeout))
	if err := wire.ReadLine(in, &call); err != nil {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	answer, stream, err := l.do(call, conn)
	answer.Version, answer.Cores, answer.Memory = wire.Version, cores(), l.memory()
	if err != nil {
		answer.Error, answer.Unknown = err.Error(), errors.Is(err, errUnknown)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(callTimeout))
	sent := wire.WriteLine(conn, answer)
	_ = conn.SetWriteDeadline(time.Time{})
	if sent != nil || stream == nil {
		conn.Close()
		return
	}
	stream.attach(conn, in)
}

// do does what is called for. stream is not nil if the connection becomes that of a worker.
func (l *listener) do(c wire.Call, conn net.Conn) (a wire.Answer, stream *worker, err error) {
	switch c.Do {
	case wire.CallReady:
		return a, nil, nil
	case wire.CallReap:
		return a, nil, l.reap(c.Service, c.Keep)
	case wire.CallStart:
		w, err := l.start(c)
		if err != nil {
			return a, nil, err
		}
		a.FirstUser, a.Users = w.user, idsOfWorker
		return a, w, nil
	}
	w := l.find(c)
	if w == nil || c.Do == wire.CallAttach && w.hasEnded() {
		return a, nil, errUnknown
	}
	switch c.Do {
	case wire.CallAttach:
		a.Token = w.token
		return a, w, nil
	case wire.CallWait:
		gone := make(chan struct{})
		go func() { // a service that has gone waits no longer
			_, _ = conn.Read(make([]byte, 1))
			close(gone)
		}()
		select {
		case <-w.ended:
			a.Code, a.Log = w.code, w.log.String()
		case <-gone:
		}
		return a, nil, nil
	case wire.CallEnd:
		return a, nil, w.end()
	}
	return a, nil, fmt.Errorf("call %q", c.Do)
}

func (l *listener) find(c wire.Call) *worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.workers[c.ID]; w != nil && w.service == c.Service {
		return w
	}
	return nil
}

// start starts a worker.
func (l *listener) start(c wire.Call) (*worker, error) {
	if c.ID == "" || strings.ContainsAny(c.ID, "/.") || len(c.Token) != wire.TokenSize {
		return nil, errors.New("a worker needs an id and a token")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.workers[c.ID] != nil {
		return nil, fmt.Errorf("worker %s again", c.ID)
	}
	user, err := l.user()
	if err != nil {
		return nil, err
	}
	w := &worker{listener: l, id: c.ID, service: c.Service, token: c.Token, user: user, ended: make(chan struct{})}
	if err := w.begin(); err != nil {
		return nil, err
	}
	l.workers[c.ID] = w
	return w, nil
}

// user returns the first of ids that no worker has. The lock is held.
func (l *listener) user() (int, error) {
	blocks := (l.ids[1] - l.ids[0] + 1) / idsOfWorker
	taken := map[int]bool{}
	for _, w := range l.workers {
		taken[w.user] = true
	}
	if len(taken) >= min(maxWorkers, blocks) {
		return 0, fmt.Errorf("there are %d workers", len(taken))
	}
	for {
		if user := l.ids[0] + idsOfWorker*rand.IntN(blocks); !taken[user] {
			return user, nil
		}
	}
}

// reap ends the workers of a service but some.
func (l *listener) reap(service string, keep []string) (err error) {
	l.mu.Lock()
	var all []*worker
	for id, w := range l.workers {
		if w.service == service && !slices.Contains(keep, id) && !w.hasEnded() {
			all = append(all, w)
		}
	}
	l.mu.Unlock()
	for _, w := range all {
		err = errors.Join(err, w.end())
	}
	return err
}

// forget has nothing told of a worker any more.
func (l *listener) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.workers, id)
}

// cores are those of the host: a container may be held to some of them, but sees the files of all.
func cores() int {
	all, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	return cmp.Or(len(all), 1)
}

// memory is what the container may have in all, bytes; 0 if there is no limit.
func (l *listener) memory() int64 {
	for _, file := range []string{"memory.max", "memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(filepath.Join(l.groups, file))
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
		if err == nil && limit < 1<<60 { // version 1 has a large number for none
			return limit
		}
	}
	return 0
}
