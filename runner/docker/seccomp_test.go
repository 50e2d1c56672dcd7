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

// absent answer as if the kernel had none of them: what they hold is counted for the whole
// host (/proc/sys/fs/aio-max-nr).
var absent = []string{
	"io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit",
}

// ignored answer that all is well, and do nothing. Nothing that a sandbox writes is on a
// disk, and these would have the host write what others have left in its memory.
var ignored = []string{"sync", "syncfs"}

// byArgument are allowed by the rules that sockets, options and limits make, and by no other.
var byArgument = []string{"prlimit64", "setrlimit", "setsockopt", "socket", "socketpair"}

// strict makes the profile: Docker's default for a container without
// capabilities, without 32-bit system calls (their arguments are behind
// pointers, or numbered differently, so that rules on them do not hold),
// without what is refused, and with known sockets and their known options only.
//
// A rule on an argument names what is allowed. One that named what is not could be
// passed: the filter compares 64 bits, and the kernel looks at the lower 32.
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
				return slices.Contains(slices.Concat(refused, absent, ignored, byArgument), name)
			})
		}
		if len(r.Names) > 0 {
			rules = append(rules, r)
		}
	}
	rules = append(rules, answer(unix.ENOSYS, absent), answer(0, ignored))
	p.Syscalls = slices.Concat(rules, sockets(), options(), limits())
	return p
}

// sockets are the rules for the only sockets there are inside. What the kernel offers beside
// them (Multipath TCP, UDP-Lite, ICMP, SCTP, DCCP, L2TP, each family of netlink but one) is
// more code to attack, and some of it is a module that asking for a socket loads.
func sockets() (rules []*seccomp.Syscall) {
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK // that may come with a type
	for _, kind := range []struct{ family, kind, protocol uint64 }{
		{unix.AF_UNIX, unix.SOCK_STREAM, 0},
		{unix.AF_UNIX, unix.SOCK_DGRAM, 0},
		{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, // between the processes of a Chromium
		{unix.AF_INET, unix.SOCK_STREAM, 0},
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP},
		{unix.AF_INET, unix.SOCK_DGRAM, 0},
		{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP},
		{unix.AF_INET6, unix.SOCK_STREAM, 0},
		{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP},
		{unix.AF_INET6, unix.SOCK_DGRAM, 0},
		{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP},
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, // by which libraries list interfaces
		{unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_ROUTE},
	} {
		names := []string{"socket"}
		if kind.family == unix.AF_UNIX {
			names = append(names, "socketpair")
		}
		rules = append(rules, allow(names, equal(0, kind.family), specs.LinuxSeccompArg{
			Index: 1, Value: ^uint64(flags), ValueTwo: kind.kind, Op: specs.OpMaskedEqual,
		}, equal(2, kind.protocol)))
	}
	return rules
}

// options are the rules for options of sockets. Those that set the size of a buffer are
// ignored, as the kernel does with what is above its own bound: on cgroup v1 no limit of
// memory holds for these buffers.
func options() (rules []*seccomp.Syscall) {
	for _, level := range []uint64{unix.SOL_IP, unix.SOL_TCP, unix.SOL_UDP, unix.SOL_IPV6, unix.SOL_NETLINK} {
		rules = append(rules, allow([]string{"setsockopt"}, equal(1, level)))
	}
	for _, option := range []uint64{
		unix.SO_BINDTODEVICE, unix.SO_BROADCAST, unix.SO_BUSY_POLL, unix.SO_DEBUG, unix.SO_DETACH_FILTER, unix.SO_DONTROUTE,
		unix.SO_INCOMING_CPU, unix.SO_KEEPALIVE, unix.SO_LINGER, unix.SO_MARK, unix.SO_OOBINLINE, unix.SO_PASSCRED,
		unix.SO_PASSSEC, unix.SO_PEEK_OFF, unix.SO_PRIORITY, unix.SO_RCVLOWAT, unix.SO_RCVTIMEO_NEW, unix.SO_RCVTIMEO_OLD,
		unix.SO_REUSEADDR, unix.SO_REUSEPORT, unix.SO_RXQ_OVFL, unix.SO_SELECT_ERR_QUEUE, unix.SO_SNDLOWAT,
		unix.SO_SNDTIMEO_NEW, unix.SO_SNDTIMEO_OLD, unix.SO_TIMESTAMP, unix.SO_TIMESTAMPING, unix.SO_TIMESTAMPNS,
	} {
		rules = append(rules, allow([]string{"setsockopt"}, equal(1, unix.SOL_SOCKET), equal(2, option)))
	}
	for _, size := range []uint64{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
		rules = append(rules, answer(0, []string{"setsockopt"}, equal(1, unix.SOL_SOCKET), equal(2, size)))
	}
	return rules
}

// limits are the rules for a process's limits: all may be read, and all but RLIMIT_CORE set.
// That one has a value by which a crash starts no program of the host's. Who sets it is told
// EINVAL, by which gpg goes on.
func limits() (rules []*seccomp.Syscall) {
	const all = 16 // RLIM_NLIMITS of asm-generic/resource.h
	for limit := range uint64(all) {
		if limit == unix.RLIMIT_CORE {
			rules = append(rules,
				answer(unix.EINVAL, []string{"setrlimit"}, equal(0, limit)),
				allow([]string{"prlimit64"}, equal(1, limit), equal(2, 0)),
				answer(unix.EINVAL, []string{"prlimit64"}, equal(1, limit), specs.LinuxSeccompArg{Index: 2, Op: specs.OpNotEqual}))
			continue
		}
		rules = append(rules,
			allow([]string{"setrlimit"}, equal(0, limit)),
			allow([]string{"prlimit64"}, equal(1, limit)))
	}
	return rules
}

func allow(names []string, args ...specs.LinuxSeccompArg) *seccomp.Syscall {
	return &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: names, Action: specs.ActAllow, Args: args}}
}

// answer makes a rule by which a call does nothing and has that result: an error, or 0.
func answer(errno unix.Errno, names []string, args ...specs.LinuxSeccompArg) *seccomp.Syscall {
	code := uint(errno)
	return &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: names, Action: specs.ActErrno, ErrnoRet: &code, Args: args}}
}

func equal(index uint, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpEqualTo}
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
			if slices.Contains(byArgument, name) {
				require.NotEmpty(t, rule.Args, "%s is allowed by its arguments only", name)
			}
			require.NotEqual(t, "clone3", name, "clone3's flags cannot be seen by a filter")
		}
	}
}
