"""Standard output and error of all that a shell runs, as they come."""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import termios
import time
from collections.abc import Callable

PART = 64 << 10  # bytes that are taken at once, as much as a pipe holds
MAX_MESSAGE = 1 << 20  # characters of one message: a cap can act in between
GATHER_SECONDS = 0.02  # between messages: a reader sees lines as they come, and not each alone
ONCE = select.EPOLLIN | select.EPOLLONESHOT
MAX_BACKLOG = 1 << 20  # characters that come between cells and are kept for the next one

Tell = Callable[[str, str], None]  # a stream's name and its text


class Streams:
    """Two pipes. They stay while shells come and go, and so do those in the background.

    What is written to both keeps its order as far as the reader is not behind: then what
    came on the one stands together before what came on the other.
    """

    def __init__(self) -> None:
        out, self.stdout = os.pipe()
        err, self.stderr = os.pipe()
        self._names = {out: "stdout", err: "stderr"}
        self.ends = (out, err)
        # It tells of pipes in the order in which they stopped being empty. If a pipe stays
        # registered, it keeps its place; so each is told of once, and then registered anew.
        self._poll = select.epoll()
        for end in self.ends:
            os.set_blocking(end, False)
            self._poll.register(end, ONCE)
        kind = codecs.getincrementaldecoder("utf-8")
        self._decoders = {end: kind("replace") for end in self.ends}
        self._parts: list[tuple[str, str]] = []  # not told yet
        self._size = 0
        self._told = 0.0
        self._lost = 0  # characters of the backlog that had no place
        self._tell: Tell | None = None  # None between cells

    def fileno(self) -> int:
        return self._poll.fileno()

    def begin(self, tell: Tell) -> None:
        """Tell what comes from now on, and what has come since the last cell."""
        self._tell = tell
        if self._lost:
            self.note(f"[{self._lost} characters of output between cells were dropped]\n")
            self._lost = 0
        self.flush()

    def note(self, text: str) -> None:
        """Say something of the kernel's own."""
        self._parts.append(("stderr", text))
        self.flush()

    def end(self) -> None:
        """Tell the rest, up to now."""
        self.drain()
        for end, decoder in self._decoders.items():
            self._keep(end, decoder.decode(b"", final=True))
        self.flush()
        self._tell = None

    def wait_ms(self) -> int | None:
        """Return after which time there is something to tell."""
        if not self._parts:
            return None
        return max(0, round(1000 * (self._told + GATHER_SECONDS - time.monotonic())))

    def take(self) -> None:
        """Take what there is, and tell it if it is time."""
        for end, _ in self._poll.poll(0):
            self._read(end, PART)
            self._poll.modify(end, ONCE)
        if self._parts and time.monotonic() >= self._told + GATHER_SECONDS:
            self.flush()

    def drain(self) -> None:
        """Take all that was written before, and not what others go on writing."""
        for end, _ in self._poll.poll(0):
            left = _waiting(end)
            while left > 0 and (count := self._read(end, min(left, PART))):
                left -= count
            self._poll.modify(end, ONCE)

    def forget_until(self, process: int, seconds: float) -> None:
        """Throw away what comes, until a process has ended or has had its time."""
        poll = select.poll()
        for fd in (process, *self.ends):
            poll.register(fd, select.POLLIN)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(1000 * left)}
            if process in ready:
                return
            for end in ready:
                self._get(end, PART)

    def flush(self) -> None:
        """Tell what was taken."""
        if self._tell is None:
            return
        parts, self._parts, self._size = self._parts, [], 0
        self._told = time.monotonic()
        for name, text in parts:
            self._tell(name, text)

    def _read(self, end: int, size: int) -> int:
        data = self._get(end, size)
        self._keep(end, self._decoders[end].decode(data))
        return len(data)

    def _get(self, end: int, size: int) -> bytes:
        try:
            return os.read(end, size)
        except BlockingIOError:  # a program of the user's may read it, too
            return b""

    def _keep(self, end: int, text: str) -> None:
        if not text:
            return
        if self._tell is None and self._size + len(text) > MAX_BACKLOG:
            self._lost += len(text)
            return
        name = self._names[end]
        if self._parts and self._parts[-1][0] == name:
            self._parts[-1] = (name, self._parts[-1][1] + text)
        else:
            self._parts.append((name, text))
        self._size += len(text)
        if self._size + PART > MAX_MESSAGE:
            self.flush()


def _waiting(fd: int) -> int:
    count = bytearray(4)
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return int.from_bytes(count, "little")
