package faults_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner/runnertest"
)

// open opens a session and returns its id.
func (s *service) open() string {
	s.t.Helper()
	a := send(http.MethodPost, s.url+"/v1/sessions", "application/json", []byte("{}"))
	require.NoError(s.t, a.err)
	require.Equal(s.t, http.StatusCreated, a.status, "%s", a.body)
	var session struct{ ID string }
	require.NoError(s.t, json.Unmarshal(a.body, &session))
	return session.ID
}

// inSession runs code in a session.
func (s *service) inSession(id, code string) answer {
	body, _ := json.Marshal(map[string]string{"session": id, "code": code})
	return send(http.MethodPost, s.url+"/v1/execute", "application/json", body)
}

// step is inSession of code that runs well.
func (s *service) step(id, code string) {
	s.t.Helper()
	a := s.inSession(id, code)
	require.NoError(s.t, a.err)
	require.Equal(s.t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(s.t, "ok", a.reply(s.t).Status, "%s", a.body)
}

// requireNoSession requires this answer of who asks for a session.
func (s *service) requireNoSession(id string, status int) answer {
	s.t.Helper()
	a := send(http.MethodGet, s.url+"/v1/sessions/"+id, "", nil)
	require.NoError(s.t, a.err)
	require.Equal(s.t, status, a.status, "%s", a.body)
	return a
}

func (s *service) closeSession(id string) {
	s.t.Helper()
	require.Equal(s.t, http.StatusNoContent, send(http.MethodDelete, s.url+"/v1/sessions/"+id, "", nil).status)
}

// isSession is whether a container of that name is a session's.
func isSession(name string) bool { return strings.HasPrefix(name, "notebox-session-") }

// copyRecords gives one service what another knows of its sessions.
func copyRecords(t *testing.T, from, to *service) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(from.folder, "state", "sessions", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to.folder, "state", "sessions", filepath.Base(name)), raw, 0o600))
	}
}

// TestG03DaemonRestartsWithSessions, or does not: they are lost with the daemon's containers, and say
// so; those that come after it go well. A service that starts after it says the same.
func TestG03DaemonRestartsWithSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc  string
		by    syscall.Signal
		again bool // it is started again
	}{
		{"it is ended, and ends its containers", syscall.SIGTERM, true},
		{"it is killed, and stays away", syscall.SIGKILL, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t)
			s := onDaemon(t, d, "--pool-size", "1").start()
			idle, busy := s.open(), s.open()
			s.step(idle, runnertest.CellSet)
			cut := make(chan answer, 1)
			go func() { cut <- s.inSession(busy, codeSleep) }()
			eventually(t, "a run goes on", func() bool {
				a := send(http.MethodGet, s.url+"/v1/sessions/"+busy, "", nil)
				return strings.Contains(string(a.body), `"status":"running"`)
			})
			d.stop(c.by)
			a := <-cut
			require.NoError(t, a.err)
			require.Contains(t, []int{http.StatusGone, http.StatusServiceUnavailable}, a.status, "%s", a.body)
			for _, id := range []string{idle, busy} {
				eventually(t, "it is over", func() bool {
					return send(http.MethodGet, s.url+"/v1/sessions/"+id, "", nil).status == http.StatusGone
				})
				require.Contains(t, s.requireNoSession(id, http.StatusGone).reply(t).Detail, "its sandbox ended by itself")
			}

			if !c.again {
				return
			}
			d.start()
			s.requireReady(http.StatusOK)
			next := s.open()
			s.step(next, runnertest.CellSet)
			s.step(next, runnertest.CellGet)
			s.settled()
			s.Kill()
			s.start()
			s.step(next, runnertest.CellGet)
			s.requireNoSession(idle, http.StatusGone)
			s.closeSession(next)
			s.end()
		})
	}
}
