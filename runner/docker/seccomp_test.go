//go:build linux

package docker

import (
	"encoding/json"
	"flag"
	"math/bits"
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
	// It takes its pages out of the kernel's own map of memory, whose large pages fall apart for
	// all of the host, and stay so.
	"memfd_secret",
}

// absent answer as if the kernel had none of them: what they hold is counted for the whole
// host (/proc/sys/fs/aio-max-nr).
var absent = []string{
	"io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit",
}

// ignored answer that all is well, and do nothing. Nothing that a sandbox writes is on a
// disk, and these would have the host write what others have left in its memory.
var ignored = []string{"sync", "syncfs"}

// movers answer as for files that cannot be moved from, and programs read and write instead.
// They put what a socket has received into a pipe, which holds its pages of 32 KB each for as
// little as a byte: no limit of memory and no bound on sockets holds for those.
var movers = []string{"sendfile", "sendfile64", "splice", "tee"}

// byArgument are allowed by the rules that sockets, options, limits and advice make, and by no
// other.
var byArgument = []string{"fadvise64", "prlimit64", "setrlimit", "setsockopt", "socket", "socketpair"}

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
				return slices.Contains(slices.Concat(refused, absent, ignored, movers, byArgument), name)
			})
		}
		if len(r.Names) > 0 {
			rules = append(rules, r)
		}
	}
	rules = append(rules, answer(unix.ENOSYS, absent), answer(0, ignored), answer(unix.EINVAL, movers))
	p.Syscalls = slices.Concat(rules, sockets(), options(), limits(), advice())
	return p
}

// sockets are the rules for the only sockets there are inside. What the kernel offers beside
// them (Multipath TCP, UDP-Lite, ICMP, SCTP, DCCP, L2TP, each family of netlink but one) is
// more code to attack, and some of it is a module that asking for a socket loads.
func sockets() (rules []*seccomp.Syscall) {
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK // that may come with a type
	for _, kind := range []struct {
		names           []string
		families, kinds []uint64
		protocol        uint64
	}{
		// Packets in sequence are between the processes of a Chromium.
		{[]string{"socket", "socketpair"}, []uint64{unix.AF_UNIX}, []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET}, 0},
		{[]string{"socket"}, []uint64{unix.AF_INET, unix.AF_INET6}, []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM}, 0},
		{[]string{"socket"}, []uint64{unix.AF_INET, unix.AF_INET6}, []uint64{unix.SOCK_STREAM}, unix.IPPROTO_TCP},
		{[]string{"socket"}, []uint64{unix.AF_INET, unix.AF_INET6}, []uint64{unix.SOCK_DGRAM}, unix.IPPROTO_UDP},
		// By these libraries list interfaces.
		{[]string{"socket"}, []uint64{unix.AF_NETLINK}, []uint64{unix.SOCK_RAW, unix.SOCK_DGRAM}, unix.NETLINK_ROUTE},
	} {
		for _, family := range oneOf(0, kind.families...) {
			for _, one := range oneOf(1, kind.kinds...) {
				one.Value &^= flags
				rules = append(rules, allow(kind.names, family, one, equal(2, kind.protocol)))
			}
		}
	}
	return rules
}

// options are the rules for options of sockets. Those that set the size of a buffer are
// ignored, as the kernel does with what is above its own bound: on cgroup v1 no limit of
// memory holds for these buffers.
func options() (rules []*seccomp.Syscall) {
	for _, level := range oneOf(1, unix.SOL_IP, unix.SOL_TCP, unix.SOL_UDP, unix.SOL_IPV6, unix.SOL_NETLINK) {
		rules = append(rules, allow([]string{"setsockopt"}, level))
	}
	for _, option := range oneOf(2,
		unix.SO_BINDTODEVICE, unix.SO_BROADCAST, unix.SO_BUSY_POLL, unix.SO_DEBUG, unix.SO_DETACH_FILTER, unix.SO_DONTROUTE,
		unix.SO_INCOMING_CPU, unix.SO_KEEPALIVE, unix.SO_LINGER, unix.SO_MARK, unix.SO_OOBINLINE, unix.SO_PASSCRED,
		unix.SO_PASSSEC, unix.SO_PEEK_OFF, unix.SO_PRIORITY, unix.SO_RCVLOWAT, unix.SO_RCVTIMEO_NEW, unix.SO_RCVTIMEO_OLD,
		unix.SO_REUSEADDR, unix.SO_REUSEPORT, unix.SO_RXQ_OVFL, unix.SO_SELECT_ERR_QUEUE, unix.SO_SNDLOWAT,
		unix.SO_SNDTIMEO_NEW, unix.SO_SNDTIMEO_OLD, unix.SO_TIMESTAMP, unix.SO_TIMESTAMPING, unix.SO_TIMESTAMPNS,
	) {
		rules = append(rules, allow([]string{"setsockopt"}, equal(1, unix.SOL_SOCKET), option))
	}
	for _, size := range oneOf(2, unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE) {
		rules = append(rules, answer(0, []string{"setsockopt"}, equal(1, unix.SOL_SOCKET), size))
	}
	return rules
}

// advice are the rules for advice on files: all of it may be given, and to forget a file does
// nothing. The image's files are in the host's memory once, for all sandboxes.
func advice() (rules []*seccomp.Syscall) {
	for _, kind := range oneOf(3, unix.FADV_NORMAL, unix.FADV_RANDOM, unix.FADV_SEQUENTIAL, unix.FADV_WILLNEED, unix.FADV_NOREUSE) {
		rules = append(rules, allow([]string{"fadvise64"}, kind))
	}
	return append(rules, answer(0, []string{"fadvise64"}, equal(3, unix.FADV_DONTNEED)))
}

// limits are the rules for a process's limits: all may be read, and all but RLIMIT_CORE set.
// That one has a value by which a crash starts no program of the host's. Who sets it is told
// EINVAL, by which gpg goes on.
func limits() (rules []*seccomp.Syscall) {
	const all = 16 // RLIM_NLIMITS of asm-generic/resource.h
	var others []uint64
	for limit := range uint64(all) {
		if limit != unix.RLIMIT_CORE {
			others = append(others, limit)
		}
	}
	for _, limit := range oneOf(0, others...) {
		rules = append(rules, allow([]string{"setrlimit"}, limit))
	}
	for _, limit := range oneOf(1, others...) {
		rules = append(rules, allow([]string{"prlimit64"}, limit))
	}
	return append(rules,
		answer(unix.EINVAL, []string{"setrlimit"}, equal(0, unix.RLIMIT_CORE)),
		allow([]string{"prlimit64"}, equal(1, unix.RLIMIT_CORE), equal(2, 0)),
		answer(unix.EINVAL, []string{"prlimit64"}, equal(1, unix.RLIMIT_CORE), specs.LinuxSeccompArg{Index: 2, Op: specs.OpNotEqual}))
}

// oneOf makes comparisons of an argument. One of them holds for each of the values, and none
// for any other. They are fewer than the values, as a mask takes all that differ in its bits:
// the filter is made anew for each sandbox, which takes the longer the more rules there are.
func oneOf(index uint, values ...uint64) (few []specs.LinuxSeccompArg) {
	all := uint64(1)<<bits.Len64(slices.Max(values)) - 1
	left := slices.Clone(values)
	for len(left) > 0 {
		var best specs.LinuxSeccompArg
		most := 0
		for free := range all + 1 { // the bits that do not matter
			for _, value := range values {
				arg := specs.LinuxSeccompArg{Index: index, Value: ^free, ValueTwo: value &^ free, Op: specs.OpMaskedEqual}
				if matches := matching(arg, values); len(matches) == 1<<bits.OnesCount64(free) {
					if n := len(matching(arg, left)); n > most {
						best, most = arg, n
					}
				}
			}
		}
		few = append(few, best)
		left = slices.DeleteFunc(left, func(value uint64) bool { return value&best.Value == best.ValueTwo })
	}
	return few
}

func matching(arg specs.LinuxSeccompArg, values []uint64) (found []uint64) {
	for _, value := range values {
		if value&arg.Value == arg.ValueTwo {
			found = append(found, value)
		}
	}
	return found
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

func TestOneOf(t *testing.T) {
	for _, values := range [][]uint64{{0}, {6}, {0, 1}, {1, 2, 5}, {2, 10}, {0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {7, 8, 32, 33}} {
		few := oneOf(3, values...)
		for value := range uint64(300) {
			taken := slices.ContainsFunc(few, func(arg specs.LinuxSeccompArg) bool { return value&arg.Value == arg.ValueTwo })
			require.Equal(t, slices.Contains(values, value), taken, "%d of %v", value, values)
		}
	}
	require.Len(t, oneOf(3, 0, 1, 2, 3, 5, 6, 7), 3)
}

func TestSeccompProfile(t *testing.T) {
	want, err := json.MarshalIndent(strict(), "", "\t")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile("../posture/seccomp.json", want, 0o644))
	}
	have, err := os.ReadFile("../posture/seccomp.json")
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
