"""Run as a cell: tries what must be refused, each in a child, and prints what happened."""
import ctypes, errno, json, mmap, os, resource, signal, socket, struct, time

harness = min(  # and not the guard of its sockets
    int(p) for p in os.listdir("/proc")
    if p.isdigit() and open(f"/proc/{p}/cmdline").read().split("\0")[1:2] == ["/opt/notebox"]
)
libc = ctypes.CDLL(None, use_errno=True)
tries = {}

def attempt(f):
    tries[f.__name__] = f

def code_name(code):
    return errno.errorcode.get(code, str(code))

def syscall(number, *args):
    ctypes.set_errno(0)
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]) < 0:
        raise OSError(ctypes.get_errno(), "")

# On x86-64 and on arm64, from syscall_64.tbl and asm-generic/unistd.h of Linux.
NUMBERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "bpf": (321, 280), "perf_event_open": (298, 241), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "clone": (56, 220), "clone3": (435, 435), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "reboot": (169, 142), "swapon": (167, 224),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fsopen": (430, 430),
    "open_tree": (428, 428), "move_mount": (429, 429), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "memfd_secret": (447, 447), "memfd_create": (319, 279), "mmap": (9, 222), "shmget": (29, 194),
    "setuid": (105, 146), "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60),
    "fanotify_init": (300, 262), "vmsplice": (278, 75), "sethostname": (170, 161),
    "io_setup": (206, 0), "io_submit": (209, 2), "io_getevents": (208, 4), "io_destroy": (207, 1), "io_cancel": (210, 3),
    "splice": (275, 76), "tee": (276, 77), "sendfile": (40, 71), "fadvise64": (221, 223),
    "seccomp": (317, 277), "prctl": (157, 167), "setsockopt": (54, 208), "setrlimit": (160, 164), "prlimit64": (302, 261),
}
X86 = os.uname().machine == "x86_64"

def call(name, *args, label=""):
    tries[f"{name} {label}".strip()] = lambda: syscall(NUMBERS[name][0 if X86 else 1], *args)

def ignored(f):
    """Of what answers that all is well, and does nothing: also with a file that is not there."""
    def attempt():
        f()
        raise OSError(errno.EPERM, "")
    return attempt

call("ptrace", 16, harness, 0, 0, label="of the harness")
call("ptrace", 0, 0, 0, 0, label="of itself")
call("process_vm_readv", harness, 0, 0, 0, 0, 0)
call("process_vm_writev", harness, 0, 0, 0, 0, 0)
call("userfaultfd", 0)
call("io_uring_setup", 8, 0)
call("keyctl", 0, 0, 0, 0, 0)
call("add_key", 0, 0, 0, 0, 0)
call("request_key", 0, 0, 0, 0)
call("bpf", 0, 0, 0)
call("perf_event_open", 0, 0, -1, -1, 0)
call("mount", 0, 0, 0, 0, 0)
call("umount2", 0, 0)
call("pivot_root", 0, 0)
call("chroot", ctypes.c_char_p(b"/tmp"))
for kind, flag in {
    "user": 0x10000000, "network": 0x40000000, "mount": 0x00020000, "pid": 0x20000000,
    "ipc": 0x08000000, "uts": 0x04000000, "cgroup": 0x02000000,
}.items():
    call("unshare", flag, label=f"the {kind} namespace")
    call("clone", flag | 17, 0, 0, 0, 0, label=f"into a new {kind} namespace")
call("setns", 0, 0)
call("clone3", 0, 0)
call("init_module", 0, 0, 0)
call("finit_module", 0, 0, 0)
call("kexec_load", 0, 0, 0, 0)
call("settimeofday", ctypes.byref((ctypes.c_long * 2)(0, 0)), 0)
call("clock_settime", 0, ctypes.byref((ctypes.c_long * 2)(0, 0)))
call("reboot", 0, 0, 0, 0)
call("swapon", 0, 0)
call("open_by_handle_at", 0, 0, 0)
call("name_to_handle_at", 0, 0, 0, 0, 0)
call("fsopen", 0, 0)
call("open_tree", 0, 0, 0)
call("move_mount", 0, 0, 0, 0, 0)
call("pidfd_getfd", 0, 0, 0)
call("kcmp", harness, os.getpid(), 0, 0, 0)
call("setuid", 0, label="to root")
call("syslog", 3, 0, 0)
call("acct", 0)
call("quotactl", 0, 0, 0, 0)
call("fanotify_init", 0, 0)
call("vmsplice", 0, 0, 0, 0)
call("sethostname", ctypes.c_char_p(b"x"), 1)
call("memfd_secret", 0)
# Of huge pages: MFD_HUGETLB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, IPC_CREAT | SHM_HUGETLB.
call("memfd_create", ctypes.c_char_p(b"x"), 4, label="of huge pages")
call("mmap", 0, 2 << 20, 3, 0x02 | 0x20 | 0x40000, -1, 0, label="of huge pages")
call("shmget", 0, 2 << 20, 0o1000 | 0o4000 | 0o600, label="of huge pages")

call("io_setup", 1, ctypes.byref(ctypes.c_long(0)))
for name in "io_submit", "io_getevents", "io_destroy", "io_cancel":
    call(name, 0, 0, 0, 0, 0)
# What these are told of is no file: EBADF would say that the kernel has looked.
call("splice", -1, 0, -1, 0, 1, 0)
call("tee", -1, -1, 1, 0)
call("sendfile", -1, -1, 0, 1)
for label, advice in {"": 4, " with a high bit": 1 << 32 | 4}.items():  # POSIX_FADV_DONTNEED of linux/fadvise.h
    label = "fadvise64 to forget what is in memory" + label
    tries[label] = ignored(lambda advice=advice: syscall(NUMBERS["fadvise64"][0 if X86 else 1], -1, 0, 0, advice))
# The filters of all on a host have one limit together (net.core.bpf_jit_limit).
nothing = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\xff\x7f", 8)  # to allow all
filters = ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(nothing)), 16)
call("seccomp", 1, 0, filters, label="with a filter")
call("prctl", 22, 2, filters, label="with a filter")
# By a crash with this limit at any value but 1, a host with a pipe in core_pattern starts a program.
limit = (ctypes.c_ulong * 2)(0, 0)
call("setrlimit", resource.RLIMIT_CORE, ctypes.byref(limit), label="of RLIMIT_CORE")
call("setrlimit", 1 << 32 | resource.RLIMIT_CORE, ctypes.byref(limit), label="of RLIMIT_CORE with a high bit")
call("prlimit64", 0, resource.RLIMIT_CORE, ctypes.byref(limit), 0, label="of RLIMIT_CORE")
call("prlimit64", 0, 1 << 32 | resource.RLIMIT_CORE, ctypes.byref(limit), 0, label="of RLIMIT_CORE with a high bit")

if X86:
    tries["x32 getpid"] = lambda: syscall(0x40000000 | 39)

for label, args in {
    "AF_VSOCK": (40, socket.SOCK_STREAM), "AF_ALG": (38, 5), "AF_PACKET": (17, socket.SOCK_RAW),
    "raw socket": (socket.AF_INET, socket.SOCK_RAW, 1), "AF_BLUETOOTH": (31, socket.SOCK_RAW),
    "raw IPv6 socket": (socket.AF_INET6, socket.SOCK_RAW, 58), "AF_KEY": (15, socket.SOCK_RAW),
    "AF_XDP": (44, socket.SOCK_RAW), "AF_CAN": (29, socket.SOCK_RAW),
    "Multipath TCP": (socket.AF_INET, socket.SOCK_STREAM, 262), "UDP-Lite": (socket.AF_INET6, socket.SOCK_DGRAM, 136),
    "ping": (socket.AF_INET, socket.SOCK_DGRAM, 1), "ping over IPv6": (socket.AF_INET6, socket.SOCK_DGRAM, 58),
    "SCTP": (socket.AF_INET, socket.SOCK_STREAM, 132), "SCTP in packets": (socket.AF_INET, socket.SOCK_SEQPACKET, 132),
    "DCCP": (socket.AF_INET, 6, 33), "L2TP": (socket.AF_INET, socket.SOCK_DGRAM, 115),
    "netlink of devices": (socket.AF_NETLINK, socket.SOCK_DGRAM, 15), "netlink of sockets": (socket.AF_NETLINK, socket.SOCK_RAW, 4),
    "netlink of filters": (socket.AF_NETLINK, socket.SOCK_RAW, 12), "netlink of the kernel's choice": (socket.AF_NETLINK, socket.SOCK_RAW, 16),
}.items():
    tries[label] = lambda args=args: socket.socket(*args)

def int_0x80():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()

if X86:
    tries["int 0x80"] = int_0x80

@attempt
def widen_a_buffer():
    """It is as if it were above the host's own bound: nothing is said, and nothing is done."""
    size = ctypes.c_int(1 << 20)
    with socket.socket() as s:
        before = [s.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
        for option in socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33:  # …FORCE
            s.setsockopt(socket.SOL_SOCKET, option, size.value)
            for level, option in (1 << 32 | socket.SOL_SOCKET, option), (socket.SOL_SOCKET, 1 << 32 | option):
                try:
                    syscall(NUMBERS["setsockopt"][0 if X86 else 1], s.fileno(), level, option, ctypes.byref(size), 4)
                except OSError as e:
                    assert e.errno == errno.EPERM
        if before == [s.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]:
            raise OSError(errno.EPERM, "")

@attempt
def take_all_terminals():
    held = []
    try:
        while len(held) < 64:
            held.append(os.openpty())
    except OSError as e:
        assert len(held) == 32
        raise

@attempt
def take_all_sockets():
    held = []
    try:
        while len(held) < 2000:
            held.append(socket.socket())
    except OSError:
        assert 900 < len(held) < 1024  # the kernel's own are counted
        raise

def connect(address):
    with socket.socket() as s:
        s.settimeout(1)
        s.connect(address)

tries["connect to the metadata service"] = lambda: connect(("169.254.169.254", 80))
tries["connect to the bridge's gateway"] = lambda: connect(("172.17.0.1", 80))
tries["connect to a public address"] = lambda: connect(("192.0.2.1", 80))

@attempt
def resolve():
    begun = time.monotonic()
    try:
        socket.getaddrinfo("example.org", 80)
    except socket.gaierror:
        assert time.monotonic() - begun < 1
        raise OSError(errno.ENETUNREACH, "")

def read(path):
    with open(path, "rb") as f:
        f.read(1)

def masked(path):
    """Fail in one way for what this host does not have, and for what is empty."""
    try:
        with open(path, "rb") as f:
            if f.read(1):
                return
    except OSError:
        pass
    raise OSError(errno.EACCES, "")

for path in (
    "/x", "/etc/x", "/usr/x", "/opt/notebox/x", "/var/tmp/x", "/run/x", "/sys/x",
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/etc/passwd",
):
    tries["write " + path] = lambda path=path: open(path, "w")

@attempt
def write_the_control_group():
    try:
        open("/sys/fs/cgroup/x", "w")
    except PermissionError:  # of version 1: not read-only, and root's
        raise OSError(errno.EROFS, "")


@attempt
def write_sysrq_trigger():
    try:
        os.open("/proc/sysrq-trigger", os.O_WRONLY)
    except FileNotFoundError:  # not every kernel has one
        raise OSError(errno.EACCES, "")

tries["write its own program"] = lambda: open("/proc/self/exe", "wb")
tries["write the harness's program"] = lambda: open("/opt/notebox/__main__.py", "r+b")
for path in (
    "/etc/shadow", "/root/.bashrc", "/proc/1/environ", "/proc/1/root/etc/shadow",
    "/dev/mem", "/dev/kmsg", "/var/run/docker.sock", "/dev/sda", "/dev/vda",
):
    tries["read " + path] = lambda path=path: read(path)
for path in (
    "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats", "/proc/cmdline", "/proc/diskstats",
    "/proc/key-users", "/proc/interrupts", "/proc/buddyinfo", "/proc/zoneinfo", "/proc/partitions", "/proc/swaps",
    "/proc/softirqs", "/proc/schedstat", "/proc/modules", "/proc/config.gz", "/proc/pressure/cpu", "/proc/iomem",
    "/proc/sys/kernel/pty/nr", "/proc/sys/fs/aio-nr", "/proc/sys/fs/file-nr", "/proc/sys/fs/inode-nr",
):
    tries["read " + path] = lambda path=path: masked(path)
for name in ("mem", "environ", "maps", "fd/0", "stack", "io", "exe", "root/etc/passwd", "cwd/etc/passwd", "task/TID/mem"):
    tries[f"open the harness's {name}"] = lambda name=name: open(f"/proc/{harness}/{name.replace('TID', str(harness))}", "rb")
tries["list the harness's descriptors"] = lambda: os.listdir(f"/proc/{harness}/fd")
tries["condemn the harness"] = lambda: open(f"/proc/{harness}/oom_score_adj", "w")
tries["stop the harness"] = lambda: os.kill(harness, signal.SIGSTOP)
tries["kill init"] = lambda: os.kill(1, 9)
tries["kill the harness"] = lambda: os.kill(harness, 9)
tries["renice the harness"] = lambda: os.setpriority(os.PRIO_PROCESS, harness, 19)
tries["write /run/notebox/x"] = lambda: open("/run/notebox/x", "w")
@attempt
def raise_a_hard_limit():
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
    except ValueError:  # Python's word for EPERM here
        raise OSError(errno.EPERM, "")

tries["mknod"] = lambda: os.mknod("/tmp/null", 0o20666, os.makedev(1, 3))

def outcome(f):
    pid = os.fork()
    if pid == 0:
        try:
            f()
            os._exit(0)
        except OSError as e:
            os._exit(min(e.errno or 254, 254))
        except BaseException:
            os._exit(255)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    return "done" if code == 0 else "other" if code == 255 else code_name(code)

print(json.dumps({label: outcome(f) for label, f in tries.items()}, indent=1))
