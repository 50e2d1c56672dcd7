"""Paths in /mnt/data, while the user's processes are alive and may change what they lead to.

Each component is opened relative to its folder, and no link is followed: whatever is swapped
meanwhile, no path leads out. All of this runs in a child with the user's rights.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Any

from harness.files.collector import DATA_FOLDER
from harness.system.places import DATA

MAX_PATH = 4096  # bytes, as Linux has it
MAX_PARTS = 128  # folders in folders
NOT_FOUND, EXISTS, NOT_PLAIN = "not_found", "exists", "not_plain"
NO_ROOM, REFUSED, BUSY = "no_room", "refused", "busy"

_CODES = {
    errno.ENOENT: (NOT_FOUND, "there is no such file"),
    errno.EEXIST: (EXISTS, "there is a file of that name"),
    errno.ENOTEMPTY: (EXISTS, "the folder is not empty"),
    errno.ENOTDIR: (NOT_PLAIN, "not a folder"),
    errno.EISDIR: (NOT_PLAIN, "a folder"),
    errno.ELOOP: (NOT_PLAIN, "a symbolic link"),
    errno.ENXIO: (NOT_PLAIN, "not a regular file"),
    errno.ENOSPC: (NO_ROOM, "there is no room left"),
    errno.EDQUOT: (NO_ROOM, "there is no room left"),
    errno.ENOMEM: (NO_ROOM, "there is no memory left"),
    errno.EACCES: (REFUSED, "no permission"),
    errno.EPERM: (REFUSED, "no permission"),
    errno.EINVAL: (REFUSED, "not possible"),
    errno.ENAMETOOLONG: (REFUSED, "the name is too long"),
}


class RefusedError(Exception):
    """What was asked for cannot be done, for a reason that the caller may know."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def explain(e: OSError) -> RefusedError:
    """Return what is said of an error of the file system."""
    code, message = _CODES.get(e.errno or 0, (BUSY, "it could not be done"))
    return RefusedError(code, message)


def split(path: object) -> list[str]:
    """Return the components of a path relative to /mnt/data; "" has none."""
    if not isinstance(path, str) or "\0" in path or len(path.encode()) > MAX_PATH:
        raise RefusedError(REFUSED, "not a path")
    if path == "":
        return []
    parts = path.split("/")
    if len(parts) > MAX_PARTS or any(part in ("", ".", "..") for part in parts):
        raise RefusedError(REFUSED, "not a path within /mnt/data")
    return parts


@contextlib.contextmanager
def opened(parts: list[str], make: bool = False) -> Iterator[int]:
    """Yield the descriptor of a folder; if make is set, make it and those around it."""
    fd = os.open(DATA, DATA_FOLDER)
    try:
        for part in parts:
            below = _step(fd, part, make)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _step(fd: int, part: str, make: bool) -> int:
    try:
        return os.open(part, DATA_FOLDER, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o755, dir_fd=fd)
    return os.open(part, DATA_FOLDER, dir_fd=fd)


@contextlib.contextmanager
def around(path: object, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the descriptor of the folder that path is in, and its name there."""
    parts = split(path)
    if not parts:
        raise RefusedError(REFUSED, "the folder itself")
    with opened(parts[:-1], make) as fd:
        yield fd, parts[-1]


def entry(path: str, st: os.stat_result) -> dict[str, Any]:
    """Return what is told of a file."""
    kind = "other"
    with contextlib.suppress(UnicodeEncodeError):
        path.encode()  # else nobody could ask for it
        if stat.S_ISREG(st.st_mode):
            kind = "file"
        elif stat.S_ISDIR(st.st_mode):
            kind = "directory"
        elif stat.S_ISLNK(st.st_mode):
            kind = "symlink"
    size = st.st_size if kind == "file" else 0
    return {"path": shown(path).decode(), "kind": kind, "size": size, "modified_ns": st.st_mtime_ns}


def shown(path: str) -> bytes:
    """Return a path as it is told: in UTF-8, even if the path itself is not."""
    return os.fsencode(path).decode("utf-8", "backslashreplace").encode()
