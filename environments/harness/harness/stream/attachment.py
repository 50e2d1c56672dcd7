"""Who is at the other end of a session's stream: one service, and after a restart another.

What is meant for one that is gone never goes out any more.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from harness.stream.frames import HEADER, RESUMED, VERSION, Turn, Writer


class Attachment(Writer):
    """A Writer to one service, which writes nothing once that is gone."""

    def __init__(self, fd: int, turn: Turn) -> None:
        super().__init__(fd)
        self._turn = turn
        self.over = False

    def write(self, kind: bytes, payload: bytes = b"") -> None:
        view = memoryview(HEADER.pack(VERSION, kind[0], len(payload)) + payload)
        with self._turn:
            if self.over:
                return
            while view:  # a frame that has begun goes out whole
                view = view[os.write(self.fd, view) :]


class Attachments:
    """All of them, one after the other."""

    def __init__(self, fd: int) -> None:
        self._fd, self._turn = fd, Turn()
        self._lock = threading.Lock()
        self._nonce: bytes | None = None  # that the latest one waits for
        self.current = Attachment(fd, self._turn)

    def lose(self, nonce: bytes) -> None:
        """Write nothing more until resume, as another one has come. Never waits."""
        with self._lock:
            self._nonce = nonce
            self.current.over = True

    def resume(self, report: dict[str, Any]) -> bool:
        """Answer the latest one, who is current from then on; report whether it waited for that."""
        with self._turn:
            with self._lock:
                nonce, self._nonce = self._nonce, None
                if nonce is None:
                    return False
                # Now: an answer may come before this returns.
                self.current = Attachment(self._fd, self._turn)
            payload = json.dumps(report).encode("ascii")
            view = memoryview(nonce + HEADER.pack(VERSION, RESUMED[0], len(payload)) + payload)
            while view:
                view = view[os.write(self._fd, view) :]
            return True
