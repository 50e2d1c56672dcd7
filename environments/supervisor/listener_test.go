package main

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
)

// answerTo is what a listener answers to one line.
func answerTo(t *testing.T, l *listener, line string) (a wire.Answer) {
	folder := t.TempDir()
	in, err := net.Listen("unix", filepath.Join(folder, "s"))
	require.NoError(t, err)
	defer in.Close()
	conn, err := net.Dial("unix", filepath.Join(folder, "s"))
	require.NoError(t, err)
	defer conn.Close()
	theirs, err := in.Accept()
	require.NoError(t, err)
	go l.answer(theirs.(*net.UnixConn))
	_, err = conn.Write([]byte(line + "\n"))
	require.NoError(t, err)
	require.NoError(t, wire.ReadLine(bufio.NewReader(conn), &a))
	require.Equal(t, wire.Version, a.Version)
	return a
}

func TestCalls(t *testing.T) {
	l := &listener{groups: t.TempDir(), ids: [2]int{firstMapped, lastMapped}, workers: map[string]*worker{
		"of-a": {service: "a", id: "of-a", token: []byte("secret"), ended: make(chan struct{})},
	}}
	require.Positive(t, answerTo(t, l, `{"do":"ready"}`).Cores)
	token := `"token":"` + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" + `"`
	for line, want := range map[string]string{
		`{"do":"start","service":"a","id":"../x",` + token + `}`: "a worker needs an id and a token",
		`{"do":"start","service":"a","id":"","token":"eA=="}`:    "a worker needs an id and a token",
		`{"do":"start","service":"a","id":"x","token":"eA=="}`:   "a worker needs an id and a token",
		`{"do":"dance","service":"a","id":"of-a"}`:               `call "dance"`,
	} {
		require.Equal(t, want, answerTo(t, l, line).Error, line)
	}
	require.Equal(t, "secret", string(l.workers["of-a"].token))
	for _, do := range []string{"attach", "wait", "end"} {
		a := answerTo(t, l, `{"do":"`+do+`","service":"b","id":"of-a"}`)
		require.True(t, a.Unknown, "%s: it is another service's", do)
		require.Empty(t, a.Token)
	}
	close(l.workers["of-a"].ended)
	require.True(t, answerTo(t, l, `{"do":"attach","service":"a","id":"of-a"}`).Unknown, "it has ended")
	require.Zero(t, answerTo(t, l, `{"do":"wait","service":"a","id":"of-a"}`).Code, "but how is told")
}

// TestUsersOfWorkers: no two workers have one, and there are so many and no more.
func TestUsersOfWorkers(t *testing.T) {
	l := &listener{ids: [2]int{firstMapped, firstMapped + 3*idsOfWorker - 1}, workers: map[string]*worker{}}
	seen := map[int]bool{}
	for _, id := range []string{"a", "b", "c"} {
		user, err := l.user()
		require.NoError(t, err)
		require.GreaterOrEqual(t, user, firstMapped)
		seen[user], l.workers[id] = true, &worker{user: user}
	}
	require.Len(t, seen, 3)
	_, err := l.user()
	require.EqualError(t, err, "there are 3 workers")
}

func TestMappedIDs(t *testing.T) {
	for content, want := range map[string][2]int{
		"         0          0 4294967295\n": {firstID, lastID},
		"         0     524288      65536\n": {firstMapped, lastMapped},
	} {
		file := filepath.Join(t.TempDir(), "uid_map")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		have, err := mappedIDs(file)
		require.NoError(t, err)
		require.Equal(t, want, have)
	}
}
