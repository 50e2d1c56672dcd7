"""A user who is alive while /mnt/data is walked: the folder changes under the walk.

The moment between listing and opening is hit by acting within os.open itself; that
between opening and reading within os.read.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_collect import collect, write
from wire import Recorder

from harness.files import collector
from harness.stream import frames


def when_opened(patch: pytest.MonkeyPatch, name: str, act: Callable[[], Any]) -> None:
    """Let act happen once, right before the entry of that name is opened."""
    real = os.open

    def opening(path: Any, *args: Any, **kwargs: Any) -> int:
        if path == name:
            patch.setattr(os, "open", real)
            act()
        return real(path, *args, **kwargs)

    patch.setattr(os, "open", opening)


def when_read(patch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Let act happen before each read."""
    real = os.read

    def reading(fd: int, size: int) -> bytes:
        act()
        return real(fd, size)

    patch.setattr(os, "read", reading)


def _link(path: Path) -> None:
    path.symlink_to("../outside" + ("/secret" if path.name == "file" else ""))


SWAPS: list[tuple[str, str, Callable[[Path], Any], str]] = [
    ("E2: a link", "folder", _link, "not a directory"),
    ("a file", "folder", lambda p: p.write_bytes(b"new"), "not a directory"),
    ("a FIFO", "folder", os.mkfifo, "not a directory"),
    ("nothing", "folder", lambda p: None, "no such file or directory"),
    ("E2: a link", "file", _link, "too many levels of symbolic links"),
    ("a link to itself", "file", lambda p: p.symlink_to(p), "too many levels of symbolic links"),
    ("a folder", "file", Path.mkdir, "not a regular file"),
    ("a FIFO that nobody writes to", "file", os.mkfifo, "not a regular file"),
    ("nothing", "file", lambda p: None, "no such file or directory"),
]


@pytest.mark.parametrize(
    ("desc", "name", "put", "reason"), SWAPS, ids=[f"{name} to {desc}" for desc, name, *_ in SWAPS]
)
def test_swapped_between_listing_and_opening(
    *,
    desc: str,
    name: str,
    put: Callable[[Path], Any],
    reason: str,
    data: Path,
    sent: Recorder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(data, {"folder/secret": b"mine", "file": b"mine", "z": b"last"})
    write(data.parent / "outside", {"secret": b"not yours"})

    def swap() -> None:
        (data / name).rename(data.parent / "away")
        put(data / name)

    when_opened(monkeypatch, name, swap)
    found, skipped = collect(sent)
    other = {"file": b"mine"} if name == "folder" else {"folder/secret": b"mine"}
    assert found == other | {"z": b"last"}
    assert skipped == [(name, reason)]
    assert b"not yours" not in b"".join(payload for _, payload in sent.frames)


def test_another_file_in_its_place_is_what_is_sent(
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(data, {"file": b"small"})
    when_opened(monkeypatch, "file", lambda: write(data, {"file": b"larger than the cap"}))
    assert collect(sent, max_bytes=10) == ({}, [("file", "more than 10 bytes in all files")])


def test_folder_above_is_moved_and_linked(
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is open already stays where it is, whatever its path leads to now."""
    write(data, {"a/b/secret": b"mine"})
    write(data.parent / "outside", {"b/secret": b"not yours"})

    def swap() -> None:
        (data / "a").rename(data / "moved")
        (data / "a").symlink_to("../outside")

    when_opened(monkeypatch, "secret", swap)
    assert collect(sent)[0] == {"a/b/secret": b"mine"}


def test_growing_file_is_cut_at_the_size_seen(
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2 * frames.CHUNK + 10
    write(data, {"a": b"x" * size, "b": b"after"})

    def grow() -> None:
        with (data / "a").open("ab") as f:
            f.write(b"y" * frames.CHUNK)

    when_read(monkeypatch, grow)
    assert collect(sent, max_bytes=size + 5) == ({"a": b"x" * size, "b": b"after"}, [])


def test_shrinking_file_ends(data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    write(data, {"a": b"x" * 100, "b": b"after"})
    when_read(monkeypatch, lambda: os.truncate(data / "a", 40))
    assert collect(sent) == ({"a": b"x" * 40, "b": b"after"}, [])


def test_file_that_cannot_be_read_to_its_end(
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(data, {"a": b"x" * (frames.CHUNK + 1), "b": b"after"})
    real, reads = os.read, iter([True, False])

    def failing(fd: int, size: int) -> bytes:
        if next(reads, True):
            return real(fd, size)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "read", failing)
    assert collect(sent) == ({"a": b"x" * frames.CHUNK, "b": b"after"}, [])
    assert sent.of(frames.FILE_END) == [{"reason": "input/output error"}, {}]


@pytest.mark.parametrize("name", ["folder", "file"])
def test_no_permission(  # E11
    name: str, data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(data, {"folder/a": b"1", "file": b"1", "z": b"last"})
    (data / name).chmod(0)

    def refuse() -> None:
        # As the host's kernel does to everybody but root, as whom the tests may run.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    when_opened(monkeypatch, name, refuse)
    found, skipped = collect(sent)
    assert name not in "".join(found)
    assert found["z"] == b"last"
    assert skipped == [(name, "permission denied")]
    (data / name).chmod(0o700)


class Entry:
    """An entry of a folder whose entries may not be looked at, or are gone again."""

    def __init__(self, name: str, error: int) -> None:
        self.name, self._error = name, error

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        assert not follow_symlinks
        raise OSError(self._error, os.strerror(self._error))


def list_entry(patch: pytest.MonkeyPatch, entry: Entry) -> None:
    @contextlib.contextmanager
    def listing(_: int) -> Iterator[list[Entry]]:
        yield [entry]

    patch.setattr(os, "scandir", listing)


def test_gone_before_it_was_looked_at(
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_entry(monkeypatch, Entry("a", errno.ENOENT))
    assert collect(sent) == ({}, [])


def test_folder_that_may_only_be_listed(
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_entry(monkeypatch, Entry("a", errno.EACCES))
    assert collect(sent) == ({}, [("a", "permission denied")])


def test_data_folder_itself_is_a_link(data: Path, sent: Recorder) -> None:
    data.rename(data.parent / "elsewhere")
    data.symlink_to("elsewhere")
    with pytest.raises(NotADirectoryError):
        collector.Collector(sent, {}, 1, 1).collect()
