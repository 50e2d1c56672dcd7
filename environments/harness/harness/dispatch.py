"""Reads what the service sends to a session, at any time, on a thread of its own.

Jobs go to the main thread, one after another; all else is done here, without waiting.
"""

from __future__ import annotations

import asyncio
import collections
import json
from dataclasses import dataclass
from typing import Any

from jupyter_core.utils import ensure_event_loop

from harness.job.listener import Listener
from harness.stream import frames
from harness.stream.attachment import Attachments
from harness.stream.channels import Channels
from harness.stream.intake import ADOPTED, Intake
from harness.system.display import Display

MAX_WORK = 100  # that waits: the service sends one job at a time, and few restarts


@dataclass
class Work:
    """What is to be done: a JOB, a RESTART, or ADOPTED by another service."""

    kind: bytes
    writer: frames.Writer  # who wants it
    job: dict[str, Any]
    notebook: bytearray


class Inbox:
    """Work for the main thread, which made it."""

    def __init__(self) -> None:
        self._loop = ensure_event_loop()
        self._items: collections.deque[Work] = collections.deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, work: Work) -> bool:
        """Add to it, from any thread; report whether there was room."""
        if len(self._items) >= MAX_WORK:
            return False
        self._items.append(work)
        self._loop.call_soon_threadsafe(self._rouse)
        return True

    def _rouse(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def __len__(self) -> int:
        return len(self._items)

    async def get(self) -> Work:
        """Return the next one, waiting for it."""
        while not self._items:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._items.popleft()


class Dispatcher(Listener):
    """Listens for a session."""

    _channels: Channels
    _gone = ()  # an error of the stream ends the harness, which says so

    def __init__(
        self,
        fd: int,
        intake: Intake,
        attachments: Attachments,
        inbox: Inbox,
        *,
        channels: Channels,
        display: Display,
    ) -> None:
        super().__init__(fd, display, channels)
        self._intake, self._attachments, self._inbox = intake, attachments, inbox
        self._receiving: Work | None = None  # a job that is not whole

    def _hear(self, data: bytes) -> None:
        for kind, payload in self._intake.take(data):
            try:
                self._frame(kind, payload)
            except (frames.ProtocolError, ValueError, KeyError) as e:
                self._intake.give_up(f"{type(e).__name__}: {e}")
                return

    def _frame(self, kind: bytes, payload: bytes) -> None:
        clock = self.clock
        if kind in (frames.CHANNEL, frames.CANCEL):
            super()._frame(kind, payload)
        elif kind == frames.INTERRUPT:
            if clock:
                clock.interrupt()
        elif kind == frames.RESTART:
            if clock:
                clock.restart()
            self._put(self._work(frames.RESTART))
        elif kind == ADOPTED:
            self._adopted(payload)
        elif kind != frames.PING:
            self._part(kind, payload)

    def _adopted(self, nonce: bytes) -> None:
        self._receiving = None
        self._attachments.lose(nonce)
        self._channels.reset()
        if clock := self.clock:
            clock.stop("cancelled")
        self._put(self._work(ADOPTED))

    def _part(self, kind: bytes, payload: bytes) -> None:
        """Take in a part of a job."""
        work = self._receiving
        if kind == frames.JOB and work is None:
            self._receiving = self._work(frames.JOB, json.loads(payload))
        elif kind == frames.NOTEBOOK_IN and work is not None:
            work.notebook += payload
            if len(work.notebook) > work.job["notebook_bytes"]:
                raise frames.ProtocolError("more than the notebook")
        elif kind == frames.GO and work is not None:
            self._receiving = None
            self._put(work)
        else:
            raise frames.ProtocolError(f"{kind!r} in a session")

    def _work(self, kind: bytes, job: dict[str, Any] | None = None) -> Work:
        return Work(kind, self._attachments.current, job or {}, bytearray())

    def _put(self, work: Work) -> None:
        if not self._inbox.put(work):
            raise frames.ProtocolError("more work than can be wanted")
