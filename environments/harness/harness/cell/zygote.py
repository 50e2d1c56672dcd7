"""The process that cells are forked from. It holds nothing of any request.

1. The supervisor (environments/supervisor) says how cells are to be. The zygote makes the tree
   of files that all of them see, and imports what runs are going to.
2. For each cell a message comes, with a stream and a pipe for last words. The zygote forks.
   The child says hello, so that the supervisor sees who it is and, on version 1, puts it into
   its control groups; then it builds its walls (walls.py) and is the harness of a sandbox.
3. The zygote tells how each child ended. It does nothing else: each page that it writes to
   is copied, and each thread that it had would be missing in its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import ssl
import struct
import sys
import tempfile
import traceback
from typing import Any

from harness.cell import immortal, pages, tree, walls
from harness.cell.kernelcalls import MS_NODEV, MS_NOSUID, fork, mount, unmount
from harness.kernel import warm
from harness.kernel.choice import PYTHON
from harness.system import names, privileges, sockets
from harness.system.places import HARNESS, TMP

CONTROL = 3  # the descriptor of the supervisor's messages
MAX_MESSAGE = 1 << 18  # bytes
HELLO, GO = b"h", b"g"
CANNOT_START = 70  # EX_SOFTWARE of sysexits.h

# A variable that pyarrow looks at when it is imported: it starts no thread, which a fork would
# be without.
IMPORTING = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


def serve(harness: str) -> None:
    """Fork cells until the supervisor is gone. Returns in each cell, as its harness, which is
    the child of the cell's first process. The module that is named is what that goes on with."""
    control = socket.socket(fileno=CONTROL)
    setup = walls.Setup.read(control.recv(MAX_MESSAGE))
    walls.begin("files")
    try:
        tree.build(setup.groups, setup.masked)
    except OSError:
        walls.complain()
        raise
    walls.begin("")
    privileges.settle()
    for folder in (TMP, HARNESS):
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV)
    names.write()
    imports(harness, setup)
    for folder in (TMP, HARNESS):
        unmount(folder)
    walls.bound()
    gc.collect()
    immortal.immortalize()
    gc.freeze()
    pages.collapse()
    require_alone()
    control.send(b"up")
    birth = Nursery(control).birth()
    try:
        walls.build(setup, birth)
        start_anew()
        privileges.settle()
        names.write()
        sockets.begin_as_init()
        warm.home()
    except BaseException:  # noqa: BLE001 - a fork must never return as what it is not
        traceback.print_exc()
        walls.complain()
        os._exit(CANNOT_START)


def imports(harness: str, setup: walls.Setup) -> None:
    """Build what every harness and kernel is, and import what runs are going to."""
    warm.begin()
    if setup.kernel == PYTHON:
        warm.kernel_modules()
    warm.executor_without_exporters()
    warm.notebook_format()
    program = importlib.import_module(harness)
    os.environ.update(IMPORTING)
    if setup.kernel == PYTHON:
        _build_kernel(setup.modules, program)
    else:
        _import_program(setup.kernel)
    _seed_openssl()  # which has it set itself up
    for name in IMPORTING:
        del os.environ[name]
    _end_threads()


def _end_threads() -> None:
    """Have OpenBLAS end its threads, as it does before each fork. In a cell that has work for
    them they come back."""
    if not (pid := os.fork()):
        os._exit(0)
    os.waitpid(pid, 0)


def require_alone() -> None:
    """Raise if a fork of this process would lack a thread of it, or share memory with it."""
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        raise RuntimeError(f"there are {len(threads)} threads before the first fork")
    with open("/proc/self/maps") as maps:
        shared = [line.rstrip() for line in maps if {"w", "s"} <= set(line.split()[1])]
    if shared:
        raise RuntimeError(f"forks would share memory that they can write to: {shared}")


def _build_kernel(modules: list[str], harness: Any) -> None:
    from harness.kernel import prepared, start
    from harness.kernel.application import IPKernelApp

    IPKernelApp.modules = modules
    prepared.IPKernelApp.instance().prepare()
    harness.rehearse()
    IPKernelApp.not_of_kernels = start.of_harness()


def _import_program(kernel: str) -> None:
    from harness.kernel import program
    from harness.kernel.process import kernelspec

    program.import_ahead(kernelspec(kernel))


def start_anew() -> None:
    """Have nothing of chance that another cell has too.

    Python's own generator does that by itself. OpenSSL and tempfile look at the process id,
    which is the zygote's own here.
    """
    tempfile._name_sequence = None  # type: ignore[attr-defined]
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    _seed_openssl()


def _seed_openssl() -> None:
    seed = os.urandom(32)
    ssl.RAND_add(seed, float(len(seed)))


class Nursery:
    """Forks cells, one for each message."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._cells: dict[int, int] = {}  # by process
        self._woken, wake = os.pipe()
        for fd in (self._woken, wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake = wake

    def birth(self) -> walls.Birth:
        """Fork until the supervisor is gone; return in a cell what it was told."""
        import select

        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._woken:
                    self._bury()
                elif birth := self._fork():
                    return birth

    def _bury(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                self._control.send(b"%d %d" % (self._cells.pop(pid, 0), status))

    def _fork(self) -> walls.Birth | None:
        """Fork a cell, into a pid namespace of its own and, on version 2, its control group;
        return in it what it was told."""
        message, more, _, _ = self._control.recvmsg(MAX_MESSAGE, socket.CMSG_SPACE(3 * _FD.size))
        if not message:
            os._exit(0)
        descriptors = [fd for (fd,) in _FD.iter_unpack(more[0][2])]
        stream, words, *group = descriptors
        birth = walls.Birth(**json.loads(message))
        try:
            pid = fork(os.CLONE_NEWPID, *group)
        except OSError as e:  # the supervisor sees the end of the stream
            os.write(words, f"the zygote cannot fork: {e}\n".encode())
            pid = -1
        if pid:
            if pid > 0:
                self._cells[pid] = birth.cell
            for fd in descriptors:
                os.close(fd)
            return None
        try:
            self._leave(stream, words)
        except BaseException:  # noqa: BLE001 - a fork must never return as what it is not
            traceback.print_exc()
            os._exit(CANNOT_START)
        return birth

    def _leave(self, stream: int, words: int) -> None:
        """Leave all that is the zygote's, in a cell, and wait to be let go on."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for fd, number in ((stream, 0), (stream, 1), (words, 2)):
            os.dup2(fd, number)
        self._control.detach()
        os.closerange(3, _MAX_FD)
        os.write(0, HELLO)
        if os.read(0, 1) != GO:
            os._exit(0)
        ctypes.CDLL(None).prctl(_PR_SET_NAME, b"python3")


_FD = struct.Struct("i")
_MAX_FD = 1 << 16  # above the container's own limit
_PR_SET_NAME = 15  # linux/prctl.h
