package doctor

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"notebox/runner"
)

// wallsProgram prints what a program sees of the walls around it, as JSON.
//
//go:embed walls.py
var wallsProgram string

// walls are what a program in a container sees.
type walls struct {
	User         int    `json:"user"`
	Capabilities string `json:"capabilities"` // those in force, and those that it may take
	NoNew        string `json:"no_new_privileges"`
	Seccomp      string `json:"seccomp"` // "2": its system calls are filtered
	// Interfaces are the flags of each, as "0x1003", by its name; "" if they cannot be seen.
	Interfaces map[string]string `json:"interfaces"`
	Changed    string            `json:"changed"` // a folder of the image in which it can make a file
	Memory     string            `json:"memory"`  // its limit; "": it cannot be seen
	Pids       string            `json:"pids"`
}

// containers looks at the walls around a container. sofar says that runs get containers, and
// stands if all walls are there.
func (s Sandboxes) containers(ctx context.Context, sofar Finding) Finding {
	said, out, err := s.execute(ctx, s.Containers, wallsProgram)
	switch failed := err != nil || out.Status != runner.StatusOK; {
	case failed && sofar.Level == OK:
		return Finding{Level: Skipped, Message: "containers, whose walls were not looked at: no code runs in one", Mend: "Mend run first."}
	case failed:
		return sofar
	}
	var seen walls
	if err := json.Unmarshal([]byte(said), &seen); err != nil {
		return wrong("Build the image anew: notebox image build --force.", "what a container says of its walls cannot be read: %q", said)
	}
	return seen.judge(sofar, s.Language.Limits)
}

// judge adds to sofar what is seen of a container.
func (w walls) judge(sofar Finding, l runner.Limits) Finding {
	missing := w.missing(l)
	switch {
	case len(missing) > 0:
		sofar.Level = Wrong
		sofar.Message += ". Containers without all their walls: " + strings.Join(missing, "; ")
		sofar.Mend = strings.TrimSpace("Use a Docker daemon and a --sandbox-runtime that obey what they are told: runc, crun, runsc and kata do. Until then run no code of strangers. " + sofar.Mend)
		return sofar
	case w.Seccomp != filtered && sofar.Level == OK:
		sofar.Level = Warning
		sofar.Mend = "That is as it should be with --sandbox-runtime runsc or kata, which bring a kernel of their own. With another, use a kernel and a daemon with seccomp."
	}
	sofar.Message += ". Code in one is not root, has no capabilities, no network, and cannot change the image's files"
	if w.Memory != "" && w.Pids != "" {
		sofar.Message += "; memory and processes have their limits"
	}
	if w.Seccomp == filtered {
		sofar.Message += "; its system calls are filtered"
	} else {
		sofar.Message += "; its system calls are not filtered"
	}
	return sofar
}

// filtered is how the kernel says that a filter of system calls is in force (proc(5), Seccomp).
const filtered = "2"

// missing are the walls that are not there.
func (w walls) missing(l runner.Limits) (all []string) {
	add := func(is bool, format string, values ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, values...))
		}
	}
	add(w.User == 0, "code runs as root")
	add(strings.Trim(w.Capabilities, "0 ") != "", "code has capabilities (%s)", w.Capabilities)
	add(w.NoNew == "0", "code can gain rights")
	up := w.up()
	add(len(up) > 0, "code has a network (%s)", strings.Join(up, ", "))
	add(w.Changed != "", "code can change the image's files (in %s)", w.Changed)
	add(above(w.Memory, l.Memory), "its limit of memory is %s and not %d", w.Memory, l.Memory)
	add(above(w.Pids, l.Pids), "its limit of processes is %s and not %d", w.Pids, l.Pids)
	return all
}

// up are the interfaces that bring code into a network. Those of the kernel's modules, tunl0 and
// sit0, are in each new namespace, and down.
func (w walls) up() (names []string) {
	for name, text := range w.Interfaces {
		flags, err := strconv.ParseUint(text, 0, 32)
		if name != "lo" && (err != nil || flags&unix.IFF_UP != 0) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// above reports whether a limit that a control group tells is above the one that it was given.
func above(told string, given int64) bool {
	n, err := strconv.ParseInt(told, 10, 64)
	return told != "" && (err != nil || n > given) // or it is "max"
}
