"""What reaches a service, and what does not reach the one after it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
from wire import frame

from harness.stream import frames
from harness.stream.attachment import Attachments

NONCE = b"n" * 32
PATIENCE = 30.0  # seconds until a busy host is taken for a failure


class Pipe:
    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.attachments = Attachments(self.writing)

    def read(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            parts += os.read(self.reading, size - len(parts))
        return parts


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    os.close(pipe.reading)
    os.close(pipe.writing)


RESUMED = frame(frames.RESUMED, {"a": 1})


def test_one_after_the_other(pipe: Pipe) -> None:
    first = pipe.attachments.current
    first.write(frames.KEPT)
    pipe.attachments.lose(NONCE)
    between = pipe.attachments.current
    for writer in (first, between):
        writer.write(frames.DONE)
        assert writer.over
    assert pipe.attachments.resume({"a": 1})
    first.write(frames.DONE)
    pipe.attachments.current.write(frames.RESTARTED)
    want = frame(frames.KEPT) + NONCE + RESUMED + frame(frames.RESTARTED)
    assert pipe.read(len(want)) == want


def test_only_the_latest_is_answered(pipe: Pipe) -> None:
    pipe.attachments.lose(b"m" * 32)
    pipe.attachments.lose(NONCE)
    assert pipe.attachments.resume({"a": 1})
    assert not pipe.attachments.resume({"a": 2}), "nobody waits"
    pipe.attachments.current.write(frames.DONE)
    want = NONCE + RESUMED + frame(frames.DONE)
    assert pipe.read(len(want)) == want


def test_frame_that_has_begun_goes_out_whole(pipe: Pipe) -> None:
    first, large = pipe.attachments.current, b"x" * (1 << 20)
    threads = [
        threading.Thread(target=first.write, args=(frames.EVENT, large), daemon=True),
        threading.Thread(target=first.write, args=(frames.SKIPPED,), daemon=True),
    ]
    threads[0].start()
    begun = pipe.read(10)
    threads[1].start()
    deadline = time.monotonic() + PATIENCE
    while not first._turn._waiting and time.monotonic() < deadline:
        time.sleep(0.001)
    pipe.attachments.lose(NONCE)
    threads.append(threading.Thread(target=pipe.attachments.resume, args=({"a": 1},), daemon=True))
    threads[2].start()
    want = frame(frames.EVENT, large) + NONCE + RESUMED
    assert begun + pipe.read(len(want) - 10) == want, "and what waited for its turn does not"
    for thread in threads:
        thread.join(PATIENCE)
