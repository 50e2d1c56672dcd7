"""Files that code has written where nobody gets them: below /tmp, and home is there, too.

They are named and never read. What programs keep for themselves is left out by its name, what
the harness makes by its owner, and what was there before a job by its time.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator

from harness.files.collector import DATA_FOLDER, TICK_NS, printable
from harness.stream import frames
from harness.system.places import HOME, TMP

HARNESS = 0  # uid
MAX_LOOKED = 2_000  # entries in all: bounds the time of the walk
MAX_DEPTH = 8  # folders in folders
MAX_NAMED = 20  # the rest is counted
SAVE_BELOW = "save it below /mnt/data"  # the service looks for these words

# Hidden files are settings and caches; a server has a log and a pid. The others are of: R, Go
# and its kernel, the kernels of bash and of Deno, Python, multiprocessing, joblib, matplotlib.
_PRIVATE = re.compile(
    r"\.|(?:Rtmp|go-build|gonb_|bash-kernel-|kernel-|ipykernel_|pymp-|joblib_memmapping|matplotlib-)"
    r"|(?:go|__pycache__|node_modules)$|.*\.(?:py[co]|log|pid)$"
)
# What else is in a folder that nobody wants by its single files: a checkout, a virtual
# environment, a browser's profile. And installed packages, which have *.dist-info. In /tmp or
# home itself they hide nothing: those hold much else.
_MARKERS = frozenset((".git", "pyvenv.cfg", "Local State", "DevToolsActivePort"))


def _marks(name: str) -> bool:
    return name in _MARKERS or name.endswith(".dist-info")


class Elsewhere:
    """A walk. It holds against processes that are alive: no link is followed."""

    def __init__(self, since: int) -> None:
        """Look for what was written since then, in nanoseconds of the clock."""
        self.shut = False  # there is a folder that this process may not look into
        self._since = since - TICK_NS  # the clock of file times is behind by as much
        self._left = MAX_LOOKED

    def files(self) -> Iterator[str]:
        """Yield paths, in the order of the names in each folder."""
        with contextlib.suppress(OSError):
            yield from self._folder(os.open(TMP, DATA_FOLDER), TMP, 0)

    def _folder(self, fd: int, path: str, depth: int) -> Iterator[str]:
        try:
            found = []
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        break
                    if depth and path != HOME and _marks(entry.name):
                        return
                    if not _PRIVATE.match(entry.name):
                        with contextlib.suppress(OSError):
                            found.append((entry.name, entry.stat(follow_symlinks=False)))
            for name, st in sorted(found):
                if st.st_uid == HARNESS:
                    continue
                full = f"{path}/{name}"
                if stat.S_ISREG(st.st_mode):
                    # What is empty or a program is no result.
                    if st.st_size and not st.st_mode & 0o111 and st.st_ctime_ns >= self._since:
                        yield full
                elif stat.S_ISDIR(st.st_mode) and depth < MAX_DEPTH:
                    try:
                        below = os.open(name, DATA_FOLDER, dir_fd=fd)
                    except OSError:
                        self.shut = True
                    else:
                        yield from self._folder(below, full, depth + 1)
        finally:
            os.close(fd)


def nothing_new(since: int) -> bool:
    """Report whether nothing was written since then.

    False also means that it cannot tell: a Collector has the user's rights, and looks
    properly.
    """
    walk = Elsewhere(since)
    return not any(walk.files()) and not walk.shut


def report(writer: frames.Writer, since: int) -> None:
    """Name what was written since then, for the list of what was skipped."""
    paths = list(Elsewhere(since).files())
    for path in paths[:MAX_NAMED]:
        writer.write_json(frames.SKIPPED, {"path": printable(path), "reason": SAVE_BELOW})
    if more := paths[MAX_NAMED:]:
        told = {"path": TMP, "reason": f"{len(more)} more files: {SAVE_BELOW}"}
        writer.write_json(frames.SKIPPED, told)
