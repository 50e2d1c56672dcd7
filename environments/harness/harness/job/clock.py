"""The clock of one job: what ends it from outside its code, and what that leaves alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from harness.system.grace import LOOK_SECONDS, Grace
from harness.system.privileges import KILL_SECONDS, kill_user

GRACE_SECONDS = 1.0  # from the interrupt to the end of what does not heed it
MOST_SECONDS = 2.0  # for that on a busy machine; the service waits four
SESSION_MOST_SECONDS = 10.0  # for that in a session, whose state would be lost


class Target(Protocol):
    """What runs: the kernel, or a command."""

    @property
    def interrupts(self) -> bool: ...  # else there is nothing to wait for before its end

    def interrupt(self) -> None: ...

    def kill(self) -> None: ...


class Clock:
    """One job's clock. The thread of a Listener drives it.

    reason says why the job was ended: "timeout", "cancelled", "output_limit" or "killed"; ""
    if nobody ended it. A session's job is interrupted before it is ended, and so is a run
    whose time is over, or that somebody cancels who waits for what it has to say. Any other
    cancelled run, and one with too much output, is killed at once.
    """

    def __init__(
        self,
        target: Target,
        seconds: float,
        changed: Callable[[], None],
        *,
        in_session: bool = False,
    ) -> None:
        self.reason = ""
        self._gently = False  # it is interrupted first
        self.kernel_ended = False
        self.restarted = False  # every process of the user's was killed
        self.abort: Callable[[], None] = lambda: None  # ends the wait for a kernel that is no more
        self.target, self._changed, self._in_session = target, changed, in_session
        self._seconds = seconds
        # Start counts anew. Until then it counts from now, so that the listener's wait is never
        # longer than the job's.
        self._due: float | None = time.monotonic() + seconds
        self._grace: Grace | None = None  # since the interrupt
        self._running, self._finished = False, False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to count the time."""
        with self._lock:
            self._running = True
            if self.reason:
                self._wind_up()
            else:
                self._due = time.monotonic() + self._seconds
        if self.reason:
            self._changed()

    def finish(self) -> None:
        """Stop: nothing is ended after this."""
        with self._lock:
            self._finished, self._due = True, None

    def stop(self, reason: str, *, gently: bool = False) -> None:
        """End the job for this reason; gently, it is interrupted first."""
        with self._lock:
            if self.reason or self._finished:
                return
            self.reason, self._gently = reason, gently
            if self._running:
                self._wind_up()
        self._changed()

    def _wind_up(self) -> None:
        self._due = time.monotonic()
        if not (self._in_session or self._gently or self.reason == "timeout"):
            return
        if self.target.interrupts:
            most = SESSION_MOST_SECONDS if self._in_session else MOST_SECONDS
            self._grace = Grace(GRACE_SECONDS, most)
        self.target.interrupt()

    def interrupt(self) -> None:
        """Interrupt what runs, and let the job go on if it does."""
        with self._lock:
            if self._running and not self._finished:
                self.target.interrupt()

    def restart(self) -> None:
        """End every process of the user, if the job still runs."""
        with self._lock:
            if self._finished:
                return
            self.reason, self._due = self.reason or "killed", None
            self.restarted = True
            kill_user(KILL_SECONDS)

    def lost_kernel(self) -> None:
        """Take in that the kernel has ended."""
        self.kernel_ended = True
        self.abort()

    def due(self) -> float | None:
        """Return when there is something to do, on the monotonic clock."""
        return self._due

    def act(self) -> None:
        """Do what is due."""
        with self._lock:
            late = self._due is not None and time.monotonic() >= self._due
            if not late:
                return
            if not self._running:
                self._due = time.monotonic() + self._seconds
                return
            if self.reason:
                if self._grace and not self._grace.over():
                    self._due = time.monotonic() + LOOK_SECONDS
                    return
                self._due = None
                self.target.kill()
                return
        self.stop("timeout")
