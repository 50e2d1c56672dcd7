"""Waits for what the service sends before code runs."""

from __future__ import annotations

import os
import select

from harness.stream import frames
from harness.system import cgroup

WAIT_CPU_NS = 2_000_000_000  # that a sandbox may use while it waits for a job


def await_frame(reader: frames.Reader, expected: bytes, idle: int = 0) -> bytes:
    """Return the payload of the next frame but pings and such, which must be of this kind."""
    return next_frame(reader, (expected,), idle)[1]


def next_frame(
    reader: frames.Reader, expected: tuple[bytes, ...], idle: int = 0
) -> tuple[bytes, bytes]:
    """Return the next frame but pings and such, which must be of one of these kinds.

    idle is the kernel's process that waits for it. Raises RuntimeError if that ends
    meanwhile, as nobody else would know, or does something: a package that it has
    imported may have started to work, at nobody's cost.
    """
    begun = cgroup.cpu_ns()
    while True:
        if idle:
            await_input(reader.fd, idle)
        kind, payload = reader.read()
        if kind == frames.PING and idle and cgroup.cpu_ns() - begun > WAIT_CPU_NS:
            raise RuntimeError("the processor was used while there was nothing to do")
        if kind in expected:
            return kind, payload
        if kind not in (frames.PING, frames.HURRY):
            raise frames.ProtocolError(f"{kind!r} instead of {expected!r}")


def await_input(fd: int, pid: int) -> None:
    """Return when there is something to read. Raises what reading does if nothing comes."""
    process = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(process, select.POLLIN)
        ready = poll.poll(frames.IDLE_SECONDS * 1000)
        if (process, select.POLLIN) in ready:
            raise RuntimeError("the kernel ended while it waited")
        if not ready:  # or reading would wait once more
            raise frames.StreamClosed
    finally:
        os.close(process)


def await_notebook(reader: frames.Reader, size: int) -> str:
    data = bytearray()
    while len(data) < size:
        kind, payload = reader.read()
        if kind == frames.NOTEBOOK_IN:
            data += payload
        elif kind != frames.PING:
            raise frames.ProtocolError(f"{kind!r} before the notebook's end")
    return data.decode("utf-8")
