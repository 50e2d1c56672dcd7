package runnertest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Counted is what the kernel of a host counts by user, and what uses it up.
type Counted struct {
	Desc  string
	Limit string // its file in /proc/sys, if that is too high for a test
	Most  int    // that a test may take; the limit is made this if it is higher and can be
	// Hold is a cell that takes all that there is of it, or Most, and prints whether it was
	// all; Use takes one.
	Hold, Use string
}

// Lower has the limit be Most for the time of a test, if it is higher and may be changed; it
// reports whether it is no higher.
func (c Counted) Lower(t *testing.T) bool {
	t.Helper()
	if c.Limit == "" {
		return true
	}
	raw, err := os.ReadFile(c.Limit)
	require.NoError(t, err)
	limit, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	require.NoError(t, err)
	if limit <= c.Most {
		return true
	}
	if err := os.WriteFile(c.Limit, []byte(strconv.Itoa(c.Most)), 0o644); err != nil {
		t.Logf("%s stays at %d, which is more than this test takes: %v", c.Limit, limit, err)
		return false
	}
	t.Cleanup(func() { require.NoError(t, os.WriteFile(c.Limit, raw, 0o644)) })
	return true
}

// AllCounted is each of them. Who holds all instances of inotify can have no watches, so these
// come first.
var AllCounted = []Counted{
	{
		Desc: "epoll watches", Limit: "/proc/sys/fs/epoll/max_user_watches", Most: 50_000,
		Hold: `import os, select
pipe = os.pipe()
copies, polls, watches, full = [os.dup(pipe[0]) for _ in range(2000)], [], 0, False
try:
    while watches < MOST + 2000:
        polls.append(select.epoll())
        for fd in copies:
            polls[-1].register(fd)
            watches += 1
except OSError as e:
    full = e.errno == 28
print(full)`,
		Use: `import os, select
select.epoll().register(os.pipe()[0])`,
	},
	{
		Desc: "inotify watches", Limit: "/proc/sys/fs/inotify/max_user_watches", Most: 5000,
		Hold: `import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
instance, watches = libc.inotify_init1(0), 0
for folder, _, names in os.walk("/opt"):
    for name in names:
        if watches <= MOST and libc.inotify_add_watch(instance, f"{folder}/{name}".encode(), 2) >= 0:
            watches += 1
print(ctypes.get_errno() == errno.ENOSPC)`,
		Use: `import ctypes
libc = ctypes.CDLL(None)
assert libc.inotify_add_watch(libc.inotify_init1(0), b"/opt", 2) >= 0`,
	},
	{
		Desc: "inotify instances", Limit: "/proc/sys/fs/inotify/max_user_instances", Most: 1000,
		Hold: `import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
instances = 0
while instances <= MOST and libc.inotify_init1(0) >= 0:
    instances += 1
print(ctypes.get_errno() == errno.EMFILE)`,
		Use: `import ctypes
assert ctypes.CDLL(None).inotify_init1(0) >= 0`,
	},
	{
		Desc: "message queues", Most: 1000,
		Hold: `import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
queues = 0
while queues < MOST and libc.mq_open(b'/%d' % queues, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
    queues += 1
print(ctypes.get_errno() == errno.EMFILE)`,
		Use: `import ctypes, os
assert ctypes.CDLL(None).mq_open(b'/use%d' % os.getpid(), os.O_CREAT | os.O_RDWR, 0o600, None) >= 0`,
	},
	{
		Desc: "timers", Most: 400_000, // 140 MB; a host of 64 GB allows each user 260,000
		Hold: `import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
timers, timer = 0, ctypes.c_void_p()
while timers < MOST and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    timers += 1
print(timers == MOST or ctypes.get_errno() == errno.EAGAIN)`,
		Use: `import ctypes
assert ctypes.CDLL(None).timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0`,
	},
}
