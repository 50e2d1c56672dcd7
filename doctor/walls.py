import json
import os


def read(*names: str) -> str:
    for name in names:
        try:
            with open(name) as file:
                return file.read().strip()
        except OSError:
            pass
    return ""


def changed() -> str:
    """Return the first folder of the image in which a file can be made."""
    for folder in ("/", "/etc", "/opt", "/usr", "/usr/bin", "/usr/lib", "/usr/local/bin", "/var"):
        try:
            os.close(os.open(folder + "/.doctor", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return folder
        except OSError:
            pass
    return ""


status = dict(line.split(":", 1) for line in read("/proc/self/status").splitlines() if ":" in line)
status = {name: value.strip() for name, value in status.items()}
groups = "/sys/fs/cgroup"
interfaces = [line.split(":")[0].strip() for line in read("/proc/net/dev").splitlines() if ":" in line]
print(json.dumps({
    "user": os.geteuid(),
    "capabilities": status.get("CapEff", "") + " " + status.get("CapPrm", ""),
    "no_new_privileges": status.get("NoNewPrivs", ""),
    "seccomp": status.get("Seccomp", ""),
    "interfaces": {name: read(f"/sys/class/net/{name}/flags") for name in interfaces},
    "changed": changed(),
    "memory": read(groups + "/memory.max", groups + "/memory/memory.limit_in_bytes"),
    "pids": read(groups + "/pids.max", groups + "/pids/pids.max"),
}))
