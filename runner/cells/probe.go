package cells

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// lookTries are how often a cell is looked at that seems to be without a wall: a process that
// ends meanwhile looks like one.
const lookTries, lookPause = 3, 100 * time.Millisecond

// remedies say what an operator can do where a wall is missing.
var remedies = map[wire.Wall]string{
	wire.WallWorker:      "see what the Docker daemon says to it in the log; --sandbox-runtime must share the host's kernel, and --sandbox-users needs a block of 512 ids",
	wire.WallUser:        "let unprivileged users have user namespaces: sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu",
	wire.WallNamespaces:  "raise sysctl user.max_pid_namespaces, max_mnt_namespaces, max_ipc_namespaces, max_uts_namespaces, max_net_namespaces and max_cgroup_namespaces; use Linux 5.8 or later",
	wire.WallFiles:       "have the daemon start containers without AppArmor's profile, which forbids mounts, and with the seccomp profile that notebox gives it",
	wire.WallProc:        "have the daemon obey MaskedPaths and ReadonlyPaths (Docker 19.03 and later), or the kernel lets nobody mount another /proc",
	wire.WallTmpfs:       "use a kernel with tmpfs, whose limits hold in user namespaces: Linux 4.18 and later",
	wire.WallGroups:      "give the daemon control groups with the controllers memory, cpu and pids: cgroup v2, or v1 with the driver cgroupfs; a daemon that remaps users, or is rootless, has none to give",
	wire.WallSeccomp:     "use a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)",
	wire.WallPrivileges:  "use a runtime that gives containers no more capabilities than it is told",
	wire.WallRlimits:     "use a runtime that obeys the limits of files and core dumps",
	wire.WallDescriptors: "tell the developers: no host is known that does this",
}

// NoCells is why a host cannot have cells: a wall of theirs is missing.
type NoCells struct {
	Wall string // one of Walls
	Why  error
	Do   string // what an operator can do
}

func (n *NoCells) Error() string {
	return fmt.Sprintf("this host cannot have cells, as the wall %s is missing: %v. What to do: %s", n.Wall, n.Why, n.Do)
}

func (n *NoCells) Unwrap() error { return n.Why }

// Walls are the names of all walls.
func Walls() (names []string) {
	for _, wall := range wire.Walls() {
		names = append(names, string(wall))
	}
	return names
}

// Probe starts a cell of an environment, and looks from outside whether all walls are around
// it. The error is a *NoCells if they are not.
func (e *Engine) Probe(ctx context.Context, env runner.Environment, limits runner.Limits) error {
	err := e.probe(ctx, env, limits)
	if err == nil {
		return nil
	}
	wall := wallOf(err)
	return &NoCells{Wall: string(wall), Why: err, Do: remedies[wall]}
}

func (e *Engine) probe(ctx context.Context, env runner.Environment, limits runner.Limits) error {
	s, err := e.Start(ctx, env, limits)
	if err != nil {
		return err
	}
	env.Kernel.WarmUp = nil
	err = conversation.New(s, e.options.Log).AwaitReady(ctx, env.Kernel, nil)
	if mine, ok := s.(*sandbox); ok && err == nil {
		err = mine.cell.look(ctx)
	}
	return errors.Join(err, s.Kill(ctx))
}

// look returns a wire.Missing for each wall that the supervisor does not see.
func (c *cell) look(ctx context.Context) error {
	for try := 1; ; try++ {
		answer, err := c.ask(ctx, wire.KindLook)
		if err != nil {
			return err
		}
		looked, err := wire.Decode[wire.Looked](answer)
		if err != nil || len(looked.Missing) == 0 {
			return err
		}
		if try == lookTries {
			var all []error
			for _, missing := range looked.Missing {
				all = append(all, &missing)
			}
			return errors.Join(all...)
		}
		time.Sleep(lookPause)
	}
}

// missingWall is how the zygote says which wall it could not build.
var missingWall = regexp.MustCompile(`(?m)^missing wall: (\w+)$`)

// wallOf finds the wall that is missing in why a cell did not start.
func wallOf(err error) wire.Wall {
	if missing := (*wire.Missing)(nil); errors.As(err, &missing) {
		return missing.Wall
	}
	words := err.Error()
	if exit := (*runner.ExitError)(nil); errors.As(err, &exit) {
		words += "\n" + exit.Log
	}
	if found := missingWall.FindStringSubmatch(words); found != nil && remedies[wire.Wall(found[1])] != "" {
		return wire.Wall(found[1])
	}
	return wire.WallWorker
}
