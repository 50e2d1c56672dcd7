package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
)

// newSupervisor returns one whose service is out, with so many cells that were not started.
func newSupervisor(t *testing.T, out *bytes.Buffer, cells uint32) *supervisor {
	t.Helper()
	s := &supervisor{out: out, link: wire.NewLink(out), cells: map[uint32]*cell{}, last: cells}
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
	c.status <- 3
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
