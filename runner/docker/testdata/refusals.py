"""Run as a cell: tries what must be refused, each in a child, and prints what happened."""
import ctypes, errno, json, mmap, os, resource, signal, socket, struct, time

harness, = (
    int(p) for p in os.listdir("/proc")
    if p.isdigit() and open(f"/proc/{p}/cmdline").read().split("\0")[1:3] == ["-I", "/opt/notebox"]
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

def call(label, number, *args):
    tries[label] = lambda: syscall(number, *args)

# x86-64 numbers, from arch/x86/entry/syscalls/syscall_64.tbl of Linux.
call("ptrace attach to the harness", 101, 16, harness, 0, 0)
call("process_vm_readv", 310, harness, 0, 0, 0, 0, 0)
call("process_vm_writev", 311, harness, 0, 0, 0, 0, 0)
call("userfaultfd", 323, 0)
call("io_uring_setup", 425, 8, 0)
call("keyctl", 250, 0, 0, 0, 0, 0)
call("add_key", 248, 0, 0, 0, 0, 0)
call("request_key", 249, 0, 0, 0, 0)
call("bpf", 321, 0, 0, 0)
call("perf_event_open", 298, 0, 0, -1, -1, 0)
call("mount", 165, 0, 0, 0, 0, 0)
call("umount2", 166, 0, 0)
call("pivot_root", 155, 0, 0)
call("chroot", 161, ctypes.c_char_p(b"/tmp"))
call("unshare user namespace", 272, 0x10000000)
call("unshare network namespace", 272, 0x40000000)
call("setns", 308, 0, 0)
call("clone into a new user namespace", 56, 0x10000000 | 17, 0, 0, 0, 0)
call("clone3", 435, 0, 0)
call("init_module", 175, 0, 0, 0)
call("finit_module", 313, 0, 0, 0)
call("kexec_load", 246, 0, 0, 0, 0)
call("settimeofday", 164, ctypes.byref((ctypes.c_long * 2)(0, 0)), 0)
call("reboot", 169, 0, 0, 0, 0)
call("swapon", 167, 0, 0)
call("open_by_handle_at", 304, 0, 0, 0)
call("fsopen", 430, 0, 0)
call("open_tree", 428, 0, 0, 0)
call("move_mount", 429, 0, 0, 0, 0, 0)
call("pidfd_getfd", 438, 0, 0, 0)
call("setuid to root", 105, 0)

for label, args in {
    "AF_VSOCK": (40, socket.SOCK_STREAM), "AF_ALG": (38, 5), "AF_PACKET": (17, socket.SOCK_RAW),
    "raw socket": (socket.AF_INET, socket.SOCK_RAW, 1), "AF_BLUETOOTH": (31, socket.SOCK_RAW),
}.items():
    tries[label] = lambda args=args: socket.socket(*args)

@attempt
def int_0x80():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()

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

for path in ("/x", "/etc/x", "/usr/x", "/opt/notebox/x", "/root/x", "/var/tmp/x", "/run/x", "/sys/x"):
    tries["write " + path] = lambda path=path: open(path, "w")
for path in ("/etc/shadow", "/proc/1/environ", "/proc/sysrq-trigger", "/dev/mem"):
    tries["open " + path] = lambda path=path: open(path, "r+b" if "sysrq" in path else "rb")
for name in ("mem", "environ", "maps", "fd/0"):
    tries[f"open the harness's {name}"] = lambda name=name: open(f"/proc/{harness}/{name}", "rb")
tries["kill init"] = lambda: os.kill(1, 9)
tries["kill the harness"] = lambda: os.kill(harness, 9)
tries["renice the harness"] = lambda: os.setpriority(os.PRIO_PROCESS, harness, 19)
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
