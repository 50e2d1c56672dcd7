package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// newSupervisor returns one whose service is out, with so many cells that were not started.
func newSupervisor(t *testing.T, out *bytes.Buffer, cells uint32) *supervisor {
	t.Helper()
	s := &supervisor{out: out, link: wire.NewLink(out), cells: map[uint32]*cell{}, last: cells, groups: &groups{}}
	for number := uint32(1); number <= cells; number++ {
		s.cells[number] = newCell(s, number, wire.Open{})
	}
	return s
}

// heard are the messages of a stream.
func heard(t *testing.T, stream []byte) (all []wire.Message) {
	t.Helper()
	_ = wire.NewLink(nil).Serve(bytes.NewReader(stream), func(m wire.Message) error {
		all = append(all, m)
		return nil
	})
	return all
}

// TestAttachToOneThatHasEnded tells its end, after the answer.
func TestAttachToOneThatHasEnded(t *testing.T) {
	var out bytes.Buffer
	c := newSupervisor(t, &out, 1).cells[1]
	c.harness <- 3
	c.first <- 0
	c.tellEnd(false)
	out.Reset()
	c.attach()
	have := heard(t, out.Bytes())
	require.Len(t, have, 2)
	require.Equal(t, []wire.Kind{wire.KindHere, wire.KindEnded}, []wire.Kind{have[0].Kind, have[1].Kind})
	ended, err := wire.Decode[wire.Ended](have[1])
	require.NoError(t, err)
	require.Equal(t, 3, ended.Code)
}

// TestCodeOfACell: a first process that fails takes the harness along, and that is no want of memory.
func TestCodeOfACell(t *testing.T) {
	for _, c := range []struct{ harness, first, code int }{{0, 0, 0}, {3, 0, 3}, {137, 0, 137}, {137, 1, 1}, {1, 137, 1}} {
		cell := newSupervisor(t, &bytes.Buffer{}, 1).cells[1]
		cell.harness <- c.harness
		cell.first <- c.first
		require.Equal(t, c.code, cell.code(), c)
	}
}

// TestLastOutput: a cell that has closed its input is heard to its end, and so is who still
// writes to it.
func TestLastOutput(t *testing.T) {
	x, y := net.Pipe()
	t.Cleanup(func() { x.Close(); y.Close() })
	s := &supervisor{link: wire.NewLink(x)}
	service := wire.NewLink(y)
	for link, stream := range map[*wire.Link]net.Conn{s.link: x, service: y} {
		go func() { _ = link.Serve(stream, func(wire.Message) error { return nil }) }()
	}
	there, c := service.Stream(1), newCell(s, 1, wire.Open{})
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	ours, theirs := conn(t, pair[0]), conn(t, pair[1])
	require.NoError(t, theirs.CloseRead())
	c.ours = ours
	c.copy()
	sent := make(chan struct{})
	go func() { c.send(ours); close(sent) }()
	_, err = there.Write(make([]byte, 3*wire.Window)) // more than goes out if nobody takes it
	require.NoError(t, err)
	_, err = theirs.Write([]byte("the last"))
	require.NoError(t, err)
	theirs.Close()
	got := make([]byte, 8)
	_, err = io.ReadFull(there, got)
	require.NoError(t, err)
	require.Equal(t, "the last", string(got))
	<-sent
	c.current().Close()
	<-c.copied
}

// conn is an end of a pair of sockets.
func conn(t *testing.T, fd int) *net.UnixConn {
	file := os.NewFile(uintptr(fd), "cell")
	defer file.Close()
	c, err := net.FileConn(file)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c.(*net.UnixConn)
}

// TestTurn: the next service hears of each kept cell that goes on, and before all else; each
// other one is killed.
func TestTurn(t *testing.T) {
	var out bytes.Buffer
	s := newSupervisor(t, &out, 3)
	s.cells[2].kept = true
	s.cells[3].kept, s.cells[3].ended = true, &wire.Ended{}
	nonce := bytes.Repeat([]byte("n"), wire.TokenSize)
	require.NoError(t, s.turn(nonce))
	rest, found := bytes.CutPrefix(out.Bytes(), nonce)
	require.True(t, found)
	have := heard(t, rest)
	require.Len(t, have, 1)
	require.Equal(t, wire.KindResume, have[0].Kind)
	var resumed wire.Resumed
	require.NoError(t, json.Unmarshal(have[0].Payload, &resumed))
	require.Equal(t, wire.Resumed{Cells: []uint32{2}, Last: 3}, resumed)
	var killed []uint32
	for number, c := range s.cells {
		select {
		case <-c.killed:
			killed = append(killed, number)
		default:
		}
	}
	slices.Sort(killed)
	require.Equal(t, []uint32{1, 3}, killed)
}

// kinds are those of the messages that are written.
type kinds chan wire.Kind

func (k kinds) Write(message []byte) (int, error) {
	k <- wire.Kind(message[0])
	return len(message), nil
}

// TestPingsAreAnsweredInAJam: the control groups of sessions are in use, and cannot be renamed yet.
func TestPingsAreAnsweredInAJam(t *testing.T) {
	const cells = 50
	s := newSupervisor(t, &bytes.Buffer{}, cells)
	out, jam, renamed := make(kinds, cells+1), make(chan struct{}), make(chan string, cells)
	s.link, s.pings = wire.NewLink(out), make(chan struct{}, 1)
	s.groups.own = map[string]string{"cpu": "groups"}
	s.groups.rename = func(_, to string) error { <-jam; renamed <- to; return nil }
	go s.answer()
	t.Cleanup(func() { close(s.pings) })
	handled := make(chan error, 1)
	go func() {
		var errs []error
		for number := uint32(1); number <= cells; number++ {
			errs = append(errs, s.handle(wire.Message{Kind: wire.KindKeep, Cell: number}, nil))
		}
		handled <- errors.Join(append(errs, s.handle(wire.Message{Kind: wire.KindPing}, nil))...)
	}()
	require.Equal(t, wire.KindPing, <-out)
	require.NoError(t, <-handled)
	require.Empty(t, renamed)
	close(jam)
	var all []string
	for range cells {
		all = append(all, <-renamed)
		require.Equal(t, wire.KindKept, <-out, "who asked is told when it has its name")
	}
	require.Contains(t, all, "groups/session-50")
}

// TestPingsAreAnswered before there is a zygote too.
func TestPingsAreAnswered(t *testing.T) {
	service, worker := net.Pipe()
	ended := make(chan error)
	go func() { ended <- run(worker, worker, "") }()
	link := wire.NewLink(service)
	answered := make(chan wire.Kind, 2)
	go func() { _ = link.Serve(service, func(m wire.Message) error { answered <- m.Kind; return nil }) }()
	for range 2 {
		require.NoError(t, link.Send(wire.KindPing, 0, nil))
		require.Equal(t, wire.KindPing, <-answered)
	}
	service.Close()
	require.Error(t, <-ended)
}
