"""The archive of a layer, made of the folder that an installer has filled."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tarfile
import unicodedata
from collections.abc import Iterator

MAX_ENTRIES = 200_000  # of a layer; the largest sets of packages have a tenth of that
MAX_NAME_BYTES, MAX_DEPTH = 1024, 64  # of a path; as dependencies/archive.go has them
WHITEOUT = ".wh."  # begins a name that a layer of an image has for what it takes away
WHY_NOT = "it is no file, leads out of the layer, or has a name that is not taken"


class TooLarge(Exception):
    """What belongs to the set is more than a layer may have."""


def write_layer(folder: str, layer: str, max_bytes: int) -> None:
    """Make the archive of a folder, file by file instead of it, so that nothing is there twice.

    The same files give the same bytes. Raises TooLarge.
    """
    left = max_bytes
    with (
        full_is_too_large(max_bytes),
        no_rest(layer),
        tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for count, name in enumerate(_names(folder)):
            info = _entry(folder, name)
            if info is None:
                print(f"{_shown(name)} is left out: {WHY_NOT}")
                continue
            left -= tarfile.BLOCKSIZE + info.size
            if left < 0 or count >= MAX_ENTRIES:
                raise too_large(max_bytes)
            path = os.path.join(folder, name)
            if info.isreg():
                with open(path, "rb") as content:
                    tar.addfile(info, content)
                os.unlink(path)
            else:
                tar.addfile(info)


@contextlib.contextmanager
def no_rest(path: str) -> Iterator[None]:
    """Remove a file that was not finished."""
    try:
        yield
    except BaseException:
        os.unlink(path)
        raise


def too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the packages take more than {max_bytes >> 20} MiB, with all that they need")


@contextlib.contextmanager
def full_is_too_large(max_bytes: int) -> Iterator[None]:
    """Take a disk that is full for a set that is too large."""
    try:
        yield
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise too_large(max_bytes) from None
        raise


def _names(folder: str) -> list[str]:
    names = []
    for path, folders, files in os.walk(folder):
        names += [os.path.relpath(os.path.join(path, name), folder) for name in folders + files]
    # A folder before what is in it.
    return sorted(names, key=lambda name: name.split("/"))


def _entry(folder: str, name: str) -> tarfile.TarInfo | None:
    """Return one entry, without what would tell of this machine; None for what has no place."""
    path = os.path.join(folder, name)
    mode = os.lstat(path).st_mode
    if not _is_plain(name + "/" if stat.S_ISDIR(mode) else name):  # as tar writes it
        return None
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    if stat.S_ISDIR(mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISLNK(mode):
        target = _target(folder, name)
        if target is None or not _is_plain(target):
            return None
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, target
    elif stat.S_ISREG(mode):
        info.size = os.lstat(path).st_size
        if mode & stat.S_IXUSR:
            info.mode = 0o755
    else:
        return None
    return info


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _is_plain(path: str) -> bool:
    """Report whether the service takes such a path (plainPath in dependencies/archive.go)."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return False
    return (
        size <= MAX_NAME_BYTES
        and path.count("/") < MAX_DEPTH
        and not any(unicodedata.category(c) == "Cc" for c in path)
        and not any(part.startswith(WHITEOUT) for part in path.split("/"))
    )


def _target(folder: str, name: str) -> str | None:
    """Return where a link leads, None where that is not in the folder.

    An absolute one is taken as from the folder, which is the root for who made it. The
    result goes up first and then down.
    """
    path = os.path.join(folder, name)
    target, root = os.readlink(path), os.path.realpath(folder)
    if os.path.isabs(target):
        inside = target.removeprefix(folder).lstrip("/")
        target = os.path.relpath(os.path.join(folder, inside), os.path.dirname(path))
    end = os.path.realpath(os.path.join(os.path.dirname(path), target))
    lexical = os.path.normpath(os.path.join(os.path.dirname(name), target))
    if os.path.commonpath((root, end)) != root or lexical.split("/")[0] == "..":
        return None
    if os.path.realpath(os.path.join(folder, lexical)) != end:  # it goes up from another link
        lexical = os.path.relpath(end, root)
    return os.path.relpath(lexical, os.path.dirname(name) or ".")
