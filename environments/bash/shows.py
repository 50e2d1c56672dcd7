"""What the command display (showfile.py) shows: outputs that are more than text.

It sends a line with the media type and then the content, ends that, and waits for a line
that says ok, or what is wrong: so an output stands between what was written before and
after it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import select
import socket
from collections.abc import Callable
from typing import Any

MAX_BYTES = 32 << 20  # of one output, more than a service keeps of all
MAX_CLIENTS = 16  # that send at once
PART = 64 << 10  # bytes that are taken at once

Tell = Callable[[dict[str, Any]], None]  # a bundle of media types and their data


class Shows:
    """The end that the kernel has: a socket with a path."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(path)
        self._listener.listen(MAX_CLIENTS)
        self._poll = select.epoll()
        self._poll.register(self._listener, select.EPOLLIN)
        self._clients: dict[int, tuple[socket.socket, bytearray]] = {}
        self.tell: Tell | None = None  # None between cells

    def fileno(self) -> int:
        return self._poll.fileno()

    def serve(self) -> None:
        """Take what has come."""
        for fd, _ in self._poll.poll(0):
            # A client may go away at any time.
            with contextlib.suppress(OSError):
                if fd == self._listener.fileno():
                    self._accept()
                else:
                    self._read(fd)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        client.setblocking(False)
        if len(self._clients) >= MAX_CLIENTS:
            client.close()
            return
        self._clients[client.fileno()] = (client, bytearray())
        self._poll.register(client, select.EPOLLIN)

    def _read(self, fd: int) -> None:
        client, data = self._clients[fd]
        try:
            part = client.recv(PART)
        except BlockingIOError:
            return
        except OSError:
            self._forget(fd)
            return
        if part:  # of too much the rest is thrown away: who still writes would not hear why
            if len(data) <= MAX_BYTES:
                data += part
            return
        try:
            answer = self._show(bytes(data))
            with contextlib.suppress(OSError):
                client.send(answer.encode() + b"\n")
        finally:
            self._forget(fd)

    def _forget(self, fd: int) -> None:
        client, _ = self._clients.pop(fd)
        self._poll.unregister(fd)
        client.close()

    def _show(self, data: bytes) -> str:
        if len(data) > MAX_BYTES:
            return f"more than {MAX_BYTES >> 20} MiB cannot be shown"
        if self.tell is None:
            return "no cell runs"
        kind, _, content = data.partition(b"\n")
        try:
            self.tell(bundle(kind.decode(), content))
        except (ValueError, RecursionError, MemoryError) as e:
            return f"not valid: {e}"
        return "ok"


def bundle(kind: str, content: bytes) -> dict[str, Any]:
    """Return the data of an output. Raises ValueError for what is not of its type."""
    if kind == "application/json":
        return {kind: json.loads(content)}
    if kind.startswith("text/") or kind.endswith(("+xml", "+json", "/javascript")):
        return {kind: content.decode()}
    return {kind: base64.b64encode(content).decode()}
