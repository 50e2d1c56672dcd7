"""The process that harnesses of cells are forked from. It holds nothing of any request.

1. The supervisor (environments/supervisor) says how cells are to be. The zygote makes the tree
   of files that all of them see, forks the builder of their walls (builder.py), and imports what
   runs are going to.
2. The first process of each cell orders a harness. The zygote forks it, into the pid namespace of
   that process. The child enters its other namespaces, says hello to the supervisor as that one
   has done, and is the harness of a sandbox.
3. The zygote tells how each harness ended. It does nothing else: each page that it writes to
   is copied, and each thread that it had would be missing in its children.
"""

from __future__ import annotations

import array
import importlib
import os
import random
import select
import socket
import sys
import tempfile
import traceback
from typing import Any, NoReturn

from harness.cell import builder, pages, tree, walls
from harness.cell.builder import CANNOT_START, FD
from harness.cell.kernelcalls import MS_NODEV, MS_NOSUID, fork, mount, unmount
from harness.kernel import warm
from harness.kernel.choice import PYTHON
from harness.system import cgroup, names, privileges, sockets
from harness.system.children import ended, woken_by_children
from harness.system.places import HARNESS, TMP

CONTROL = 3  # the descriptor of the supervisor's messages
MAX_SETUP = 1 << 18  # bytes
MAX_ORDER = 16  # bytes: the number of a cell
RIGHTS = 5  # descriptors that come with it, at most
REHEARSALS = 20  # the interpreter makes faster what has run so often

# A variable that pyarrow looks at when it is imported: it starts no thread, which a fork would
# be without.
IMPORTING = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


def serve(harness: str) -> None:
    """Fork harnesses until the supervisor is gone. Returns in each of them. The module that is
    named is what that goes on with."""
    control = socket.socket(fileno=CONTROL)
    setup = walls.Setup.read(control.recv(MAX_SETUP))
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
    walls.bound()
    walls.filter_calls(setup.filter)
    builders, orders = builder.begin(control, setup)
    reserved = pages.reserve()
    imports(harness, setup)
    del reserved
    for folder in (TMP, HARNESS):
        unmount(folder)
    nursery = Nursery(control, orders, builders)
    walls.begin("namespaces")
    try:
        nursery.rehearse()
    except OSError:
        walls.complain()
        raise
    walls.begin("")
    pages.share()
    require_alone()
    control.send(b"up")
    tie = nursery.birth()
    try:
        walls.confine(setup)
        start_anew()
        privileges.settle()
        sockets.ask(tie)
        tie.close()
    except BaseException:  # noqa: BLE001 - a fork must never return as what it is not
        fail()


def fail() -> NoReturn:
    """End a harness that cannot begin, with its last words."""
    try:
        traceback.print_exc()
        walls.complain()
    finally:
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
    pages.gather()
    harness.rehearse()
    IPKernelApp.not_of_kernels = start.of_harness()


def _import_program(kernel: str) -> None:
    from harness.kernel import program
    from harness.kernel.process import kernelspec

    program.import_ahead(kernelspec(kernel))


def start_anew() -> None:
    """Have nothing of chance that another cell has too.

    OpenSSL and tempfile look at the process id, which is another cell's here, too.
    """
    random.seed()
    tempfile._name_sequence = None  # type: ignore[attr-defined]
    if "numpy.random" in sys.modules:
        _seed_numpy()
    _seed_openssl()


def _seed_numpy() -> None:
    """Give numpy's old generator a state as its own seed() does, in a sixth of the time."""
    key: Any = array.array("I", os.urandom(_KEY_BYTES))
    key[0] = 0x80000000  # so that not all of it is 0
    sys.modules["numpy.random"].set_state(("MT19937", key, len(key) - 1))


def _seed_openssl() -> None:
    import ssl  # not in the builder

    seed = os.urandom(32)
    ssl.RAND_add(seed, float(len(seed)))


class Nursery:
    """Forks harnesses, one for each order."""

    def __init__(self, control: socket.socket, orders: socket.socket, builders: int) -> None:
        """builders is the process of the builder."""
        self._control, self._orders, self._builders = control, orders, builders
        self._cells: dict[int, bytes] = {}  # by process
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._woken, _ = woken_by_children()

    def rehearse(self) -> None:
        """Fork harnesses that end at once, so that the interpreter has specialised this code.
        Nothing is left of them. Raises OSError if that is not possible on this host."""
        real = self._control, self._orders
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        orders, self._orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null, me = os.open(os.devnull, os.O_RDWR), os.pidfd_open(os.getpid())
        os.setns(me, os.CLONE_NEWPID)  # or the reason would be lost
        for _ in range(REHEARSALS):
            socket.send_fds(orders, [b"0"], [me, null, null, null])
            if self._fork():
                os._exit(0)
            while self._cells:
                select.select([self._woken], [], [])
                self._tell()
        for end in (self._control, theirs, orders, self._orders):
            end.close()
        for fd in (null, me):
            os.close(fd)
        self._control, self._orders = real

    def birth(self) -> socket.socket:
        """Fork until the builder is gone; return in a harness the way to its guard."""
        poll = select.poll()
        for source in (self._orders, self._woken):
            poll.register(source, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._woken:
                    self._tell()
                elif order := self._fork():
                    return self._enter(*order)

    def _tell(self) -> None:
        for pid, status in ended(self._woken):
            if pid == self._builders:
                os._exit(0 if status == 0 else CANNOT_START)
            # Else it is an orphan of a library that was imported: this is the first process of
            # its pid namespace.
            if cell := self._cells.pop(pid, None):
                self._control.send(b"harness %b %d" % (cell, status))

    def _fork(self) -> list[int]:
        """Fork a harness; return in it the cell's number and the descriptors of the order."""
        cell, rights, _, _ = self._orders.recvmsg(MAX_ORDER, socket.CMSG_SPACE(RIGHTS * FD.size))
        if not cell:  # the builder has ended, and SIGCHLD is about to say so
            select.select([self._woken], [], [])
            return []
        descriptors = [fd for (fd,) in FD.iter_unpack(rights[0][2])]
        first, _, words, _, *group = descriptors
        try:
            os.setns(first, os.CLONE_NEWPID)  # of children
            pid = fork(0, *group)
        except OSError as e:  # it may have ended
            builder.complain(words, f"the zygote cannot fork: {e}")
            pid = -1
        if pid:
            os.setns(self._own, os.CLONE_NEWPID)
            if pid > 0:
                self._cells[pid] = cell
            for fd in descriptors:
                os.close(fd)
            return []
        return [int(cell), *descriptors]

    def _enter(
        self, cell: int, first: int, stream: int, words: int, tie: int, *_: int
    ) -> socket.socket:
        """Go where the cell's first process is; return the way to it."""
        try:
            counters = cgroup.hold(lambda controller: f"{tree.group(controller)}/cell-{cell}")
            os.setns(first, walls.NAMESPACES)
            builder.introduce(stream, words)
            self._control.detach()
            self._orders.detach()
            kept = os.dup2(tie, CONTROL, inheritable=False)
            privileges.close_others([kept, *counters])
            return socket.socket(fileno=kept)
        except BaseException:  # noqa: BLE001 - a fork must never return as what it is not
            fail()


_KEY_BYTES = 624 * 4  # of the Mersenne Twister
