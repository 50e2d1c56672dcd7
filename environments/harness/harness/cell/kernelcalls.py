"""System calls that Python has no functions for."""

from __future__ import annotations

import ctypes
import os
import signal
import struct

from harness.system.libc import LIBC

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 1 << 12, 1 << 14, 1 << 18,
)  # fmt: skip
MS_STRICTATIME = 1 << 24
_MNT_DETACH = 2
_CLONE3, _CLONE_INTO_CGROUP = 435, 1 << 33

_python = ctypes.PyDLL(None, use_errno=True)  # what is called so keeps the interpreter's lock
_python.syscall.restype = ctypes.c_long


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns 0, or raise OSError."""
    if getattr(LIBC, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}{arguments}: {os.strerror(code)}")


def fork(namespaces: int, group: int | None = None) -> int:
    """Fork into new namespaces, and into the control group that is open.

    The hooks of Python and of the C library are not called: they are for threads, of which there
    is one, and write to pages that are then copied. The C library's id of the main thread is wrong
    in the child, until that forks by os.fork.
    """
    flags = namespaces | (_CLONE_INTO_CGROUP if group is not None else 0)
    arguments = struct.pack("11Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, group or 0)
    pid: int = _python.syscall(_CLONE3, arguments, ctypes.c_size_t(len(arguments)))
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"clone3: {os.strerror(code)}")
    return pid


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system of that kind, or change a mount."""
    call("mount", source.encode(), target.encode(), kind.encode(), flags, options.encode())


def bind(source: str, target: str, flags: int = 0) -> None:
    """Have what is at source be at target too."""
    mount(source, target, "", MS_BIND | flags)


def restrict(target: str, flags: int) -> None:
    """Have a mount, and not those below it, have these flags."""
    mount("none", target, "", MS_BIND | MS_REMOUNT | flags)


def unmount(target: str) -> None:
    """Take a mount away, with those below it."""
    call("umount2", target.encode(), _MNT_DETACH)


def pivot_root(root: str) -> None:
    """Make a mount the root, and take the old one away."""
    os.chdir(root)
    call("pivot_root", b".", b".")
    unmount(".")
    os.chdir("/")
