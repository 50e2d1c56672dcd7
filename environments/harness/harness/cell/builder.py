"""The process that builds the walls of cells. It is forked from the zygote before that imports
anything, as a fork of a small process is cheap.

1. For each cell a message of the supervisor comes, with a stream, a pipe for last words and, on
   version 2, the control group that is to be the cell's. The builder forks, into a new pid
   namespace.
2. That child is the cell's first process. It says hello, so that the supervisor sees who it is
   and, on version 1, puts it into the cell's control groups. Then it builds the walls (walls.py),
   and the user's home.
3. It confines itself, and asks the zygote for a harness inside.
4. It is the guard of sockets (sockets.py), buries orphans, and ends with the harness.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import traceback
from typing import NoReturn

from harness.cell import pages, walls
from harness.cell.kernelcalls import fork
from harness.kernel import warm
from harness.system import names, privileges, sockets
from harness.system.children import ended, woken_by_children
from harness.system.libc import LIBC

CANNOT_START = 70  # EX_SOFTWARE of sysexits.h
HELLO, GO = b"h", b"g"
MAX_BIRTH = 1 << 13  # bytes of a message
FD = struct.Struct("i")
STREAM, WORDS = 0, 2  # the descriptors of a cell's stream and last words
_PR_SET_NAME = 15  # linux/prctl.h


def begin(control: socket.socket, setup: walls.Setup) -> tuple[int, socket.socket]:
    """Fork the builder, which is told of cells by control; return its process, and where it
    orders harnesses."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if pid := os.fork():
        theirs.close()
        return pid, ours
    try:
        ours.close()
        warm.skeleton()  # so that the home of a cell is made from memory
        pages.gather()
        pages.share()
        _serve(control, theirs, setup)
    except BaseException:  # noqa: BLE001 - a fork must never return
        traceback.print_exc()
    finally:
        os._exit(1)


def _serve(control: socket.socket, orders: socket.socket, setup: walls.Setup) -> NoReturn:
    """Fork first processes until the supervisor is gone."""
    woken, _ = woken_by_children()
    cells: dict[int, int] = {}  # by first process
    poll = select.poll()
    for readable in (control, woken):
        poll.register(readable, select.POLLIN)
    while True:
        for source, _ in poll.poll():
            if source == woken:
                for pid, status in ended(woken):
                    if (cell := cells.pop(pid, None)) is not None:
                        control.send(b"first %d %d" % (cell, status))
                continue
            message, rights, _, _ = control.recvmsg(MAX_BIRTH, socket.CMSG_SPACE(3 * FD.size))
            if not message:
                os._exit(0)
            descriptors = [fd for (fd,) in FD.iter_unpack(rights[0][2])]
            _, words, *group = descriptors
            try:
                pid = fork(os.CLONE_NEWPID, *group)
            except OSError as e:  # the supervisor sees the end of the stream
                complain(words, f"the builder cannot fork: {e}")
                pid = -1
            birth = walls.Birth(**json.loads(message))
            if not pid:
                _be_first(orders, setup, birth, descriptors)
            if pid > 0:
                cells[pid] = birth.cell
            for fd in descriptors:
                os.close(fd)


def _be_first(
    orders: socket.socket, setup: walls.Setup, birth: walls.Birth, descriptors: list[int]
) -> NoReturn:
    """Be the first process of a cell."""
    try:
        stream, words, *group = descriptors
        introduce(stream, words)
        walls.build(setup, birth)
        privileges.settle()
        names.write()
        warm.home()
        walls.confine(setup)
        ours, theirs = socket.socketpair()
        me = os.pidfd_open(os.getpid())
        rights = [me, STREAM, WORDS, theirs.fileno(), *group]
        socket.send_fds(orders, [b"%d" % birth.cell], rights)
        for fd in (me, theirs.detach(), *group):
            os.close(fd)
        sockets.guard(ours)
    except BaseException:  # noqa: BLE001 - a fork must never return
        traceback.print_exc()
        walls.complain()
    finally:
        os._exit(CANNOT_START)


def complain(words: int, text: str) -> None:
    """Say so to who listens to the last words of a cell, if somebody does."""
    with contextlib.suppress(OSError):
        os.write(words, f"{text}\n".encode())


def introduce(stream: int, words: int) -> None:
    """Take what is a cell's own for input and output, say who this is, and wait to be let go on."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd, number in ((stream, STREAM), (stream, 1), (words, WORDS)):
        os.dup2(fd, number)
    os.write(STREAM, HELLO)
    if os.read(STREAM, 1) != GO:
        os._exit(0)
    LIBC.prctl(_PR_SET_NAME, b"python3")
