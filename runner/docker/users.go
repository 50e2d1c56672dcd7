package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// Users is a range of ids, its ends included, that are uids and gids in sandboxes. Each
// sandbox has two of them: its code is the first; the next is the real uid of those children
// of the harness that the code must not reach.
type Users struct{ First, Last int }

var (
	// DefaultUsers are ids that neither Debian nor systemd gives to anybody on a host: those
	// of people and services are below, those of containers and subordinate ones above.
	DefaultUsers = Users{First: 65536, Last: 99999}
	// remappedUsers are the default inside a user namespace, which has 65536 ids as a rule:
	// above those of people, below those of Debian's own.
	remappedUsers = Users{First: 10000, Last: 59999}
)

const (
	// idsEach is how many ids a sandbox has.
	idsEach = 2
	// userTries bounds how often a sandbox is created anew because another service has its
	// user: chance alone makes that happen, and twice in a row hardly ever.
	userTries = 20
)

// Room returns for how many sandboxes there are ids.
func (u Users) Room() int { return (u.Last - u.First + 1) / idsEach }

// user returns the first id of the n-th sandbox.
func (u Users) user(n int) int { return u.First + idsEach*n }

// Users returns the range that is in use: Options.Users, or the default for this daemon.
func (e *Engine) Users(ctx context.Context) (Users, error) {
	e.mu.Lock()
	users := e.users
	e.mu.Unlock()
	if users != (Users{}) {
		return users, nil
	}
	info, err := e.info(ctx)
	if err != nil {
		return Users{}, err
	}
	users = DefaultUsers
	if slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
		return strings.HasPrefix(option, "name=userns") || strings.HasPrefix(option, "name=rootless")
	}) {
		users = remappedUsers
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users = users
	return users, nil
}

// createAlone creates a container whose user no other container of the daemon has: no
// other service's either, nor one that a killed service left. Nothing runs in it yet.
//
// Each container has its user in a label. It is created first, and then all others are
// looked at: of two that are created at one time with one user, at least the later one sees
// the other, and who sees another gives way.
func (e *Engine) createAlone(ctx context.Context, name string, c *container.Config, host func(user int) *container.HostConfig) error {
	users, err := e.Users(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAsked, err)
	}
	for range userTries {
		user, err := e.choose(users, name)
		if err != nil {
			return err
		}
		c.Labels[labelUser] = strconv.Itoa(user)
		if err := e.create(ctx, name, c, host(user)); err != nil {
			return err
		}
		taken, err := e.usersOfOthers(ctx, name)
		if err != nil {
			return err
		}
		if e.note(taken, user) {
			return nil
		}
		if err := e.remove(ctx, name); err != nil {
			return err
		}
	}
	return unavailable("no user for a sandbox is free", errors.New("others had each that was tried"))
}

// choose takes a user for a container: the next one that no container of this process has,
// so that none is used again soon. One that others had when they were last looked at is
// taken if there is no other, as they may have ended.
func (e *Engine) choose(users Users, name string) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	mine := slices.Collect(maps.Values(e.known))
	last := 0
	for range users.Room() {
		user := users.user(e.next % users.Room())
		e.next++
		if slices.Contains(mine, user) {
			continue
		}
		last = user
		if !e.others[user] {
			break
		}
	}
	if last == 0 {
		return 0, unavailable("no user for a sandbox is free", fmt.Errorf("%d sandboxes have all ids from %d to %d", users.Room(), users.First, users.Last))
	}
	e.known[name] = last
	return last, nil
}

// note keeps which users others have, and reports whether one is not among them. If it is,
// the next one is sought elsewhere: who has it may go along beside this process.
func (e *Engine) note(taken map[int]bool, user int) (alone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others = taken
	if taken[user] {
		e.next = somewhere()
	}
	return !taken[user]
}

// somewhere is a place in a range of any size, taken modulo its room.
func somewhere() int { return rand.IntN(math.MaxInt32) }

// usersOfOthers returns what is no free user, by the containers of the daemon but this one.
func (e *Engine) usersOfOthers(ctx context.Context, name string) (map[int]bool, error) {
	list, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelUser))})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	taken := map[int]bool{}
	for _, c := range list {
		user, err := strconv.Atoi(c.Labels[labelUser])
		if err == nil && !slices.Contains(c.Names, "/"+name) {
			// The neighbours too, as another service's range may begin with an odd id.
			taken[user-1], taken[user], taken[user+1] = true, true, true
		}
	}
	return taken, nil
}
