package docker

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// someUsers are too few for chance to keep sandboxes apart, and nobody else's.
var someUsers = Users{First: 2_000_000, Last: 2_000_007}

func engineWithUsers(t *testing.T, users Users) *Engine {
	e, err := New(Options{ServiceID: "test-users-" + strings.ToLower(rand.Text()), Users: users, Log: testLog(t)})
	require.NoError(t, err)
	return closeAtEnd(t, e)
}

// userOf is the user of a sandbox, which has to be what its files are mounted for.
func userOf(t *testing.T, e *Engine, s runner.Sandbox) string {
	t.Helper()
	have, err := e.api.ContainerInspect(t.Context(), s.ID())
	require.NoError(t, err)
	user := have.Config.Labels[labelUser]
	require.Contains(t, have.HostConfig.Tmpfs["/mnt/data"], fmt.Sprintf("uid=%s,gid=%s", user, user))
	return user
}

// TestUsersAreApart: no two sandboxes of a daemon have one user, whichever services start
// them, and also where one was killed, has ended or keeps sessions.
func TestUsersAreApart(t *testing.T) {
	env := environment(t)
	one, other := engineWithUsers(t, someUsers), engineWithUsers(t, someUsers)
	start := func(e *Engine) (runner.Sandbox, error) {
		s, err := e.Start(t.Context(), env, smallLimits())
		if err == nil {
			t.Cleanup(func() { require.NoError(t, s.Kill(context.Background())) })
		}
		return s, err
	}
	var group errgroup.Group
	started := make([]runner.Sandbox, 3)
	for i, e := range []*Engine{one, other, one} {
		group.Go(func() (err error) {
			started[i], err = start(e)
			return err
		})
	}
	require.NoError(t, group.Wait())
	_, err := one.Keep(t.Context(), started[0])
	require.NoError(t, err)

	// This one stands for a process that knows nothing of those before it.
	later := engineWithUsers(t, someUsers)
	last, err := start(later)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range append(started, last) {
		user := userOf(t, one, s)
		require.False(t, seen[user], "two sandboxes have %s", user)
		seen[user] = true
		id, err := strconv.Atoi(user)
		require.NoError(t, err)
		require.Zero(t, (id-someUsers.First)%idsEach, "the next id is its clerks'")
		require.True(t, someUsers.First <= id && id < someUsers.Last)
	}

	for _, e := range []*Engine{one, other, later} {
		_, err = start(e)
		requireUnavailable(t, err)
	}
	free := userOf(t, one, started[1])
	require.NoError(t, started[1].Kill(t.Context()))
	again, err := start(later)
	require.NoError(t, err)
	require.Equal(t, free, userOf(t, later, again))
}

func TestUsersOfADaemon(t *testing.T) {
	for _, c := range []struct {
		desc, options string
		users, want   Users
	}{
		{desc: "as most are", options: `["name=apparmor","name=seccomp,profile=default"]`, want: DefaultUsers},
		{desc: "with users remapped", options: `["name=seccomp,profile=default","name=userns"]`, want: remappedUsers},
		{desc: "without root", options: `["name=seccomp,profile=default","name=rootless"]`, want: remappedUsers},
		{desc: "the operator's", options: `["name=userns"]`, users: someUsers, want: someUsers},
	} {
		t.Run(c.desc, func(t *testing.T) {
			daemon := newProxy(t)
			daemon.intercept("/info", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				fmt.Fprintf(w, `{"SecurityOptions":%s}`, c.options)
			})
			e := newEngineAt(t, "test-users", daemon.host)
			e.users = c.users
			have, err := e.Users(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, have)
		})
	}
}

// TestNothingIsCountedTogether: one sandbox uses up what the kernel of the host counts by
// user; another has all that it needs, and a third can be started.
func TestNothingIsCountedTogether(t *testing.T) {
	greedy, neighbour := openSession(t, runner.SessionSpec{}), openSession(t, runner.SessionSpec{})
	var uses []string
	for _, c := range runnertest.AllCounted {
		t.Run(c.Desc, func(t *testing.T) {
			reached := c.Lower(t)
			held := greedy.python(strings.ReplaceAll(c.Hold, "MOST", strconv.Itoa(c.Most)))
			require.Equal(t, runner.StatusOK, held.Status, held.text)
			if reached {
				require.Equal(t, "True\n", held.text, "it has all of it")
			}
			require.Equal(t, runner.StatusOK, neighbour.python(c.Use).Status)
			third := openSession(t, runner.SessionSpec{})
			require.Equal(t, runner.StatusOK, third.python(c.Use).Status)
			require.Equal(t, runner.StatusOK, third.bash("true").Status)
			uses = append(uses, c.Use)
		})
	}
	require.Len(t, uses, len(runnertest.AllCounted))
	require.Equal(t, runner.StatusOK, neighbour.python(uses...).Status, "also all of it together")
}

// TestPipesOfCommandsAreTheSandboxs: one sandbox makes as many pipes as long as it can; those
// that another's harness makes for commands have their length.
func TestPipesOfCommandsAreTheSandboxs(t *testing.T) {
	greedy, neighbour := openSession(t, runner.SessionSpec{}), openSession(t, runner.SessionSpec{})
	const longer = `python3 -c 'import fcntl; [fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20) for fd in (1, 2)]'
sleep 600 &`
	for range 40 { // pairs of 1 MiB each; a user may have 64 MiB in all
		greedy.bash(longer)
	}
	for _, s := range []liveSession{neighbour, openSession(t, runner.SessionSpec{})} {
		have := s.bash(`python3 -c 'import fcntl; print(fcntl.fcntl(1, fcntl.F_GETPIPE_SZ))'`)
		require.Equal(t, "65536\n", have.text)
	}
}

// TestUsersAreTooFew for a worker: it is said at the start, and is not that others have them.
func TestUsersAreTooFew(t *testing.T) {
	e := &Engine{known: map[string]ids{}, next: map[int]int{}}
	_, err := e.choose(someUsers, "worker", workerUsers)
	require.EqualError(t, err, "sandboxes have the ids from 2000000 to 2000007, which are less than the 512 that one container needs")
	_, err = e.choose(someUsers, "container", idsEach)
	require.NoError(t, err)
}
