"""The frames of the sandbox protocol, on this side of the stream.

A frame is a version byte, a kind byte, a big-endian uint32 length and that many
bytes of payload. The Go side (runner/internal/frame) says what each kind means.
"""

from __future__ import annotations

import collections
import json
import os
import select
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

VERSION = 1
HEADER = struct.Struct(">BBI")
CHUNK = 256 << 10  # bytes of bulk data in one frame: few system calls, little memory
MAX_PAYLOAD = 4 << 20  # bytes; the service sends nothing larger
IDLE_SECONDS = 30.0  # without a byte: the service pings every 10 s, so it is gone

# From the service.
WARM, HURRY, JOB = b"W", b"H", b"J"
NOTEBOOK_IN, INPUT, INPUT_DATA, GO = b"N", b"I", b"B", b"G"
PING, CANCEL = b"P", b"C"
# From the sandbox.
READY, EVENT, OUTCOME, NOTEBOOK_OUT = b"R", b"E", b"O", b"n"
FILE, FILE_DATA, FILE_END, SKIPPED, DONE, FAILED = b"F", b"D", b"Z", b"K", b"X", b"L"
CHANNEL = b"Y"  # both ways: see channels.py
# Of a session: see session.py.
SESSION, INTERRUPT, RESTART = b"S", b"T", b"A"
KEPT, RESTARTED, RESUMED = b"s", b"a", b"r"
TOKEN_SIZE = 32  # bytes of a session's token, and of a nonce


class StreamClosed(Exception):
    """The service is gone."""


class ProtocolError(Exception):
    """The service sent what this version does not know."""


def _unpack(header: bytes | bytearray) -> tuple[bytes, int]:
    """Return the kind of a frame and the length of its payload."""
    version, kind, length = HEADER.unpack_from(header)
    if version != VERSION:
        raise ProtocolError(f"version {version}, not {VERSION}")
    if length > MAX_PAYLOAD:
        raise ProtocolError(f"a frame of {length} bytes")
    return bytes((kind,)), length


def packed(kind: bytes, payload: bytes) -> bytes:
    """Return a frame."""
    return HEADER.pack(VERSION, kind[0], len(payload)) + payload


def write_all(fd: int, data: bytes) -> None:
    """Write data, waiting until it is taken."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Pieces:
    """Takes frames out of data that comes in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()  # of a frame that is not whole

    def take(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the kind and payload of each frame that data completes."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            kind, length = _unpack(self._buffer)
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield kind, payload

    def clear(self) -> None:
        """Forget what came of a frame that is not whole."""
        self._buffer.clear()


class Reader:
    """Reads frames from a descriptor, and never a byte beyond the frame asked for.

    All of them must come within seconds. If seconds is 0, each byte must come within
    IDLE_SECONDS.
    """

    def __init__(self, fd: int, seconds: float = 0.0) -> None:
        self.fd, self._end = fd, time.monotonic() + seconds if seconds else None
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self) -> tuple[bytes, bytes]:
        """Return the kind and payload of the next frame, waiting for it."""
        kind, length = _unpack(self._exactly(HEADER.size))
        return kind, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size > 0:
            left = self._end - time.monotonic() if self._end else IDLE_SECONDS
            if not self._poll.poll(max(0.0, left) * 1000):
                raise StreamClosed
            part = os.read(self.fd, min(size, CHUNK))
            if not part:
                raise StreamClosed
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Turn:
    """A lock that goes to who has waited longest.

    An ordinary one could be taken again and again by a thread that has much to send.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: collections.deque[threading.Lock] = collections.deque()

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()  # until it is handed over

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class Writer:
    """Writes frames to a descriptor, of several threads in the order in which they come.

    Writers to one descriptor share a turn. Nothing more is written by one that is over: nobody
    takes it any more.
    """

    def __init__(self, fd: int, turn: Turn | None = None) -> None:
        self.fd, self.over = fd, False
        self._turn = turn or Turn()

    def write(self, kind: bytes, payload: bytes = b"") -> None:
        """Write one frame, waiting until the service took it."""
        with self._turn:
            if not self.over:  # a frame that has begun goes out whole
                write_all(self.fd, packed(kind, payload))

    def write_json(self, kind: bytes, value: Any) -> None:
        """Write one frame of ASCII JSON, so that lone surrogates get through."""
        self.write(kind, json.dumps(value, separators=(",", ":")).encode("ascii"))

    def write_chunks(self, kind: bytes, data: bytes) -> None:
        """Write data as frames of at most CHUNK bytes."""
        view = memoryview(data)
        for start in range(0, len(view), CHUNK):
            self.write(kind, bytes(view[start : start + CHUNK]))
