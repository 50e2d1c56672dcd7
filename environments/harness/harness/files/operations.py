"""What file operations do to /mnt/data. All of it runs in a child with the user's rights.

The child is the other end of a channel: see the Go package runner/internal/frame.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import secrets
import select
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from harness.files import folder
from harness.files.collector import DATA_FOLDER, MAX_ENTRIES, TICK_NS
from harness.files.folder import BUSY, NOT_PLAIN, REFUSED, RefusedError

SECONDS = 120.0  # of one operation: 512 MiB from or to a slow client
LAST_SECONDS = 5.0  # to leave nothing behind after that
MAX_REQUEST = 64 << 10  # bytes: two paths
PART = 64 << 10  # bytes of content at once
ATTEMPTS = 3  # at a folder that is filled while it is removed

_RENAME_NOREPLACE = 1  # linux/fs.h


class Operation:
    """One, on its connection to the service.

    note is a descriptor that takes what the harness has to know of files that were written,
    a line of JSON each. Files whose name begins with hidden are there for a moment only.
    """

    def __init__(self, connection: socket.socket, note: int, hidden: str) -> None:
        self._connection, self._note, self._hidden = connection, note, hidden
        self._rest = b""  # that came with the request
        self._told = False  # the answer has begun

    def run(self) -> None:
        """Do what is asked for, and answer, within SECONDS."""
        signal.signal(signal.SIGALRM, self._late)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        self.answer()

    def answer(self) -> None:
        """Do what is asked for, and answer."""
        try:
            try:
                request = self._request()
                self._do(request)
            except OSError as e:
                raise folder.explain(e) from e
        except RefusedError as e:
            if self._told:  # more would be taken for content: too little shows
                return
            self._answer({"code": e.code, "message": e.message})
            self._connection.shutdown(socket.SHUT_WR)
            while self._connection.recv(PART):  # else the answer would be lost with it
                pass

    def _late(self, *_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, LAST_SECONDS)
        raise RefusedError(BUSY, "it took too long")

    def _request(self) -> dict[str, Any]:
        data = b""
        while b"\n" not in data:
            part = self._connection.recv(PART)
            if not part or len(data) > MAX_REQUEST:
                raise RefusedError(REFUSED, "not a request")
            data += part
        line, _, self._rest = data.partition(b"\n")
        try:
            request = json.loads(line)
            if isinstance(request, dict) and isinstance(request["path"], str):
                return request
        except (ValueError, KeyError, RecursionError):
            pass
        raise RefusedError(REFUSED, "not a request")

    def _do(self, request: dict[str, Any]) -> None:
        kinds: dict[str, Callable[[dict[str, Any]], None]] = {
            "list": self._list,
            "read": self._read,
            "write": self._write,
            "delete": self._delete,
            "move": self._move,
        }
        if (do := kinds.get(request.get("op", ""))) is None:
            raise RefusedError(REFUSED, "not an operation")
        do(request)

    def _answer(self, reply: dict[str, Any], lines: list[dict[str, Any]] | None = None) -> None:
        whole = {"code": "", "message": "", "entries": 0, "more": False} | reply
        self._told = True
        text = "".join(json.dumps(line) + "\n" for line in [whole, *(lines or [])])
        self._connection.sendall(text.encode("ascii"))

    def _list(self, request: dict[str, Any]) -> None:
        path, more = request["path"], False
        found: list[tuple[str, os.stat_result]] = []
        with folder.opened(folder.split(path)) as fd:
            for name, st in self._walk(fd, path, bool(request.get("recursive"))):
                if len(found) >= MAX_ENTRIES:
                    more = True
                    break
                found.append((name, st))
        found.sort(key=lambda pair: pair[0])
        limit = int(request.get("max") or MAX_ENTRIES)
        lines = [folder.entry(name, st) for name, st in found[:limit]]
        self._answer({"entries": len(lines), "more": more or len(found) > limit}, lines)

    def _walk(self, fd: int, path: str, deep: bool) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.name.startswith(self._hidden):
                    continue
                try:
                    st = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone again
                name = f"{path}/{entry.name}" if path else entry.name
                if len(folder.shown(name)) > folder.MAX_PATH:
                    continue  # nobody could ask for it
                yield name, st
                if not deep or not stat.S_ISDIR(st.st_mode) or name.count("/") > folder.MAX_PARTS:
                    continue
                try:
                    below = os.open(entry.name, DATA_FOLDER, dir_fd=fd)
                except OSError:
                    continue
                try:
                    yield from self._walk(below, name, deep)
                finally:
                    os.close(below)

    def _read(self, request: dict[str, Any]) -> None:
        with folder.around(request["path"]) as (parent, name):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode):
            raise RefusedError(NOT_PLAIN, "not a regular file")
        self._answer({"entry": folder.entry(request["path"], st)})
        left = st.st_size
        while left > 0 and (part := os.read(fd, min(left, PART))):
            self._connection.sendall(part)
            left -= len(part)

    def _write(self, request: dict[str, Any]) -> None:
        path = request["path"]
        with folder.around(path, make=True) as (parent, name):
            temporary = self._hidden + secrets.token_hex(16)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            fd = os.open(temporary, flags, 0o644, dir_fd=parent)
            try:
                self._receive(fd)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(temporary, dir_fd=parent)
                raise
            self._settled("", path, fd)

    def _receive(self, fd: int) -> None:
        """Take the content in, up to the service's end."""
        part = self._rest
        while True:
            while part:
                part = part[os.write(fd, part) :]
            if not (part := self._connection.recv(PART)):
                break
        # An end, or the end of everything?
        poll = select.poll()
        poll.register(self._connection, 0)
        if poll.poll(0):
            raise RefusedError(BUSY, "it was called off")

    def _settled(self, origin: str, path: str, fd: int) -> None:
        """Tell the harness of a file, and then the service."""
        st = os.fstat(fd)
        # A change within the same tick of the file system's clock would not be seen.
        while 0 <= time.time_ns() - st.st_ctime_ns < TICK_NS:
            time.sleep(0.001)
        note = {"from": origin, "path": path, "mark": [st.st_ino, st.st_ctime_ns]}
        os.write(self._note, json.dumps(note).encode("ascii") + b"\n")
        self._answer({"entry": folder.entry(path, st)})

    def _delete(self, request: dict[str, Any]) -> None:
        with folder.around(request["path"]) as (parent, name):
            _remove(parent, name, 0)
        self._answer({})

    def _move(self, request: dict[str, Any]) -> None:
        to = request.get("to")
        with (
            folder.around(request["path"]) as (parent, name),
            folder.around(to, make=True) as (target, new),
        ):
            assert isinstance(to, str)
            if request.get("overwrite"):
                os.rename(name, new, src_dir_fd=parent, dst_dir_fd=target)
            else:
                _rename_no_replace(parent, name, target, new)
            # O_PATH: whatever it is, it is not opened.
            fd = os.open(new, os.O_PATH | os.O_NOFOLLOW, dir_fd=target)
        self._settled(request["path"], to, fd)


def _rename_no_replace(parent: int, name: str, target: int, new: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    old = os.fsencode(name)
    if libc.renameat2(parent, old, target, os.fsencode(new), _RENAME_NOREPLACE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _remove(parent: int, name: str, depth: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
        return
    except (IsADirectoryError, PermissionError):
        fd = os.open(name, DATA_FOLDER, dir_fd=parent)
    if depth > folder.MAX_PARTS:
        raise RefusedError(BUSY, "too many folders in folders")
    try:
        for attempt in range(ATTEMPTS):
            for below in os.listdir(fd):
                try:
                    _remove(fd, below, depth + 1)
                except FileNotFoundError:
                    continue  # gone by itself
            try:
                os.rmdir(name, dir_fd=parent)
                return
            except OSError as e:
                if e.errno != errno.ENOTEMPTY or attempt == ATTEMPTS - 1:
                    raise
    finally:
        os.close(fd)
