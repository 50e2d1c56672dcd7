"""Run as a cell: prints what a sandbox looks like from inside, as JSON."""
import json, os, re, resource, socket

def fields(text, names):
    rows = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {k: v.strip() for k, v in rows if k in names}

# Newer daemons mask more of /proc and /sys; these are masked or read-only by all.
MASKED = {"/proc/bus", "/proc/cmdline", "/proc/diskstats", "/proc/fs", "/proc/irq", "/proc/key-users", "/proc/keys", "/proc/sys", "/proc/timer_list", "/sys/firmware"}
# What the daemon itself puts in, from a file system of the host.
FILES = {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/usr/sbin/docker-init"}
# Flags that a kernel adds by itself.
NOISE = {"relatime", "noatime", "inode64", "seclabel"}

def mount(line):
    left, right = line.rstrip().split(" - ")
    _, _, _, root, point, flags, *_ = left.split()
    kind, _, options = right.split(" ", 2)
    flags = ",".join(f for f in flags.split(",") if f not in NOISE)
    options = ",".join(o for o in options.split(",") if o not in NOISE)
    options = re.sub(rf"([ug]id)=(?!{os.getuid()}\b)\d\d+", r"\1=ROOT", options)  # a cell's, outside
    if point in FILES:
        return f"{flags.split(',')[0]} file of the daemon"
    if point.startswith("/sys/fs/cgroup"):
        files = f"{point} {flags} {kind} {root} {options}"  # a cell's own
        return files if "size=" in options else "/sys/fs/cgroup, of version 1 or 2"
    if point in MASKED or point == "/":
        return f"{point} {flags.split(',')[0]} {kind}"
    if point.startswith(("/proc/", "/sys/")):
        return None
    if kind == "overlay":
        return f"{point} {flags} {kind}"
    return f"{point} {flags} {kind} {root} {options}"

def process(pid):
    """What a process is and may do; the rest of it is not to be seen."""
    try:
        status = fields(open(f"/proc/{pid}/status").read(), ("Name", "Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp"))
    except OSError:
        return None
    score = open(f"/proc/{pid}/oom_score_adj").read().strip()
    name, uid = status.pop("Name"), status.pop("Uid").split()[0]
    return f"{name}, uid {uid}, oom_score_adj {score}, " + ", ".join(f"{k} {v}" for k, v in status.items())

status = open("/proc/self/status").read()
pids = [p for p in os.listdir("/proc") if p.isdigit()]
text = json.dumps({
    "status": fields(status, (
        "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
    )),
    "umask": f"{os.umask(0o22):o}",
    "mounts": sorted(filter(None, {mount(line) for line in open("/proc/self/mountinfo")})),
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_CORE", "RLIMIT_NOFILE")},
    "environment": sorted(os.environ),
    "processes": sorted(filter(None, map(process, pids))),
    "interfaces": sorted(name for _, name in socket.if_nameindex()),
    "devices": sorted(os.listdir("/dev")),
    "cwd": os.getcwd(),
    "docker_sock": os.path.exists("/var/run/docker.sock") or os.path.exists("/run/docker.sock"),
    "stdin, stdout, stderr": [re.sub(r"\d+", "N", os.readlink(f"/proc/self/fd/{fd}")) for fd in range(3)],
    # Not the fonts of the image, which matplotlib has open once it has been warmed.
    "open": sorted({re.sub(r"\d+", "N", name) for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}") and not (name := os.readlink(f"/proc/self/fd/{fd}")).endswith((".ttf", ".ttc"))}),
}, indent=1)
text = text.replace(str(os.getuid() + 1), "CLERK")
print(text.replace(str(os.getuid()), "USER"))  # which each sandbox has another of
