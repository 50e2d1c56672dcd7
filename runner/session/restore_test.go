package session_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// recorded has sessions be recorded in a folder.
func recorded(folder string) func(*sessionsOptions) {
	return func(o *sessionsOptions) { o.sessions.RecordDir, o.pool.Held = folder, true }
}

// goOn leaves sessions to a later process, and returns what that makes of them.
func (s *sessionsTest) goOn(folder string, between func()) (next *sessionsTest, open, over int) {
	s.t.Helper()
	require.NoError(s.t, s.all.Detach(s.t.Context()))
	require.NoError(s.t, s.pool.Close(s.t.Context()))
	between()
	next = newSessions(s.t, s.host, recorded(folder))
	next.opened = s.opened
	open, over = next.all.Restore(s.t.Context(), func(runner.SessionInfo) runner.Network { return nil })
	return next, open, over
}

func (s *sessionsTest) find(id string) runner.Session {
	s.t.Helper()
	session, err := s.all.Find("owner", id)
	require.NoError(s.t, err)
	return session
}

// requireOver requires that a session is over for this reason.
func (s *sessionsTest) requireOver(id string, reason runner.GoneReason) {
	s.t.Helper()
	_, err := s.all.Find("owner", id)
	gone := (*runner.GoneError)(nil)
	require.ErrorAs(s.t, err, &gone)
	require.Equal(s.t, reason, gone.Reason)
	_, err = s.all.Find("another", id)
	require.ErrorIs(s.t, err, runner.ErrNoSession)
}

func files(t *testing.T, folder string) (names []string) {
	all, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range all {
		names = append(names, filepath.Join(folder, e.Name()))
	}
	return names
}

// TestRestore: a later process goes on with variables and files, with what is left of the
// time, and with all that is known of the session.
func TestRestore(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "sessions")
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
		one := s.open(func(spec *runner.SessionSpec) {
			spec.Note, spec.Env = map[string]string{"key": "value"}, map[string]string{"PASSWORD": "hunter2"}
			spec.Idle = spec.TTL
		})
		_, err := s.do(t.Context(), one, runnertest.CellSet)
		require.NoError(t, err)
		_, err = one.Write(t.Context(), "kept.txt", strings.NewReader("content"))
		require.NoError(t, err)
		time.Sleep(time.Second) // they are listed by their age
		require.NoError(t, s.open().Restart(t.Context()))
		closed := s.open()
		require.NoError(t, closed.Close(t.Context()))
		before := s.all.List("owner")
		require.Len(t, files(t, folder), 3)
		for _, name := range files(t, folder) {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode())
			raw, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "hunter2")
		}

		s, open, over := s.goOn(folder, func() {
			require.Len(t, s.host.Sandboxes("test"), 2)
			time.Sleep(time.Hour)
		})
		require.Equal(t, []int{2, 0}, []int{open, over})
		require.Equal(t, 2, s.pool.Stats().Sessions)
		require.Equal(t, 2, s.pool.Stats().Sandboxes)
		after := s.all.List("owner")
		require.Len(t, after, 2)
		for i, info := range after {
			require.WithinDuration(t, before[i].Expires, info.Expires, time.Second)
			require.WithinDuration(t, time.Now(), info.LastUsed, time.Second, "its idle time begins anew")
			info.LastUsed, info.Expires = before[i].LastUsed, before[i].Expires
			info.Created = before[i].Created // of another location
			require.Equal(t, before[i], info)
		}
		s.requireOver(closed.Info().ID, runner.GoneClosed)
		again := s.find(one.Info().ID)
		out, err := s.do(t.Context(), again, runnertest.CellGet)
		require.NoError(t, err)
		require.Equal(t, runner.StatusOK, out.Status)
		require.False(t, out.KernelRestarted)
		_, content, err := again.Read(t.Context(), "kept.txt")
		require.NoError(t, err)
		raw, err := io.ReadAll(content)
		require.NoError(t, err)
		require.NoError(t, content.Close())
		require.Equal(t, "content", string(raw))
		_, err = s.all.Open(t.Context(), s.spec())
		require.NoError(t, err, "new ones are opened beside them")

		time.Sleep(10 * time.Hour)
		synctest.Wait()
		s.requireOver(again.Info().ID, runner.GoneExpired)
		require.Zero(t, s.pool.Stats().Sessions)
	})
}

// TestRestoreInTheMiddleOfARun: that is cancelled, and the session goes on.
func TestRestoreInTheMiddleOfARun(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
		heeds, stubborn := s.open(), s.open()
		for _, session := range []runner.Session{heeds, stubborn} {
			_, err := s.do(t.Context(), session, runnertest.CellSet)
			require.NoError(t, err)
		}
		first, second := s.goDo(t.Context(), heeds, runnertest.CellSleep), s.goDo(t.Context(), stubborn, runnertest.CellStubborn)
		synctest.Wait()
		require.Equal(t, 2, s.all.Stats().Running)
		s, open, _ := s.goOn(folder, func() {})
		require.Equal(t, 2, open)
		for _, lost := range []<-chan endedRun{first, second} {
			gone := (*runner.GoneError)(nil)
			require.ErrorAs(t, (<-lost).err, &gone)
		}
		out, err := s.do(t.Context(), s.find(heeds.Info().ID), runnertest.CellGet)
		require.NoError(t, err)
		require.Equal(t, runner.StatusOK, out.Status)
		require.False(t, out.KernelRestarted)

		again := s.find(stubborn.Info().ID)
		require.Equal(t, 1, again.Info().KernelRestarts)
		for _, restarted := range []bool{true, false} { // which is said once
			out, err = s.do(t.Context(), again, runnertest.CellCount)
			require.NoError(t, err)
			require.Equal(t, runner.StatusOK, out.Status)
			require.Equal(t, restarted, out.KernelRestarted)
		}
	})
}

// TestRestoreOfWhatIsNoMore: each says why, at once or when its time for an answer is
// over, and again after the next restart.
func TestRestoreOfWhatIsNoMore(t *testing.T) {
	for _, c := range []struct {
		desc   string
		spoil  func(t *testing.T, host *runnertest.Fake, file string)
		reason runner.GoneReason
	}{
		{"its sandbox has ended", func(t *testing.T, host *runnertest.Fake, _ string) {
			host.End(host.Sandboxes("test")[0])
			synctest.Wait()
		}, runner.GoneLost},
		{"its time is over", func(*testing.T, *runnertest.Fake, string) { time.Sleep(11 * time.Hour) }, runner.GoneExpired},
		{"it does not answer", func(t *testing.T, _ *runnertest.Fake, file string) {
			change(t, file, func(record map[string]any) { record["token"] = []byte(strings.Repeat("x", 32)) })
		}, runner.GoneLost},
		{"it is another's", func(t *testing.T, _ *runnertest.Fake, file string) {
			change(t, file, func(record map[string]any) { record["sandbox"] = "another" })
		}, runner.GoneLost},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				folder := t.TempDir()
				s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
				id := s.open().Info().ID
				s, open, over := s.goOn(folder, func() { c.spoil(t, s.host, files(t, folder)[0]) })
				require.Equal(t, []int{0, 1}, []int{open, over})
				s.requireOver(id, c.reason)
				require.Equal(t, 1, s.all.Stats().Ended[c.reason])
				reap(t, s)

				s, open, over = s.goOn(folder, func() {})
				require.Equal(t, []int{0, 0}, []int{open, over})
				s.requireOver(id, c.reason)
				s, _, _ = s.goOn(folder, func() { time.Sleep(25 * time.Hour) })
				_, err := s.all.Find("owner", id)
				require.ErrorIs(t, err, runner.ErrNoSession, "it is remembered for a day")
				require.Empty(t, files(t, folder))
			})
		})
	}
}

// reap does what a service does when it has restored what it could.
func reap(t *testing.T, s *sessionsTest) {
	t.Helper()
	synctest.Wait() // sandboxes that did not answer are ended in the background
	_, err := s.host.Engine("test").Reap(t.Context())
	require.NoError(t, err)
}

// change changes a record.
func change(t *testing.T, file string, do func(map[string]any)) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, json.Unmarshal(raw, &record))
	do(record)
	raw, err = json.Marshal(record)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, raw, 0o600))
}

// TestRestoreOfMoreTime: a sandbox that says that it has more time than its session had.
func TestRestoreOfMoreTime(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
		id := s.open().Info().ID
		s, open, _ := s.goOn(folder, func() {
			change(t, files(t, folder)[0], func(record map[string]any) {
				created, err := time.Parse(time.RFC3339Nano, record["created"].(string))
				require.NoError(t, err)
				record["expires"] = created.Add(time.Minute)
			})
		})
		require.Equal(t, 1, open)
		require.LessOrEqual(t, time.Until(s.find(id).Info().Expires), time.Minute)
	})
}

// TestRestoreOfSpoiltRecords: a start goes well, with those that can.
func TestRestoreOfSpoiltRecords(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
		id := s.open().Info().ID
		good := files(t, folder)[0]
		raw, err := os.ReadFile(good)
		require.NoError(t, err)
		write := func(name, content string) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		s, open, over := s.goOn(folder, func() {
			write("empty.json", "")
			write("cut.json", string(raw[:len(raw)/2]))
			write("copy.json", string(raw)) // a session is in one file
			write("version.json", strings.Replace(string(raw), `"version":1`, `"version":2`, 1))
			write("large.json", strings.Repeat("[", 1<<20))
			write("."+filepath.Base(good)+".123", "half")
			write("notes.txt", "an operator's")
			require.NoError(t, os.Mkdir(filepath.Join(folder, "folder.json"), 0o700))
		})
		require.Equal(t, []int{1, 0}, []int{open, over})
		s.find(id)
		require.ElementsMatch(t, []string{good, filepath.Join(folder, "notes.txt"), filepath.Join(folder, "folder.json")}, files(t, folder))
	})
}

// TestNoRoomForARecord: a session that no later process could find again is not opened.
func TestNoRoomForARecord(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(filepath.Join(file, "below")))
		_, err := s.all.Open(t.Context(), s.spec())
		known := (*runner.Error)(nil)
		require.ErrorAs(t, err, &known)
		require.Equal(t, runner.CodeUnavailable, known.Code)
		require.NotContains(t, known.Message, "/")
		time.Sleep(time.Minute)
		require.Empty(t, s.host.Sandboxes(""))
	})
}

// idleNetwork is one that nobody uses.
type idleNetwork struct{}

func (idleNetwork) CA() []byte { return nil }

func (idleNetwork) Serve(ctx context.Context, _ string, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		if _, err := l.Accept(); err != nil {
			return
		}
	}
}

// TestRestoreNetwork: what its programs reach is made anew.
func TestRestoreNetwork(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
		with := s.open(func(spec *runner.SessionSpec) { spec.Network = idleNetwork{} })
		without := s.open()
		require.NoError(t, s.all.Detach(t.Context()))
		next := newSessions(t, s.host, recorded(folder))
		var asked []string
		next.all.Restore(t.Context(), func(info runner.SessionInfo) runner.Network {
			require.True(t, info.Network)
			asked = append(asked, info.ID)
			return idleNetwork{}
		})
		require.Equal(t, []string{with.Info().ID}, asked)
		require.True(t, next.find(with.Info().ID).Info().Network)
		require.False(t, next.find(without.Info().ID).Info().Network)
	})
}

// TestRestoreAtMost: a start that has little time goes on with what it can.
func TestRestoreAtMost(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newSessions(t, runnertest.NewHost(t, nil), recorded(folder))
		for range 30 {
			s.open()
		}
		require.NoError(t, s.all.Detach(t.Context()))
		for _, file := range files(t, folder)[:25] {
			change(t, file, func(record map[string]any) { record["token"] = []byte(strings.Repeat("x", 32)) })
		}
		next := newSessions(t, s.host, recorded(folder))
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		open, over := next.all.Restore(ctx, func(runner.SessionInfo) runner.Network { return nil })
		require.LessOrEqual(t, time.Since(begun), time.Minute+time.Second)
		require.Equal(t, 30, open+over)
		require.Len(t, next.all.List("owner"), open)
		require.NoError(t, next.all.Close(t.Context()))
		reap(t, next)
	})
}
