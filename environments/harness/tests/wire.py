"""The service's end of the stream, as the tests need it."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

from harness.stream import frames


class Recorder(frames.Writer):
    """Keeps the frames instead of writing them."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.frames: list[tuple[bytes, bytes]] = []

    def write(self, kind: bytes, payload: bytes = b"") -> None:
        self.frames.append((kind, bytes(payload)))

    def of(self, kind: bytes) -> list[Any]:
        """Return the JSON payloads of one kind."""
        return [json.loads(payload) for k, payload in self.frames if k == kind]

    def files(self) -> dict[str, bytes]:
        """Return the files that were sent, having checked the order of the frames."""
        out: dict[str, bytes] = {}
        current: str | None = None
        for kind, payload in self.frames:
            if kind == frames.FILE:
                assert current is None, "a file in a file"
                current = json.loads(payload)["path"]
                assert current not in out, "a file comes twice"
                out[current] = b""
            elif kind == frames.FILE_DATA:
                assert current is not None, "data outside a file"
                assert 0 < len(payload) <= frames.CHUNK
                out[current] += payload
            elif kind == frames.FILE_END:
                assert current is not None, "an end outside a file"
                current = None
            else:
                assert kind == frames.SKIPPED
                assert current is None, "a report in a file"
        assert current is None, "a file without an end"
        return out


def frame(kind: bytes, payload: bytes | dict[str, Any] = b"") -> bytes:
    """Return one frame as the service makes it."""
    if isinstance(payload, dict):
        payload = json.dumps(payload).encode()
    return frames.HEADER.pack(frames.VERSION, kind[0], len(payload)) + payload


@contextlib.contextmanager
def stream(data: bytes = b"") -> Iterator[tuple[frames.Reader, int]]:
    """Yield a Reader of what the service has sent, and the service's descriptor.

    Data that fits into no pipe is fed in by a thread, and the service has closed.
    """
    reading, writing = os.pipe()
    feeder = None
    if data:
        feeder = threading.Thread(target=_feed, args=(writing, data), daemon=True)
        feeder.start()
    try:
        yield frames.Reader(reading), writing
    finally:
        os.close(reading)
        if feeder:
            feeder.join()
        else:
            with contextlib.suppress(OSError):
                os.close(writing)


def _feed(fd: int, data: bytes) -> None:
    view = memoryview(data)
    with contextlib.suppress(BrokenPipeError):
        while view:
            view = view[os.write(fd, view) :]
    os.close(fd)
