"""The files that a job of a session left, on their way to the service.

A child that the user cannot reach walks /mnt/data and writes frames to a pipe. They go on
from here, where the stream is, one by one, and only as they should be: neither what the
child sends, nor when, can do anything to the stream.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from harness.files import elsewhere
from harness.files.collector import MAX_DEPTH, MAX_ENTRIES, MAX_SKIPPED, TICK_NS, Collector, Mark
from harness.files.folder import MAX_PATH
from harness.files.marks import Marks
from harness.stream import frames
from harness.system.privileges import KILL_SECONDS, await_clerk, fork_clerk, kill_clerk

SECONDS = 60.0  # for new files to leave
MARKS, WHOLE = b"M", b"."  # kinds of frames that go no further
BATCH = 500  # marks in one frame
MAX_REASON = 300  # characters
MOST_SKIPPED = MAX_SKIPPED + 1 + elsewhere.MAX_NAMED + 1  # reports, with those that count
MAX_SHOWN = (MAX_DEPTH + 1) * 256  # characters of a file's path, as deep as a Collector goes

_CUT = "its transfer was cut short"


class BrokenError(Exception):
    """What came is not what a collector sends."""


_BROKEN = (BrokenError, frames.ProtocolError, frames.StreamClosed)


class Latest(Collector):
    """A Collector of what is not known yet, which also says what there is."""

    since = 0  # of time.time_ns: when the job began
    hidden = "\0"  # how names begin that are there for a moment only

    def collect(self) -> None:
        self._marks: list[tuple[str, int, int]] = []
        # What is changed from now on is not of the same tick as what was before.
        time.sleep(TICK_NS / 1e9)
        super().collect()
        elsewhere.report(self.writer, self.since)
        self._tell()
        self.writer.write(WHOLE)

    def _listing(self, fd: int, path: str) -> Iterator[tuple[str, os.stat_result]]:
        for name, st in super()._listing(fd, path):
            if name.startswith(self.hidden):
                continue
            if not stat.S_ISDIR(st.st_mode):
                shown, mark = os.path.join(path, name), (st.st_ino, st.st_ctime_ns)
                # A change within the same tick of the file system's clock would not be seen.
                if not 0 <= time.time_ns() - st.st_ctime_ns < TICK_NS:
                    self._marks.append((shown, *mark))
                    if len(self._marks) >= BATCH:
                        self._tell()
                if self.untouched.get(shown) == mark:
                    continue
            yield name, st

    def _send(self, fd: int, shown: str, size: int) -> None:
        self._tell()
        super()._send(fd, shown, size)

    def _tell(self) -> None:
        self.writer.write_json(MARKS, self._marks)
        self._marks = []


class Relay:
    """Passes on what comes from a collector."""

    def __init__(
        self, fd: int, writer: frames.Writer, known: Marks, max_files: int, max_bytes: int
    ) -> None:
        self.marks: dict[str, Mark] = {}
        self._reader, self._writer, self._known = frames.Reader(fd, SECONDS), writer, known
        self._files, self._bytes, self._skipped = max_files, max_bytes, MOST_SKIPPED
        self._in_file = False
        self._dropped = False  # what is in the file does not go on

    def run(self) -> bool:
        """Return at the end; report whether the collector came to its own."""
        try:
            while not self._writer.over:
                kind, payload = self._reader.read()
                if kind == WHOLE and not self._in_file:
                    return True
                self._frame(kind, payload)
        except (*_BROKEN, ValueError, TypeError, KeyError, RecursionError):
            pass
        if self._in_file and not self._dropped:
            self._writer.write_json(frames.FILE_END, {"reason": _CUT})
        return False

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind == frames.FILE_DATA and self._in_file:
            self._data(payload)
            return
        value: Any = json.loads(payload)
        wanted: type[Any] = list if kind == MARKS else dict
        if not isinstance(value, wanted):
            raise BrokenError
        if kind == frames.FILE_END and self._in_file:
            self._in_file = False
            self._end(value)
        elif self._in_file:
            raise BrokenError
        elif kind == MARKS:
            self._mark(value)
        elif kind == frames.FILE:
            self._file(value["path"])
        elif kind == frames.SKIPPED:
            self._skip(value)
        else:
            raise BrokenError

    def _data(self, payload: bytes) -> None:
        self._bytes -= len(payload)
        if self._bytes < 0 or not payload:
            raise BrokenError
        if not self._dropped:
            self._writer.write(frames.FILE_DATA, payload)

    def _end(self, value: dict[str, Any]) -> None:
        if not self._dropped:
            reason = value.get("reason")
            end = {"reason": str(reason)[:MAX_REASON]} if reason else {}
            self._writer.write_json(frames.FILE_END, end)

    def _mark(self, value: list[Any]) -> None:
        for path, inode, ctime in value:
            if len(self.marks) >= MAX_ENTRIES:
                raise BrokenError
            self.marks[str(path)] = (int(inode), int(ctime))

    def _file(self, path: Any) -> None:
        self._files -= 1
        if not isinstance(path, str):
            raise BrokenError
        path.encode()  # UnicodeEncodeError is a ValueError
        parts = path.split("/")
        if self._files < 0 or len(path) > MAX_SHOWN or "\0" in path:
            raise BrokenError
        if any(part in ("", ".", "..") for part in parts):
            raise BrokenError
        # A file operation has written it since the collector began.
        self._dropped = self._known.get(path) == self.marks.get(path, ())
        self._in_file = True
        if not self._dropped:
            self._writer.write_json(frames.FILE, {"path": path})

    def _skip(self, value: dict[str, str]) -> None:
        self._skipped -= 1
        if self._skipped < 0:
            raise BrokenError
        path, reason = str(value["path"])[:MAX_PATH], str(value["reason"])[:MAX_REASON]
        self._writer.write_json(frames.SKIPPED, {"path": path, "reason": reason})


def collect(
    writer: frames.Writer, known: Marks, hidden: str, max_files: int, max_bytes: int, *, since: int
) -> bool:
    """Send what is new in /mnt/data and name what is elsewhere; report whether all was seen."""
    if known.nothing_new() and elsewhere.nothing_new(since):
        return True
    before = known.copy()
    reading, writing = os.pipe()
    try:
        collector = Latest(frames.Writer(writing), before, max_files, max_bytes)
        collector.since, collector.hidden = since, hidden
        try:
            pid = _fork(collector, writing)
        except BlockingIOError:
            return False
        finally:
            os.close(writing)
        relay = Relay(reading, writer, known, max_files, max_bytes)
        whole = relay.run()
    finally:
        os.close(reading)
    if not whole:
        kill_clerk(pid)
    await_clerk(pid)
    if not writer.over:  # else nobody has got them
        known.replace(relay.marks if whole else before | relay.marks)
    return whole


def _fork(collector: Latest, writing: int) -> int:
    """Start the child; the user's processes may leave no room for it for a while."""
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        try:
            return fork_clerk(collector.collect, (writing,))
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
