"""The walls of a cell, built by its first process before anything of a request is in it. Each of
its processes confines itself, and has then two capabilities, as the harness of a container has."""

from __future__ import annotations

import base64
import ctypes
import fcntl
import json
import os
import resource
import socket
import stat
import struct
import sys
from dataclasses import dataclass, field

from harness.cell import tree
from harness.cell.kernelcalls import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    bind,
    call,
    mount,
    restrict,
    unmount,
)
from harness.system import cgroup

HOST = "sandbox"
PTYS = 32  # as runner/docker has it
NAMESPACES = (
    os.CLONE_NEWNS | os.CLONE_NEWIPC | os.CLONE_NEWUTS | os.CLONE_NEWNET | os.CLONE_NEWCGROUP
)
_QUIET = MS_NOSUID | MS_NODEV | MS_NOEXEC


@dataclass(frozen=True)
class Setup:
    """What all cells have in common."""

    kernel: str  # the name of a kernelspec
    filter: bytes  # a program for seccomp, of the zygote and all that come from it
    cells_filter: bytes  # one more, of cells: the calls that walls are built with
    modules: list[str] = field(default_factory=list)  # that a kernel of Python has imported
    masked: list[str] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)
    sysctls: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)  # the worker's, by controller

    @classmethod
    def read(cls, message: bytes) -> Setup:
        """Read what the supervisor says: a field that it has nothing for is null."""
        told = {name: value for name, value in json.loads(message).items() if value is not None}
        programs = {n: base64.b64decode(told[n]) for n in ("filter", "cells_filter")}
        return cls(**{**told, **programs})


@dataclass(frozen=True)
class Birth:
    """What is one cell's."""

    cell: int
    mounts: dict[str, str]  # file systems in memory, by folder, with their options
    limits: dict[str, str]  # of its control groups, by files below /sys/fs/cgroup


# What the kernel counts for all cells of a worker together. None of them gets more than a part.
SHARES = 8
# The same that has no limit of a process: what a user of the host may have of it.
COUNTED = ("instances", "watches")


def bound() -> None:
    """Bound what cells may have, once for all: of what is counted for them together, and of
    capabilities, so that no program that a cell starts gets more than the harness keeps."""
    for name in COUNTED:
        with open(f"/proc/sys/fs/inotify/max_user_{name}") as f:
            set_value(f"user.max_inotify_{name}", str(int(f.read()) // SHARES))
    set_value("user.max_user_namespaces", "0")
    for limit in (resource.RLIMIT_MSGQUEUE, resource.RLIMIT_SIGPENDING):
        _, hard = resource.getrlimit(limit)
        if hard != resource.RLIM_INFINITY:
            resource.setrlimit(limit, (hard // SHARES, hard // SHARES))
    with open("/proc/sys/kernel/cap_last_cap") as f:
        last = int(f.read())
    for capability in range(last + 1):
        if not _KEPT >> capability & 1:
            call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)


_building = ""  # a wall, as environments/supervisor/wire names it


def begin(wall: str) -> None:
    """Note which wall is being built."""
    global _building  # noqa: PLW0603
    _building = wall


def complain() -> None:
    """Say, as the last words of a process that ends by that, which wall could not be built."""
    if _building:
        print(f"missing wall: {_building}", file=sys.stderr, flush=True)


def build(setup: Setup, birth: Birth) -> None:
    """Build them all around this process, which is the first of its pid namespace."""
    begin("namespaces")
    os.unshare(NAMESPACES)
    socket.sethostname(HOST)
    _loopback()
    begin("proc")
    mount("proc", "/proc", "proc", _QUIET)
    for name, value in setup.sysctls.items():
        set_value(name, value)
    for path in filter(os.path.exists, setup.read_only):
        bind(path, path)
        restrict(path, _QUIET | MS_RDONLY)
    for path in setup.masked:  # after that, or it would be below
        _mask(path)
    begin("tmpfs")
    for folder, options in birth.mounts.items():
        flags = _QUIET if folder == "/dev/shm" else MS_NOSUID | MS_NODEV
        mount("tmpfs", folder, "tmpfs", flags, options)
    begin("files")
    pts = f"newinstance,ptmxmode=0666,mode=0620,max={PTYS}"
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, pts)
    mount("mqueue", "/dev/mqueue", "mqueue", _QUIET)
    begin("control_groups")
    _show(birth.limits)
    unmount(tree.GROUPS)
    begin("")


def _show(limits: dict[str, str]) -> None:
    """Have code see its limits where programs look for them, in files that are only that.

    A process that reads a control group's own files holds up whoever makes or removes a group.
    """
    mount("tmpfs", cgroup.ROOT, "tmpfs", _QUIET, "size=64k,nr_inodes=32,mode=755")
    for name, value in limits.items():
        path = f"{cgroup.ROOT}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(value + "\n")
    restrict(cgroup.ROOT, _QUIET | MS_RDONLY)


def confine(setup: Setup) -> None:
    """Leave this process what the harness of a container may, and nothing else."""
    begin("privileges")
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    call("capset", header, struct.pack("6I", _KEPT, _KEPT, 0, 0, 0, 0))
    call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filter_calls(setup.cells_filter)


def set_value(name: str, value: str) -> None:
    """Set one of the kernel's values, of this process's namespaces."""
    with open("/proc/sys/" + name.replace(".", "/"), "w") as f:
        f.write(value)


def _loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _mask(path: str) -> None:
    """Have a file or folder of /proc be empty, where there is one."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if path.startswith("/proc/"):  # the rest is masked for all cells at once
        bind(tree.EMPTY if stat.S_ISDIR(mode) else "/dev/null", path)


def filter_calls(program: bytes) -> None:
    """Have a program decide, too, about each system call of this process and of all that it
    starts."""
    begin("seccomp")
    held = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(held))
    call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, head, 0, 0)
    begin("")


_KEPT = 1 << 6 | 1 << 7  # SETGID and SETUID of linux/capability.h
_CAPABILITY_VERSION = 0x20080522
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 24, 38, 22, 2
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
