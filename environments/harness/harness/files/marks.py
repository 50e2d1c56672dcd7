"""What is known of the files of a session: those that no job has to return again."""

from __future__ import annotations

import os
import stat
import threading

from harness.files.collector import DATA_FOLDER, MAX_ENTRIES, Mark
from harness.system.places import DATA

MAX_TEXT = 4 << 20  # characters of paths that are remembered: names are the user's to choose
QUICK = 500  # entries that are looked at without a child


class Marks:
    """Marks of what is no folder, by paths relative to /mnt/data; for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: dict[str, Mark] = {}
        self._since: list[tuple[str, str, Mark]] | None = None  # that a replace has yet to have

    def copy(self) -> dict[str, Mark]:
        """Return them as they are; what is noted from now on goes into the next replace, too."""
        with self._lock:
            self._since = []
            return dict(self._marks)

    def get(self, path: str) -> Mark | None:
        with self._lock:
            return self._marks.get(path)

    def replace(self, marks: dict[str, Mark]) -> None:
        """Forget all but these, and what was noted since copy."""
        with self._lock:
            since, self._since = self._since or [], None
            self._marks, left = {}, MAX_TEXT
            for path, mark in marks.items():
                left -= len(path)
                if left < 0:
                    break
                self._marks[path] = mark
            for change in since:
                self._note(*change)

    def note(self, origin: str, path: str, mark: Mark) -> None:
        """Take in that a file operation has written path, or moved it there from origin."""
        with self._lock:
            if self._since is not None and len(self._since) < MAX_ENTRIES:
                self._since.append((origin, path, mark))
            self._note(origin, path, mark)

    def _note(self, origin: str, path: str, mark: Mark) -> None:
        if origin:
            below = origin + "/"
            for old in [p for p in self._marks if p.startswith(below)]:
                self._marks[path + old[len(origin) :]] = self._marks.pop(old)
            self._marks.pop(origin, None)
        if len(self._marks) < MAX_ENTRIES:
            self._marks[path] = mark

    def nothing_new(self) -> bool:
        """Report whether /mnt/data holds what is known alone.

        False also means that it cannot tell: a Collector has the user's rights, and looks
        properly. Nothing is read or followed, so that the user's processes may be alive.
        """
        with self._lock:
            known = self._marks
            try:
                fd = os.open(DATA, DATA_FOLDER)
                try:
                    return _known(fd, "", known, [QUICK])
                finally:
                    os.close(fd)
            except OSError:
                return False


def _known(folder: int, path: str, known: dict[str, Mark], left: list[int]) -> bool:
    with os.scandir(folder) as entries:
        for entry in entries:
            left[0] -= 1
            st = entry.stat(follow_symlinks=False)
            shown = path + entry.name
            if left[0] < 0:
                return False
            if not stat.S_ISDIR(st.st_mode):
                if known.get(shown) != (st.st_ino, st.st_ctime_ns):
                    return False
                continue
            fd = os.open(entry.name, DATA_FOLDER, dir_fd=folder)
            try:
                if not _known(fd, shown + "/", known, left):
                    return False
            finally:
                os.close(fd)
    return True
