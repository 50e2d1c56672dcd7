"""The tree of files that all cells of a worker see: read-only, and nothing of the worker.

It is a small file system in memory, with the image's folders bound into it. What is a cell's
own (walls.py) is mounted over its empty folders.
"""

from __future__ import annotations

import os

from harness.cell.kernelcalls import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_STRICTATIME,
    bind,
    mount,
    pivot_root,
    restrict,
)
from harness.system import cgroup
from harness.system.places import DATA, HARNESS

GROUPS = "/.groups"  # the worker's control groups, for a harness to open its own
EMPTY = "/.empty"  # a folder without anything
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {
    "dev/fd": "/proc/self/fd",
    "dev/stdin": "/proc/self/fd/0",
    "dev/stdout": "/proc/self/fd/1",
    "dev/stderr": "/proc/self/fd/2",
    "dev/ptmx": "pts/ptmx",
}
# Empty, or with a part of what a container has.
OWN = ("proc", "sys", "dev", "tmp", "run", "mnt")
# What programs look for: the processors and their nodes, and how large pages are.
SYSTEM = ("/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm")
_QUIET = MS_NOSUID | MS_NODEV


def build(groups: dict[str, str], masked: list[str]) -> None:
    """Make it, and make it the root of this process."""
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    root = DATA  # any folder that is there
    mount("tmpfs", root, "tmpfs", _QUIET, "size=1m,mode=755")
    for entry in sorted(os.listdir("/")):
        _from_image(entry, root)
    for folder in (DATA, HARNESS, "/dev/pts", "/dev/shm", "/dev/mqueue", GROUPS, EMPTY):
        os.makedirs(root + folder, exist_ok=True)
    for name in DEVICES:
        os.close(os.open(f"{root}/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        # Read-only, or its times would tell one cell of another; it can be written to.
        bind(f"/dev/{name}", f"{root}/dev/{name}")
        restrict(f"{root}/dev/{name}", MS_NOSUID | MS_STRICTATIME | MS_RDONLY)
    for name, target in LINKS.items():
        os.symlink(target, f"{root}/{name}")
    for folder in filter(os.path.isdir, SYSTEM):
        os.makedirs(root + folder)
        bind(folder, root + folder)
    mount("tmpfs", root + GROUPS, "tmpfs", _QUIET, "size=64k")
    os.makedirs(root + cgroup.ROOT)
    for controller, folder in groups.items():
        of_worker = root + group(controller)
        os.mkdir(of_worker)
        bind(folder, of_worker)
        restrict(of_worker, _QUIET | MS_NOEXEC | MS_RDONLY)
    mount("proc", f"{root}/proc", "proc", _QUIET | MS_NOEXEC)
    for path in masked:
        if path.startswith("/sys/") and os.path.isdir(root + path):
            bind(root + EMPTY, root + path)
    restrict(root, _QUIET | MS_RDONLY)
    pivot_root(root)


def group(controller: str) -> str:
    """Return where the worker's control group of a controller is, or, by "", that of version 2."""
    return f"{GROUPS}/{controller or 'unified'}"


def _from_image(entry: str, root: str) -> None:
    source, target = f"/{entry}", f"{root}/{entry}"
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif entry in OWN:
        os.mkdir(target)
    elif os.path.isdir(source):
        os.mkdir(target)
        bind(source, target, MS_REC)
        restrict(target, _QUIET | MS_RDONLY)
