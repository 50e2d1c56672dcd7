//go:build linux

package docker

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// refused are system calls that Docker's default allows, in some kernels or to
// some containers, and that code in a notebook has no use for.
var refused = []string{
	"add_key", "bpf", "fanotify_init", "fanotify_mark", "io_uring_enter", "io_uring_register",
	"io_uring_setup", "keyctl", "lookup_dcookie", "mount", "move_mount", "name_to_handle_at",
	"open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root",
	"process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl",
	"quotactl_fd", "request_key", "setns", "socketcall", "syslog", "umount", "umount2",
	"unshare", "userfaultfd", "vmsplice", "modify_ldt", "kcmp", "acct", "chroot",
}

// families are the only kinds of socket there are inside.
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// strict makes the profile: Docker's default for a container without
// capabilities, without 32-bit system calls (their arguments are behind
// pointers, or numbered differently, so that rules on them do not hold),
// without what is refused, and with sockets of known families only.
func strict() *seccomp.Seccomp {
	p := seccomp.DefaultProfile()
	for i := range p.ArchMap {
		p.ArchMap[i].SubArches = nil
	}
	var rules []*seccomp.Syscall
	for _, r := range p.Syscalls {
		if r.Includes != nil && len(r.Includes.Caps) > 0 {
			continue
		}
		if r.Action == specs.ActAllow {
			r.Names = slices.DeleteFunc(slices.Clone(r.Names), func(name string) bool {
				return name == "socket" || name == "socketpair" || slices.Contains(refused, name)
			})
		}
		if len(r.Names) > 0 {
			rules = append(rules, r)
		}
	}
	for _, family := range families {
		rules = append(rules, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names:  []string{"socket"},
			Action: specs.ActAllow,
			Args:   []specs.LinuxSeccompArg{{Index: 0, Value: family, Op: specs.OpEqualTo}},
		}})
	}
	rules = append(rules, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
		Names:  []string{"socketpair"},
		Action: specs.ActAllow,
		Args:   []specs.LinuxSeccompArg{{Index: 0, Value: unix.AF_UNIX, Op: specs.OpEqualTo}},
	}})
	p.Syscalls = rules
	return p
}

func TestSeccompProfile(t *testing.T) {
	want, err := json.MarshalIndent(strict(), "", "\t")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile("seccomp.json", want, 0o644))
	}
	have, err := os.ReadFile("seccomp.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run with -update, and look at what changes")
}

func TestSeccompProfileRefuses(t *testing.T) {
	for _, rule := range strict().Syscalls {
		if rule.Action != specs.ActAllow {
			continue
		}
		for _, name := range rule.Names {
			require.NotContains(t, refused, name)
			if name == "clone" {
				require.NotEmpty(t, rule.Args, "clone is allowed without new namespaces only")
			}
			if name == "socket" {
				require.NotEmpty(t, rule.Args, "sockets are allowed by family only")
			}
			require.NotEqual(t, "clone3", name, "clone3's flags cannot be seen by a filter")
		}
	}
}
