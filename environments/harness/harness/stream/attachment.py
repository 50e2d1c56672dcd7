"""Who is at the other end of a session's stream: one service, and after a restart another.

What is meant for one that is gone never goes out any more.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from harness.stream.frames import RESUMED, Turn, Writer, packed, write_all


class Attachments:
    """Writers to each of them, one after the other."""

    def __init__(self, fd: int) -> None:
        self._fd, self._turn = fd, Turn()
        self._lock = threading.Lock()
        self._nonce: bytes | None = None  # that the latest one waits for
        self.current = Writer(fd, self._turn)

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
                self.current = Writer(self._fd, self._turn)
            write_all(self._fd, nonce + packed(RESUMED, json.dumps(report).encode("ascii")))
            return True
