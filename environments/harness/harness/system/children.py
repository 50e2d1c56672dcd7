"""The ends of children, for a process that waits for other things too."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


def woken_by_children() -> tuple[int, int]:
    """Return a descriptor that can be read once a child has ended, and its other end."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken, wake


def ended(woken: int) -> Iterator[tuple[int, int]]:
    """Yield the process and the status of each child that has ended."""
    with contextlib.suppress(BlockingIOError):
        os.read(woken, 4096)
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            yield child
