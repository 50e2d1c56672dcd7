package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// TestZygoteHasNoToken: each cell is a fork of the zygote, and has in its memory what that was told.
func TestZygoteHasNoToken(t *testing.T) {
	token := bytes.Repeat([]byte("t"), wire.TokenSize)
	message, err := json.Marshal(commonOf(wire.Setup{
		Name: "worker", Token: token, Modules: []string{"numpy"}, Masked: []string{"/proc/keys"}, ReadOnly: []string{"/proc/sys"},
		Sysctls: map[string]string{"net.core.a": "1"}, Seccomp: json.RawMessage(`{}`),
	}, filters{[]byte("common"), []byte("own")}, map[string]string{"cpu": "/run/groups/cpu"}))
	require.NoError(t, err)
	var have map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(message, &have))
	var fields []string
	for name := range have {
		fields = append(fields, name)
	}
	require.ElementsMatch(t, []string{"kernel", "modules", "filter", "cells_filter", "masked", "read_only", "sysctls", "groups"}, fields, "those of Setup in harness/cell/zygote.py")
	encoded, err := json.Marshal(token)
	require.NoError(t, err)
	require.NotContains(t, string(message), string(token))
	require.NotContains(t, string(message), string(bytes.Trim(encoded, `"`)))
}

// TestZygoteThatIsStopped: nobody waits for it for ever.
func TestZygoteThatIsStopped(t *testing.T) {
	fd, theirs, err := control(50 * time.Millisecond)
	require.NoError(t, err)
	defer theirs.Close()
	defer unix.Close(fd)
	var out bytes.Buffer
	c := newSupervisor(t, &out, 1).cells[1]
	z := &zygote{fd: fd, cells: map[uint32]*cell{}}
	for err == nil {
		var ours *net.UnixConn
		var words *os.File
		if ours, words, err = z.fork(c, nil); err == nil {
			t.Cleanup(func() { ours.Close(); words.Close() })
		}
	}
	require.ErrorIs(t, err, unix.EAGAIN)
}

// TestKilledBeforeItIsThere: the service does not wait for a cell that is not forked.
func TestKilledBeforeItIsThere(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[1])
	var out bytes.Buffer
	c := newSupervisor(t, &out, 1).cells[1]
	admitted := make(chan error, 1)
	go func() { _, err := c.admit(conn(t, pair[0])); admitted <- err }()
	c.kill()
	select {
	case err := <-admitted:
		require.Error(t, err)
	case <-time.After(startTimeout / 2):
		require.Fail(t, "it waits")
	}
}
