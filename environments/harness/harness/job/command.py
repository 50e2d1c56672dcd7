"""A command of a session: bash, in a process group of its own, beside the kernel."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import select
import signal
import termios
import threading
import time
from typing import Any

from nbformat.v4 import new_output

from harness.job.clock import Clock
from harness.job.execute import OUTPUT_OVERHEAD
from harness.stream import frames
from harness.system.places import DATA
from harness.system.privileges import as_user, pipe, signal_group, spawn

PART = 64 << 10  # bytes of output that are taken at once, as much as a pipe holds
MAX_LEFT = 64  # pipes of processes that outlive their command; each costs a descriptor
PAUSE_SECONDS = 0.01  # between looks at those, so that they cost little


class Command:
    """One line for bash. It is over when bash is; what it has left in the background lives on."""

    interrupts = True

    def __init__(self, line: str, env: dict[str, str]) -> None:
        """Start it. Raises OSError if no process can be made."""
        self._pipes: dict[int, str] = {}  # the ends that are read, and the streams' names
        out, err = self._pipe("stdout"), self._pipe("stderr")
        try:
            self.pid = spawn(["/bin/bash", "-c", line], env, DATA, out, err)
        except OSError:
            for fd in self._pipes:
                os.close(fd)
            raise
        finally:
            os.close(out)
            os.close(err)
        self._end = os.pidfd_open(self.pid)

    def _pipe(self, name: str) -> int:
        reading, writing = pipe()  # /dev/stdout and /dev/stderr are its path
        os.set_blocking(reading, False)  # they can read from it that way, too
        self._pipes[reading] = name
        return writing

    def interrupt(self) -> None:
        """Send SIGINT to all of its group."""
        signal_group(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """End all of its group."""
        signal_group(self.pid, signal.SIGKILL)
        with as_user(), contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)

    def run(self, output: Output, left: Leftovers) -> int | None:
        """Pass on what it writes until it has ended; return its exit code, None if unknown."""
        try:
            self._follow(output)
        finally:
            os.close(self._end)
        for fd, name in self._pipes.items():
            # What it wrote before its end, and not what others go on writing.
            waiting = _waiting(fd)
            while waiting > 0 and (part := _read(fd, min(waiting, PART))):
                output.write(name, part)
                waiting -= len(part)
            output.write(name, b"", final=True)
            left.add(fd)
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:  # its status was taken by privileges.reap
            return None
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _follow(self, output: Output) -> None:
        poll = select.poll()
        for fd in (self._end, *self._pipes):
            poll.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._end in ready:
                return
            for fd in ready:
                if part := _read(fd, PART):
                    output.write(self._pipes[fd], part)
                elif part is not None:
                    poll.unregister(fd)


def _read(fd: int, size: int) -> bytes | None:
    """Return what there is, b"" at the end, None if somebody else was faster."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None


def _waiting(fd: int) -> int:
    count = bytearray(4)
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return int.from_bytes(count, "little")


class Output:
    """The outputs of one cell, of two streams in the order in which they come."""

    def __init__(
        self, writer: frames.Writer, index: int, cell: dict[str, Any], budget: int, clock: Clock
    ) -> None:
        self._writer, self._index, self._cell = writer, index, cell
        self._budget, self._clock = budget, clock
        self._full = False
        kind = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: kind("replace") for name in ("stdout", "stderr")}
        self._parts: list[tuple[str, list[str]]] = []

    def write(self, name: str, data: bytes, final: bool = False) -> None:
        """Take what came of one stream; stop the command at the cap."""
        text = self._decoders[name].decode(data, final)
        if self._full or not text:
            return
        size = len(text.encode()) + OUTPUT_OVERHEAD
        if size > self._budget:
            self._full = True
            self._clock.stop("output_limit")
            text = text.encode()[: self._budget].decode(errors="ignore")
        self._budget -= size
        if not text:
            return
        if not self._parts or self._parts[-1][0] != name:
            self._parts.append((name, []))
        self._parts[-1][1].append(text)
        output = {"output_type": "stream", "name": name, "text": text}
        event = {"kind": "output", "cell": self._index, "output": output}
        self._writer.write_json(frames.EVENT, event)

    def finish(self) -> None:
        """Put them into the notebook."""
        self._cell["outputs"] = [
            new_output("stream", name=name, text="".join(texts)) for name, texts in self._parts
        ]


class Leftovers:
    """Pipes of ended commands that a process in the background may still write to.

    What comes is thrown away, so that nobody is stopped by a pipe that is full or closed.
    """

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._fds: list[int] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, fd: int) -> None:
        """Take a descriptor over."""
        os.set_blocking(fd, False)
        if self._ended(fd):
            os.close(fd)
            return
        with self._lock:
            if len(self._fds) >= MAX_LEFT:
                self._drop(self._fds[0])
            self._fds.append(fd)
            self._poll.register(fd, select.EPOLLIN)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            ready = self._poll.poll()
            with self._lock:
                for fd, _ in ready:
                    if fd in self._fds and self._ended(fd):
                        self._drop(fd)
            time.sleep(PAUSE_SECONDS)

    def _ended(self, fd: int) -> bool:
        return _read(fd, PART) == b""

    def _drop(self, fd: int) -> None:
        self._fds.remove(fd)
        self._poll.unregister(fd)
        os.close(fd)
