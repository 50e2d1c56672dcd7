"""What is new in /mnt/data, on its way to the service. A Collector has the user's rights."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.stream import frames
from harness.system.places import DATA

MAX_DEPTH = 64  # folders in folders; a run that makes more is out of hand
MAX_ENTRIES = 20_000  # looked at in all: bounds the time of the walk
MAX_SKIPPED = 100  # reported one by one; the rest is counted

TICK_NS = 10_000_000  # the coarsest clock of file times: 100 ticks a second

# How a folder is opened that anybody may have put in its place.
DATA_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK

Mark = tuple[int, int]  # inode and ctime, which no user can set back


def marks(paths: list[str]) -> dict[str, Mark]:
    """Return what identifies the present content of files in /mnt/data."""
    out = {}
    for path in paths:
        st = os.stat(os.path.join(DATA, path), follow_symlinks=False)
        out[path] = (st.st_ino, st.st_ctime_ns)
    # A change within the same tick of the file system's clock would not be seen.
    newest = max((ctime for _, ctime in out.values()), default=0)
    while 0 <= time.time_ns() - newest < TICK_NS:
        time.sleep(0.001)
    return out


def nothing_new(untouched: dict[str, Mark]) -> bool:
    """Report whether /mnt/data holds untouched inputs alone, without folders.

    Looks at one entry more than there may be. False also means that it cannot tell: a
    Collector has the user's rights, and looks properly.
    """
    left = len(untouched)
    try:
        with os.scandir(DATA) as entries:
            for entry in entries:
                st = entry.stat(follow_symlinks=False)
                if left == 0 or untouched.get(entry.name) != (st.st_ino, st.st_ctime_ns):
                    return False
                left -= 1
    except OSError:
        return False
    return True


@dataclass
class Collector:
    """Sends what a run left in /mnt/data, and says what it passes over and why.

    It holds against a user whose processes are still alive: each component is
    opened relative to its folder, without following links or waiting.
    """

    writer: frames.Writer
    untouched: dict[str, Mark]
    max_files: int
    max_bytes: int
    _entries: int = 0
    _skipped: int = 0
    _sent: int = 0
    _bytes: int = field(default=0)

    def collect(self) -> None:
        """Walk /mnt/data, in the order of the names."""
        fd = os.open(DATA, DATA_FOLDER)
        try:
            self._folder(fd, "", 0)
        finally:
            os.close(fd)
        if self._skipped > MAX_SKIPPED:
            self._report(DATA, f"{self._skipped - MAX_SKIPPED} more files were left behind")

    def _folder(self, fd: int, path: str, depth: int) -> None:
        for name, st in self._listing(fd, path):
            try:
                shown = os.path.join(path, name.encode("utf-8", "surrogateescape").decode())
            except UnicodeDecodeError:
                self._skip(os.path.join(path, printable(name)), "its name is not UTF-8")
                continue
            try:
                if stat.S_ISDIR(st.st_mode):
                    self._subfolder(fd, name, shown, depth)
                elif stat.S_ISLNK(st.st_mode):
                    self._skip(shown, "symbolic link")
                elif not stat.S_ISREG(st.st_mode):
                    self._skip(shown, "not a regular file")
                elif self.untouched.get(shown) != (st.st_ino, st.st_ctime_ns):
                    self._file(fd, name, shown)
            except OSError as e:
                self._skip(shown, _reason(e))

    def _listing(self, fd: int, path: str) -> Iterator[tuple[str, os.stat_result]]:
        found = []
        with os.scandir(fd) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MAX_ENTRIES:
                    self._skip(path, f"more than {MAX_ENTRIES} files: the rest was not looked at")
                    break
                try:
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue  # gone again: a living process of a session
                except OSError as e:
                    self._skip(os.path.join(path, printable(entry.name)), _reason(e))
        yield from sorted(found)

    def _subfolder(self, parent: int, name: str, shown: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self._skip(shown, f"more than {MAX_DEPTH} folders deep")
            return
        fd = os.open(name, DATA_FOLDER, dir_fd=parent)
        try:
            self._folder(fd, shown, depth + 1)
        finally:
            os.close(fd)

    def _file(self, parent: int, name: str, shown: str) -> None:
        if self._sent >= self.max_files:
            self._skip(shown, f"more than {self.max_files} files")
            return
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        try:
            st = os.fstat(fd)
            if not stat.S_ISREG(st.st_mode):
                self._skip(shown, "not a regular file")
            elif self._bytes + st.st_size > self.max_bytes:
                self._skip(shown, f"more than {self.max_bytes} bytes in all files")
            else:
                self._sent += 1
                self._send(fd, shown, st.st_size)
        finally:
            os.close(fd)

    def _send(self, fd: int, shown: str, size: int) -> None:
        self.writer.write_json(frames.FILE, {"path": shown})
        end = {}
        while size > 0:
            try:
                part = os.read(fd, min(size, frames.CHUNK))
            except OSError as e:
                end = {"reason": _reason(e)}
                break
            if not part:
                break
            self.writer.write(frames.FILE_DATA, part)
            size -= len(part)
            self._bytes += len(part)
        self.writer.write_json(frames.FILE_END, end)

    def _skip(self, shown: str, reason: str) -> None:
        self._skipped += 1
        if self._skipped <= MAX_SKIPPED:
            self._report(os.path.join(DATA, shown) if shown else DATA, reason)

    def _report(self, path: str, reason: str) -> None:
        self.writer.write_json(frames.SKIPPED, {"path": path, "reason": reason})


def _reason(e: OSError) -> str:
    return (e.strerror or "not readable").lower()


def printable(name: str) -> str:
    """Return a name as it can be told, even if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
