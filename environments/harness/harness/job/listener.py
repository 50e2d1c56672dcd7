"""Hears what the service sends while code may run, and keeps the time of a job."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import traceback

from harness.job.clock import Clock
from harness.stream import frames
from harness.stream.channels import Channels
from harness.system.display import Display
from harness.system.privileges import KILL_SECONDS, kill_user

GENTLY = b"i"  # the payload of a frame that cancels: interrupt what runs first


class Listener(threading.Thread):
    """Listens on a thread of its own, up to the end of the stream, which is the sandbox's.

    clock is that of the job that runs. The display's server is started from here, too.
    """

    clock: Clock | None = None
    _gone: tuple[type[Exception], ...] = (OSError,)  # of reading: the service is no more

    def __init__(
        self,
        fd: int,
        display: Display,
        channels: Channels | None = None,
        *,
        silence: float | None = None,
    ) -> None:
        """Listen at fd. After silence, in seconds without a byte, the service is gone."""
        super().__init__(daemon=True)
        self._fd, self._display, self._channels = fd, display, channels
        self._silence, self._heard = silence, time.monotonic()
        self._pieces = frames.Pieces()
        self._showing = False  # the display's server is being started
        self._starter: threading.Thread | None = None  # which does that, or did it last
        self._looks = True  # at the display
        self._lock = threading.Lock()  # of both
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def rouse(self) -> None:
        """Have it look at its clock again; from any thread."""
        with contextlib.suppress(BlockingIOError):  # it is awake anyway
            os.write(self._wake, b"r")

    def leave_display(self) -> threading.Thread | None:
        """Start no server of the display from now on; return the thread that starts one, or has.

        That thread ends once every process of the user was killed, as one of them may have
        stopped the server. The server may be younger than that, and is killed after the thread.
        """
        with self._lock:
            self._looks = False
            return self._starter

    def run(self) -> None:
        try:
            while True:
                self._turn()
        except (frames.StreamClosed, frames.ProtocolError):
            end(0)
        except BaseException:  # noqa: BLE001 - whatever it is
            # Without its clock a job must not go on.
            traceback.print_exc()
            end(1)

    def _turn(self) -> None:
        clock = self.clock
        screen = self._display.fileno() if self._looks and not self._showing else -1
        wanted = [self._fd, self._woken, *([screen] if screen >= 0 else [])]
        ready, _, _ = select.select(wanted, [], [], self._left(clock))
        if clock:
            clock.act()
        if self._woken in ready:
            os.read(self._woken, 4096)
        if screen in ready:
            self._connected()
        if self._fd in ready:
            self._heard = time.monotonic()
            self._hear(self._read())
        elif self._silence and time.monotonic() > self._heard + self._silence:
            raise frames.StreamClosed

    def _left(self, clock: Clock | None) -> float | None:
        """Return for how many seconds there is nothing to do; None is for ever."""
        silent = self._heard + self._silence if self._silence else None
        due = [at for at in (silent, clock.due() if clock else None) if at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _read(self) -> bytes:
        with contextlib.suppress(*self._gone):
            if data := os.read(self._fd, frames.CHUNK):
                return data
        raise frames.StreamClosed

    def _connected(self) -> None:
        with self._lock:
            if not self._looks:
                return
            self._showing = True
            # Not here: code can stop the new process before it is another program, and
            # with it whoever waits for that.
            self._starter = threading.Thread(target=self._show, daemon=True)
            self._starter.start()

    def _show(self) -> None:
        try:
            self._display.start()
        finally:
            self._showing = False
            self.rouse()

    def _hear(self, data: bytes) -> None:
        for kind, payload in self._pieces.take(data):
            self._frame(kind, payload)

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind == frames.CHANNEL and self._channels:
            self._channels.receive(payload)
        elif kind == frames.CANCEL and (clock := self.clock):
            clock.stop("cancelled", gently=payload == GENTLY)


def end(code: int) -> None:
    """End every process of the user, and the sandbox."""
    kill_user(KILL_SECONDS)
    os._exit(code)
