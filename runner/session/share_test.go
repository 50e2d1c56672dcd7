package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

// TestSessionShare: what one owner opens leaves room for others.
func TestSessionShare(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		several := false
		s := newSessions(t, runnertest.NewHost(t, nil), func(o *sessionsOptions) {
			o.sessions.MaxSessions, o.sessions.Shared = 8, func() bool { return several }
		})
		open := func(owner string) (runner.Session, error) {
			return s.all.Open(t.Context(), s.spec(func(spec *runner.SessionSpec) { spec.Owner = owner }))
		}
		var first runner.Session
		for n := range 8 {
			session, err := open("a")
			require.NoError(t, err, "the only owner may have all")
			if n == 0 {
				first = session
			}
			time.Sleep(time.Second)
		}
		_, err := open("a")
		runnertest.RequireCode(t, runner.CodeFull, err)

		several = true
		_, err = open("a")
		runnertest.RequireCode(t, runner.CodeFull, err)
		opened, err := open("b")
		require.NoError(t, err, "an owner without any gets the room of who has most")
		s.requireGone(first, runner.GoneEvicted)
		require.Len(t, s.all.List("a"), 7)
		for range 3 {
			_, err = open("b")
			require.NoError(t, err, "it has less than an equal part")
		}
		_, err = open("b")
		runnertest.RequireCode(t, runner.CodeFull, err)
		require.Len(t, s.all.List("a"), 4)
		for _, own := range s.all.List("b") {
			if own.ID != opened.Info().ID {
				session, err := s.all.Find("b", own.ID)
				require.NoError(t, err)
				require.NoError(t, session.Close(t.Context()))
			}
		}
		for _, own := range s.all.List("a") {
			session, err := s.all.Find("a", own.ID)
			require.NoError(t, err)
			require.NoError(t, session.Close(t.Context()))
		}

		for range 4 { // half of what b leaves
			_, err := open("a")
			require.NoError(t, err)
		}
		_, err = open("a")
		runnertest.RequireCode(t, runner.CodeShare, err)
		require.ErrorContains(t, err, "4 sessions open, and the rest of the room is for others")
		for _, owner := range []string{"c", "d", "e"} {
			_, err := open(owner)
			require.NoError(t, err, "there is room for everybody's first")
		}
		_, err = open("f")
		require.NoError(t, err)
		require.Len(t, s.all.List("a"), 3, "it had most")
		_, err = s.do(t.Context(), opened, runnertest.CellHello)
		require.NoError(t, err, "another's only one stays")
	})
}

// TestEvictionIsOfWhoHasMost: room for a sandbox is made by who has most sessions, and
// never by an owner that has fewer than the one that needs it.
func TestEvictionIsOfWhoHasMost(t *testing.T) {
	type owners = map[string]int
	needRun := func(s *sessionsTest, owner string) error {
		spec := runnertest.NewSpec(runnertest.CellHello)
		spec.Owner = owner
		_, err := s.admission.Run(s.t.Context(), spec, runnertest.NewRecorder(s.t))
		return err
	}
	needSession := func(s *sessionsTest, owner string) error {
		_, err := s.all.Open(s.t.Context(), s.spec(func(spec *runner.SessionSpec) { spec.Owner = owner }))
		return err
	}
	for _, c := range []struct {
		desc   string
		before []string // whose sessions are opened, in that order
		need   func(*sessionsTest, string) error
		owner  string // that needs room
		left   owners
	}{
		{"another's only one is older", []string{"b", "a", "a", "a"}, needSession, "a", owners{"a": 3, "b": 1}},
		{"a run of who has most", []string{"b", "a", "a", "a"}, needRun, "a", owners{"a": 2, "b": 1}},
		{"a run of who has few", []string{"b", "a", "a", "a"}, needRun, "b", owners{"a": 2, "b": 1}},
		{"a session of who has none", []string{"b", "a", "a", "a"}, needSession, "c", owners{"a": 2, "b": 1, "c": 1}},
		{"all have one", []string{"b", "a", "c", "d"}, needSession, "e", owners{"a": 1, "c": 1, "d": 1, "e": 1}},
		{"all have one, and one wants two", []string{"b", "a", "c", "d"}, needSession, "c", owners{"a": 1, "b": 1, "c": 1, "d": 1}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				s := newSessions(t, runnertest.NewHost(t, nil), func(o *sessionsOptions) { o.pool.MaxSandboxes = 4 })
				for _, owner := range c.before {
					s.open(func(spec *runner.SessionSpec) { spec.Owner = owner })
					time.Sleep(time.Second)
				}
				time.Sleep(2 * session.EvictAfter)
				require.NoError(t, c.need(s, c.owner))
				left := owners{}
				for _, owner := range []string{"a", "b", "c", "d", "e"} {
					if n := len(s.all.List(owner)); n > 0 {
						left[owner] = n
					}
				}
				require.Equal(t, c.left, left)
			})
		})
	}
}
