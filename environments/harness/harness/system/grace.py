"""How long to wait for a process that was asked to end, on a machine that may be busy."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable

from harness.system import cgroup

LOOK_SECONDS = 0.05  # between two looks at what a grace has left


def can_run() -> bool:
    """Report whether a thread of the sandbox, but the caller's, runs or waits for the machine."""
    mine = str(threading.get_native_id())
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                if thread == mine:
                    continue
                with open(f"/proc/{pid}/task/{thread}/stat", "rb") as f:
                    # The name of the program, in brackets, may hold anything. D waits for the disk,
                    # or for a child of vfork.
                    if f.read().rpartition(b")")[2].split()[0] in (
                        b"R",
                        b"D",
                    ):
                        return True
    return False


class Grace:
    """A time to end in, in which waiting for a processor or the disk does not count.

    While something in the sandbox runs, or waits for one of these, the sandbox's own CPU time
    counts: on a busy machine that is less than the time on the wall. While all is still, as
    when code sleeps, the wall counts. most is the bound on the wall, in seconds, whatever was got.
    """

    def __init__(
        self,
        seconds: float,
        most: float,
        *,
        wall: Callable[[], float] = time.monotonic,
        cpu_ns: Callable[[], int] = cgroup.cpu_ns,
        can_run: Callable[[], bool] = can_run,
    ) -> None:
        self._left = seconds
        self._wall, self._cpu_ns, self._can_run = wall, cpu_ns, can_run
        self._seen, self._used = wall(), cpu_ns()
        self._end = self._seen + most

    def over(self) -> bool:
        """Report whether the time is used up. Ask again every LOOK_SECONDS."""
        now, used = self._wall(), self._cpu_ns()
        passed = now - self._seen
        if used and self._can_run():  # a host that tells no CPU time says 0
            passed = min(passed, (used - self._used) / 1e9)
        self._left -= passed
        self._seen, self._used = now, used
        return self._left <= 0 or now >= self._end

    def wait(self, ended: threading.Event) -> None:
        """Return when ended is set, or the time is over."""
        while not ended.wait(LOOK_SECONDS) and not self.over():
            pass
