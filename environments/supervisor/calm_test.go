package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
)

// TestCalm: in a crowd, cells with many processes stand still for a moment, and no others.
func TestCalm(t *testing.T) {
	for _, c := range []struct {
		desc  string
		pids  map[uint32]int
		still []uint32
	}{
		{"a crowd", map[uint32]int{1: 4, 2: 200, 3: 30, 4: 60, 5: 240}, []uint32{2, 5}},
		{"no crowd", map[uint32]int{1: 4, 2: 200, 3: 40}, nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			var out bytes.Buffer
			s := newSupervisor(t, &out, uint32(len(c.pids)))
			folder := t.TempDir()
			s.groups = &groups{own: map[string]string{"pids": filepath.Join(folder, "pids"), wire.Freezer: filepath.Join(folder, wire.Freezer)}}
			state := func(cell uint32) string {
				raw, err := os.ReadFile(s.groups.path(wire.Freezer, name(cell), "freezer.state"))
				require.NoError(t, err)
				// As the last of what was written: these are no files of the kernel's.
				return strings.TrimRight(string(raw), "x")
			}
			for cell, n := range c.pids {
				for place := range s.groups.own {
					require.NoError(t, os.MkdirAll(s.groups.path(place, name(cell)), 0o755))
				}
				require.NoError(t, os.WriteFile(s.groups.path("pids", name(cell), "pids.current"), fmt.Appendln(nil, n), 0o600))
				require.NoError(t, os.WriteFile(s.groups.path(wire.Freezer, name(cell), "freezer.state"), []byte("xxxxxx"), 0o600))
			}
			done := make(chan struct{})
			go func() { s.calm(); close(done) }()
			if c.still == nil {
				<-done
			} else {
				time.Sleep(calmTime / 2)
				s.calm() // another one meanwhile does nothing
			}
			for cell := range c.pids {
				want := ""
				for _, still := range c.still {
					if still == cell {
						want = "FROZEN"
					}
				}
				require.Equal(t, want, state(cell), "cell %d", cell)
			}
			if c.still != nil { // as it may be kept meanwhile
				require.NoError(t, os.Rename(s.groups.path(wire.Freezer, name(2)), s.groups.path(wire.Freezer, keptName(2))))
				<-done
				require.NoError(t, os.Rename(s.groups.path(wire.Freezer, keptName(2)), s.groups.path(wire.Freezer, name(2))))
			}
			for _, cell := range c.still {
				require.Equal(t, "THAWED", state(cell))
			}
		})
	}
}

// TestCrowded: the largest cells are the crowd, also if each is small, and none that waits is of it.
func TestCrowded(t *testing.T) {
	many := func(n int, each int64) (cells []uint32, of func(uint32) int64) {
		for i := range n {
			cells = append(cells, uint32(i))
		}
		return cells, func(uint32) int64 { return each }
	}
	cells, of := many(65, 22)
	require.Len(t, crowded(cells, of), 54)
	cells, of = many(200, few)
	require.Empty(t, crowded(cells, of))
}

// TestThaw: what a worker that has ended has left standing still goes on.
func TestThaw(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "session-3", "freezer.state")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("FROZEN"), 0o600))
	thaw(folder)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "THAWED", string(raw))
}

// TestLate: the service hears of a cell that is late until it has begun.
func TestLate(t *testing.T) {
	var out bytes.Buffer
	c := newSupervisor(t, &out, 1).cells[1]
	begun := make(chan struct{})
	time.AfterFunc(3*lateAfter, func() { close(begun) })
	c.hurry(begun)
	have := heard(t, out.Bytes())
	require.GreaterOrEqual(t, len(have), 2)
	require.Equal(t, wire.KindLate, have[0].Kind)
	c.kill()
	c.hurry(make(chan struct{}))
}

// TestLeave: a worker that is about to be removed has no cell that stands still.
func TestLeave(t *testing.T) {
	var out bytes.Buffer
	s := newSupervisor(t, &out, 0)
	s.leaving = make(chan struct{})
	s.left = sync.OnceFunc(func() { close(s.leaving) })
	done := make(chan struct{})
	s.calming.Lock() // cells stand still
	go func() {
		s.rest(time.Hour)
		s.calming.Unlock()
		close(done)
	}()
	require.NoError(t, s.handle(wire.Message{Kind: wire.KindLeave}, nil))
	<-done
	require.Eventually(t, func() bool { return !s.calming.TryLock() }, time.Minute, time.Millisecond, "and none does again")
	s.calm()
}
