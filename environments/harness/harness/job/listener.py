"""What ends a run from outside its code: the clock, the service, the output cap."""

from __future__ import annotations

import os
import select
import threading
import time
import traceback
from collections.abc import Callable

from harness.kernel.process import Kernel
from harness.stream import frames
from harness.stream.channels import Channels
from harness.system.display import Display
from harness.system.grace import LOOK_SECONDS, Grace
from harness.system.privileges import KILL_SECONDS, kill_user

GRACE_SECONDS = 1.0  # from the interrupt of a run whose time is over to its end
MOST_SECONDS = 2.0  # for that on a busy machine; the service waits four


class Watchdog(threading.Thread):
    """Watches one run, on a thread of its own, until finish is called.

    reason says why the run was ended: "timeout", "cancelled" or "output_limit";
    "" where nobody did. ended is called when the kernel's process is gone.
    """

    def __init__(
        self,
        reader: frames.Reader,
        kernel: Kernel,
        display: Display,
        seconds: float,
        ended: Callable[[], None],
        *,
        network: Channels | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.reason = ""
        self.kernel_ended = False
        self._reader, self._kernel, self._display = reader, kernel, display
        self._ended, self._network = ended, network
        self._deadline: float | None = time.monotonic() + seconds
        self._kill_at: float | None = None
        self._grace: Grace | None = None  # since the interrupt
        self._lock = threading.Lock()
        self._finished = False
        self._woken, self._wake = os.pipe()
        kernel.watch(self._kernel_has_ended)

    def stop(self, reason: str, *, interrupt: bool = False) -> None:
        """End the run for this reason, if wanted by an interrupt first."""
        interrupt = interrupt and self._kernel.choice.interrupts
        with self._lock:
            if self.reason or self._finished:
                return
            self.reason = reason
            self._deadline, self._kill_at = None, time.monotonic()
            if interrupt:
                self._grace = Grace(GRACE_SECONDS, MOST_SECONDS)
        if interrupt:
            self._kernel.interrupt()
        os.write(self._wake, b"k")

    def finish(self) -> None:
        """Stop watching: the run's last cell has ended."""
        with self._lock:
            self._finished = True
        os.write(self._wake, b"f")
        self.join()

    def run(self) -> None:
        try:
            self._watch()
        except BaseException:  # noqa: BLE001 - whatever it is
            # Without its clock a run must not go on.
            traceback.print_exc()
            kill_user(KILL_SECONDS)
            os._exit(1)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._reader.fd, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        if (screen := self._display.fileno()) >= 0:
            poll.register(screen, select.POLLIN)
        heard = time.monotonic()
        while True:
            due = [t for t in (self._deadline, self._kill_at, heard + frames.IDLE_SECONDS) if t]
            ready = poll.poll(max(0.0, min(due) - time.monotonic()) * 1000 + 1)
            now = time.monotonic()
            for fd, _ in ready:
                if fd == self._woken:
                    os.read(fd, 64)
                elif fd == screen:
                    poll.unregister(screen)
                    # Not here: code can stop the new process before it is another
                    # program, and with it whoever waits for that.
                    threading.Thread(target=self._display.start, daemon=True).start()
                else:
                    self._hear()
                    heard = now
            if self._finished:
                return
            if now > heard + frames.IDLE_SECONDS:
                self._alone()
            if self._deadline and now >= self._deadline:
                self.stop("timeout", interrupt=True)
            if self._kill_at and now >= self._kill_at:
                if self._grace and not self._grace.over():
                    self._kill_at = now + LOOK_SECONDS
                else:
                    self._kill_at = None
                    kill_user(KILL_SECONDS)

    def _hear(self) -> None:
        try:
            kind, payload = self._reader.read()
        except (frames.StreamClosed, frames.ProtocolError, OSError):
            self._alone()
        if kind == frames.CANCEL:
            self.stop("cancelled")
        elif kind == frames.CHANNEL and self._network:
            self._network.receive(payload)

    def _alone(self) -> None:
        """Nobody waits for this run any more: the sandbox ends with it."""
        kill_user(KILL_SECONDS)
        os._exit(0)

    def _kernel_has_ended(self) -> None:
        self.kernel_ended = True
        self._ended()
