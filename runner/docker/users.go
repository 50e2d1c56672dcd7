package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// idsEach is how many ids a sandbox has that is a container.
	idsEach = 2
	// userTries bounds how often a sandbox is created anew because another service has its
	// user: chance alone makes that happen, and twice in a row hardly ever.
	userTries = 20
)

// ids are as many from first on; none is the zero value.
type ids struct{ first, count int }

// meet reports whether two have an id in common.
func (a ids) meet(b ids) bool { return a.first < b.first+b.count && b.first < a.first+a.count }

// Room returns for how many sandboxes there are ids.
func (u Users) Room() int { return u.parts(idsEach) }

// part returns the n-th part of the range, of so many ids; modulo the parts there are.
func (u Users) part(n, count int) ids {
	return ids{u.First + count*(n%u.parts(count)), count}
}

// parts returns how many parts of so many ids there are.
func (u Users) parts(count int) int { return (u.Last - u.First + 1) / count }

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

// createAlone creates a container whose ids, so many, no other container of the daemon has: no
// other service's either, nor one that a killed service left. Nothing runs in it yet.
//
// Each container has its ids in labels. It is created first, and then all others are
// looked at: of two that are created at one time with one user, at least the later one sees
// the other, and who sees another gives way.
func (e *Engine) createAlone(ctx context.Context, name string, count int, c *container.Config, host func(user int) *container.HostConfig) error {
	users, err := e.Users(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAsked, err)
	}
	for range userTries {
		mine, err := e.choose(users, name, count)
		if err != nil {
			return err
		}
		c.Labels[labelUser] = strconv.Itoa(mine.first)
		if count != idsEach {
			c.Labels[labelUsers] = strconv.Itoa(count)
		}
		if err := e.create(ctx, name, c, host(mine.first)); err != nil {
			return err
		}
		taken, err := e.usersOfOthers(ctx, name)
		if err != nil {
			return err
		}
		if e.note(taken, mine) {
			return nil
		}
		if err := e.remove(ctx, name); err != nil {
			return err
		}
	}
	return unavailable("no user for a sandbox is free", errors.New("others had each that was tried"))
}

// choose takes ids for a container: the next ones that no container of this process has,
// so that none is used again soon. Those that others had when they were last looked at are
// taken if there are no others, as they may have ended.
func (e *Engine) choose(users Users, name string, count int) (ids, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if users.parts(count) == 0 {
		return ids{}, fmt.Errorf("sandboxes have the ids from %d to %d, which are less than the %d that one container needs", users.First, users.Last, count)
	}
	mine := slices.Collect(maps.Values(e.known))
	var last ids
	at, sought := e.next[count]
	if !sought {
		at = users.somewhere(count)
	}
	for range users.parts(count) {
		next := users.part(at, count)
		at++
		if slices.ContainsFunc(mine, next.meet) {
			continue
		}
		last = next
		if !slices.ContainsFunc(e.others, next.meet) {
			break
		}
	}
	if last == (ids{}) {
		return ids{}, unavailable("no user for a sandbox is free", fmt.Errorf("sandboxes have all ids from %d to %d, in parts of %d", users.First, users.Last, count))
	}
	e.next[count] = at
	e.known[name] = last
	return last, nil
}

// note keeps which ids others have, and reports whether these are not among them. If they
// are, the next ones are sought elsewhere: who has them may go along beside this process.
func (e *Engine) note(taken []ids, mine ids) (alone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others = taken
	alone = !slices.ContainsFunc(taken, mine.meet)
	if !alone {
		delete(e.next, mine.count)
	}
	return alone
}

// somewhere is where the first ids are sought, by chance: for a container in the upper half of the
// range, and for a worker in the lower one, as a few containers here and there would meet each part
// of a worker's size.
func (u Users) somewhere(count int) int {
	parts := u.parts(count)
	half := parts / 2
	if count == idsEach {
		return half + rand.IntN(parts-half)
	}
	return rand.IntN(max(1, half))
}

// usersOfOthers returns the ids of the daemon's containers but this one.
func (e *Engine) usersOfOthers(ctx context.Context, name string) (taken []ids, err error) {
	list, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelUser))})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	for _, c := range list {
		user, err := strconv.Atoi(c.Labels[labelUser])
		if err == nil && !slices.Contains(c.Names, "/"+name) {
			count := idsEach
			if more, err := strconv.Atoi(c.Labels[labelUsers]); err == nil {
				count = more
			}
			taken = append(taken, ids{user, count})
		}
	}
	return taken, nil
}
