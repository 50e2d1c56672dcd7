"""The wire between the harness and a kernel that it has forked from a prepared process: Jupyter's
messages without ZeroMQ, over a pair of sockets for each channel.

1. A message is cut into packets, each with the number of its message and of its process: also a
   process that code forks has the wire. So a sender that is interrupted or killed halfway
   spoils no other message, and nobody needs a lock.
2. A wire holds little. Who writes more than is read waits.
3. What comes by it is the user's: anything at all.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import zmq
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel, ZMQSocketChannel

CHUNK = 1 << 16  # bytes in a packet: a socket holds two or three of them
_HEAD = struct.Struct("<II?")  # process, number, whether the message ends
_ID = _HEAD.size - 1
_SIZE = 4  # bytes of the length that is before each part of a message


def pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a wire."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Wire:
    """One end, with what ipykernel and jupyter_client ask of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._numbers = itertools.count()
        self._begun: dict[bytes, list[bytes]] = {}  # messages that have not come to their end
        self.over = False  # there is no other end any more

    def fileno(self) -> int:
        return self._socket.fileno()

    def send_multipart(self, parts: Iterable[Any], *_: Any, **__: Any) -> None:
        """Send a message, and wait until it is on its way; if nobody is there, it is lost."""
        try:
            for packet in self._packets(parts):
                self._socket.sendmsg(packet, (), socket.MSG_NOSIGNAL)
        except OSError:
            pass

    def _packets(self, parts: Iterable[Any]) -> Iterator[tuple[bytes, memoryview]]:
        body = memoryview(b"".join(_with_sizes(parts)))
        process, number = os.getpid(), next(self._numbers) & 0xFFFFFFFF
        for start in range(0, len(body), CHUNK):
            ends = start + CHUNK >= len(body)
            yield _HEAD.pack(process, number, ends), body[start : start + CHUNK]

    def receive(self) -> list[bytes] | None:
        """Return the parts of the next message, if there is one."""
        while not self.over:
            try:
                packet = self._socket.recv(_HEAD.size + CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError:
                packet = b""
            if not packet:
                self.over = True
            elif len(packet) > _HEAD.size:
                pieces = self._begun.setdefault(packet[:_ID], [])
                pieces.append(packet[_HEAD.size :])
                if packet[_ID]:
                    return _split(b"".join(self._begun.pop(packet[:_ID])))
        return None

    def close(self, linger: int | None = None) -> None:
        self.over = True
        self._socket.close()


def _with_sizes(parts: Iterable[Any]) -> Iterator[bytes | memoryview]:
    for part in parts:
        view = memoryview(part)
        yield view.nbytes.to_bytes(_SIZE, "little")
        yield view


def _split(body: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(body):
        start = at + _SIZE
        at = start + int.from_bytes(body[at:start], "little")
        parts.append(body[start:at])
    return parts


class HarnessWire(Wire):
    """The harness's end, which never waits for the other one: what it sends it may have to keep."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(sock)
        self._loop = loop
        self._unsent: deque[tuple[bytes, memoryview]] = deque()
        self._message: list[bytes] | None = None  # which was looked for, and has not been taken
        self._waiting: set[asyncio.Future[None]] = set()

    def send_multipart(self, parts: Iterable[Any], *_: Any, **__: Any) -> None:
        self._unsent.extend(self._packets(parts))
        self._send()

    def _send(self) -> None:
        try:
            while self._unsent:
                flags = socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT
                self._socket.sendmsg(self._unsent[0], (), flags)
                self._unsent.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._send)
            return
        except OSError:
            self._unsent.clear()
        if not self.over:
            self._loop.remove_writer(self._socket)

    async def poll(self, timeout: float | None = None) -> int:
        """Return whether there is a message, once there is, or so many milliseconds are over."""
        due = None if timeout is None else self._loop.time() + timeout / 1000
        while self._message is None:
            self._message = self.receive()
            if self._message is None:
                if timeout == 0:
                    return 0
                try:
                    async with asyncio.timeout_at(due):
                        await self._readable()
                except TimeoutError:
                    return 0
        return 1

    async def _readable(self) -> None:
        """Return when there may be something to read; if the other end is gone, never."""
        future = self._loop.create_future()
        if not self._waiting and not self.over:
            self._loop.add_reader(self._socket, self._wake)
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
            if not self._waiting and not self.over:
                self._loop.remove_reader(self._socket)

    def _wake(self) -> None:
        self._loop.remove_reader(self._socket)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def recv_multipart(self, flags: int = 0) -> list[bytes]:
        """Return the next message. Raises zmq.Again if it is told not to wait for one."""
        if not await self.poll(0 if flags & zmq.NOBLOCK else None):
            raise zmq.Again
        message, self._message = self._message, None
        assert message is not None
        return message

    def close(self, linger: int | None = None) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        super().close()


class Channel(AsyncZMQSocketChannel):
    """A channel of jupyter_client's, on a wire."""

    socket: Any

    def __init__(self, wire: HarnessWire, session: Any) -> None:
        ZMQSocketChannel.__init__(self, wire, session)  # type: ignore[arg-type]


class Client(AsyncKernelClient):
    """A client with two wires: of what is asked and answered, and of what is published."""

    def attach(self, ends: list[socket.socket], loop: asyncio.AbstractEventLoop) -> None:
        """Take our ends of them. Nothing is signed: nobody else has them."""
        session = self.session
        session.key, session.pid, session.session = b"", os.getpid(), secrets.token_hex(16)
        session.message_count = 0
        shell, iopub = (HarnessWire(end, loop) for end in ends)
        self._shell_channel = self._control_channel = Channel(shell, self.session)
        self._iopub_channel = Channel(iopub, self.session)
        self.allow_stdin = False

    def stop_channels(self) -> None:
        """Close them."""
        self.shell_channel.stop()
        self.iopub_channel.stop()
