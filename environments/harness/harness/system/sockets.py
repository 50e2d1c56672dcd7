"""A bound on the sockets of a sandbox, and none of its filters of system calls.

What sockets hold is in no limit of memory on cgroup v1. What filters hold has a limit that
all on the host share (net.core.bpf_jit_limit): when it is reached, no sandbox starts.

1. begin has this process, and all that come from it, ask for each socket: a filter of system
   calls (seccomp_unotify(2)) hands socket and connect over. connect makes the other end,
   which nobody may ever accept.
2. The guard answers. It is a child that neither the user nor a kill of all of the user's
   processes can reach. It counts the sockets of the network namespace: also those that are
   nobody's descriptor any more, or not yet.
3. Above MAX_SOCKETS the user's processes have ENOBUFS. The harness goes on.
4. Who would install another filter is told EINVAL, as by a kernel that has none.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import sys
from collections.abc import Callable
from typing import NoReturn

from harness.system.children import ended, woken_by_children
from harness.system.libc import LIBC
from harness.system.privileges import become_guard, keep_only, spare

MAX_SOCKETS = 1024  # five hundred connections of a program to itself

_AF_UNIX = 1  # whose buffers count as the memory of who sends
_SOCKET_AND_CONNECT = {"x86_64": (41, 42), "aarch64": (198, 203)}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PRCTL = {"x86_64": 157, "aarch64": 167}
# linux/seccomp.h, linux/filter.h and linux/prctl.h
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_ALLOW, _ASK, _FAIL = 0x7FFF0000, 0x7FC00000, 0x00050000
_PR_SET_SECCOMP = 22
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _FIRST = 0, 16  # offsets in struct seccomp_data: of an argument, the lower half
_CALL = struct.Struct("=QII64x")  # struct seccomp_notif: id, thread
_ANSWER = struct.Struct("=QqiI")  # struct seccomp_notif_resp: id, value, error, flags
_GO_ON = 1
_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def begin() -> None:
    """Bound the sockets of this process and of all that come from it."""
    listener = _listener()
    if listener is None:
        return
    if pid := os.fork():
        os.close(listener)
        spare(pid)
        return
    try:
        become_guard()
        # In a sandbox this has no right to, and is not needed: all of that ends with the harness.
        LIBC.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        keep_only((listener,))
        _guard(listener, {})
    finally:
        os._exit(1)


def ask(first: socket.socket) -> None:
    """Have the first process of this pid namespace, by a socket to it, bound the sockets of this
    process and of all that come from it. Returns when it is the guard, and has no rights."""
    listener = _listener()
    rights = [os.pidfd_open(os.getpid()), *([] if listener is None else [listener])]
    socket.send_fds(first, [b"s"], rights)
    for fd in rights:
        os.close(fd)
    if not first.recv(1):
        raise RuntimeError("there is no guard")


def guard(harness: socket.socket) -> NoReturn:
    """Be the guard: answer for sockets, bury orphans, and end with the harness, which asks by that
    socket."""
    woken, wake = woken_by_children()
    _, rights, _, _ = socket.recv_fds(harness, 1, 2)
    if not rights:  # nobody has forked one, or it has ended
        os._exit(0)
    process, *listeners = rights
    become_guard()
    keep_only([harness.fileno(), process, woken, wake, *listeners])
    os.close(2)
    harness.send(b"g")
    harness.close()

    def end() -> None:
        os._exit(0)

    def bury() -> None:
        for _ in ended(woken):
            pass

    bury()  # who ended before there was a signal for it
    _guard(listeners[0] if listeners else None, {process: end, woken: bury})


def _listener() -> int | None:
    """Have the kernel ask before sockets are made; return the descriptor it asks by.

    There is no bound on another kernel than Linux (gVisor has its own sockets), on one before
    5.5, or if who started the container has such a filter of its own: the kernel allows one.
    """
    machine = os.uname().machine
    if machine not in _SECCOMP or _release() < (5, 5):
        return None
    try:
        return _install(machine)
    except OSError as e:
        print(f"the number of sockets is not bounded: {e}", file=sys.stderr)
        return None


def _release() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdecimal, minor)) or 0)


def _install(machine: str) -> int:
    """Have the kernel ask for socket and connect; return the descriptor it asks by."""
    make, connect = _SOCKET_AND_CONNECT[machine]
    program = (
        (_LOAD, 0, 0, _NUMBER),
        (_IF_EQUAL, 9, 0, _SECCOMP[machine]),
        (_IF_EQUAL, 7, 0, connect),
        (_IF_EQUAL, 0, 2, make),
        (_LOAD, 0, 0, _FIRST),
        (_IF_EQUAL, 3, 4, _AF_UNIX),
        (_IF_EQUAL, 0, 2, _PRCTL[machine]),
        (_LOAD, 0, 0, _FIRST),
        (_IF_EQUAL, 2, 0, _PR_SET_SECCOMP),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ASK),
        (_RETURN, 0, 0, _FAIL | errno.EINVAL),
    )
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    held = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(held)))
    number, mode, flags = _SECCOMP[machine], _SET_MODE_FILTER, _NEW_LISTENER
    listener = int(LIBC.syscall(number, mode, flags, head))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def _guard(listener: int | None, others: dict[int, Callable[[], None]]) -> NoReturn:
    """Answer until the sandbox ends, which it does with the harness. Of other descriptors that
    can be read it does what is told."""
    count = os.open("/proc/self/net/sockstat", os.O_RDONLY)
    poll = select.poll()
    for fd in (*others, *([] if listener is None else [listener])):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd in others:
                others[fd]()
            else:
                _answer(fd, count)


def _answer(listener: int, count: int) -> None:
    """Answer one question that is there, or the reading of it would wait."""
    call = bytearray(_CALL.size)
    # Who asks may be killed, before the question is read or the answer is there.
    with contextlib.suppress(FileNotFoundError):
        _ioctl(listener, _RECEIVE, call)
        number, thread, _ = _CALL.unpack(call)
        full = _sockets(count) >= MAX_SOCKETS and not _is_roots(thread)
        error, flags = (-errno.ENOBUFS, 0) if full else (0, _GO_ON)
        _ioctl(listener, _SEND, bytearray(_ANSWER.pack(number, 0, error, flags)))


def _ioctl(fd: int, request: int, argument: bytearray) -> None:
    """Make the call, which Python does not repeat after a signal."""
    while True:
        with contextlib.suppress(InterruptedError):
            fcntl.ioctl(fd, request, argument)
            return


def _sockets(count: int) -> int:
    """Return how many sockets there are in this network namespace."""
    return int(os.pread(count, 64, 0).split()[2])  # "sockets: used 12"


def _is_roots(thread: int) -> bool:
    """Report whether a thread is the harness's: the user cannot have its uid."""
    try:
        # Bytes, as the thread's name is the user's to choose and may be no text.
        with open(f"/proc/{thread}/status", "rb") as f:
            return b"\nUid:\t0\t" in f.read()
    except OSError:
        return False
