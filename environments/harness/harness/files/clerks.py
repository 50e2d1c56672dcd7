"""The harness's side of file operations: a child each, which the user cannot reach."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from dataclasses import dataclass

from harness.files.marks import Marks
from harness.files.operations import Operation
from harness.system.privileges import await_clerk, fork_clerk

MAX_NOTE = 64 << 10  # bytes that a child may write of what it did: two paths


@dataclass
class _Clerk:
    pid: int
    notes: int  # descriptor
    text: bytes = b""


class Clerks:
    """Those that are at work. For the thread of the channels alone."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        # Of a file that is being written. Nobody else has that name, and nobody collects it.
        self.hidden = f".notebox-{secrets.token_hex(8)}-"
        self._clerks: list[_Clerk] = []

    def open(self) -> socket.socket:
        """Start one; return the connection to it. Raises OSError if none can be started."""
        ours, theirs = socket.socketpair()
        notes, note = os.pipe()
        operation = Operation(theirs, note, self.hidden)
        try:
            pid = fork_clerk(operation.run, (theirs.fileno(), note))
        except OSError:
            ours.close()
            os.close(notes)
            raise
        finally:
            theirs.close()
            os.close(note)
        os.set_blocking(notes, False)
        self._clerks.append(_Clerk(pid, notes))
        return ours

    def turned(self) -> None:
        """Take in what they have done."""
        for clerk in list(self._clerks):
            with contextlib.suppress(BlockingIOError):
                part = os.read(clerk.notes, MAX_NOTE)
                clerk.text += part
                if clerk.text.endswith(b"\n"):
                    note = json.loads(clerk.text)
                    self._marks.note(note["from"], note["path"], tuple(note["mark"]))
                    clerk.text = b""
                if not part:
                    os.close(clerk.notes)
                    self._clerks.remove(clerk)
                    await_clerk(clerk.pid)  # now, as its descriptors are closed
