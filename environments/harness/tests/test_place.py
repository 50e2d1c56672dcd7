"""Input files: off the stream, into /mnt/data."""

from __future__ import annotations

import errno
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from wire import frame, stream

from harness import single
from harness.files import collector, inputs
from harness.job.job import Job
from harness.job.prepare import BadPackagesError
from harness.stream import frames

GO, PING = frame(frames.GO), frame(frames.PING)
AFTER = frame(frames.CANCEL)  # stands on the stream behind everything that place takes


def incoming(path: str, *parts: bytes) -> bytes:
    data = b"".join(frame(frames.INPUT_DATA, part) for part in parts)
    return frame(frames.INPUT, {"path": path}) + data


def place(data: bytes) -> None:
    """Place what data says, and check that no more and no less was read."""
    gc.disable()  # what other tests have left open is not closed meanwhile
    try:
        before = len(os.listdir("/proc/self/fd"))
        with stream(data + AFTER) as (reader, _):
            try:
                inputs.place(reader)
            finally:
                assert reader.read() == (frames.CANCEL, b"")
        assert len(os.listdir("/proc/self/fd")) == before, "a descriptor is left open"
    finally:
        gc.enable()


def tree(folder: Path) -> dict[str, bytes]:
    found = (p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


@dataclass(frozen=True)
class Placed:
    desc: str
    sent: bytes
    files: dict[str, bytes] = field(default_factory=dict)


BIG = os.urandom(1 << 20)
LONGEST = "ü" * 127 + "a"  # 255 bytes

PLACED = [
    Placed("no file", GO),
    Placed("an empty file", incoming("a") + GO, {"a": b""}),
    Placed("a file in parts", incoming("a", b"one ", b"", b"two") + GO, {"a": b"one two"}),
    Placed(
        "several files",
        incoming("b", b"1") + incoming("a") + incoming("c", b"3") + GO,
        {"a": b"", "b": b"1", "c": b"3"},
    ),
    Placed(
        "folders, some of them shared",
        incoming("x/y/z.csv", b"z") + incoming("x/w.csv", b"w") + GO,
        {"x/y/z.csv": b"z", "x/w.csv": b"w"},
    ),
    Placed("many frames", incoming("a", *[BIG[:1000]] * 500) + GO, {"a": BIG[:1000] * 500}),
    Placed("large frames", incoming("a", BIG, BIG) + GO, {"a": BIG + BIG}),
    Placed(
        "pings anywhere",
        PING + incoming("a", b"1") + PING + frame(frames.INPUT_DATA, b"2") + PING + GO,
        {"a": b"12"},
    ),
    Placed("every byte", incoming("a", bytes(range(256))) + GO, {"a": bytes(range(256))}),
    *(
        Placed(f"the name {name!r}", incoming(name, b"1") + GO, {name: b"1"})
        for name in ("-rf", 'a "quoted"\nname', "\u202etxt.exe", " ", "...", "a\\b", LONGEST)
    ),
]


@pytest.mark.parametrize("case", PLACED, ids=lambda case: case.desc)
def test_place(case: Placed, data: Path) -> None:
    place(case.sent)
    assert tree(data) == case.files


@dataclass(frozen=True)
class Refused:
    desc: str
    sent: bytes
    errno: int
    files: dict[str, bytes] = field(default_factory=dict)  # what is there after it


REFUSED = [
    Refused(
        "a name that is taken",
        incoming("old", b"new") + incoming("later", b"1") + GO,
        errno.EEXIST,
        {"old": b"old"},
    ),
    Refused(
        "one name twice",
        incoming("a", b"1") + incoming("a", b"2") + GO,
        errno.EEXIST,
        {"old": b"old", "a": b"1"},
    ),
    Refused(
        "below a file",
        incoming("old/new", b"1") + GO,
        errno.EEXIST,
        {"old": b"old"},
    ),
    Refused(
        "further below a file",
        incoming("old/deep/new", b"1") + GO,
        errno.ENOTDIR,
        {"old": b"old"},
    ),
    Refused("a folder's name", incoming("folder", b"1") + GO, errno.EEXIST, {"old": b"old"}),
    Refused("through a link", incoming("link", b"1") + GO, errno.EEXIST, {"old": b"old"}),
    Refused(
        "a name that is too long",
        incoming("a" * 256, b"1" * 1000) + GO,
        errno.ENAMETOOLONG,
        {"old": b"old"},
    ),
    Refused("data of no file", frame(frames.INPUT_DATA, b"1") + GO, errno.EBADF, {"old": b"old"}),
    Refused(
        "of two errors the first",
        incoming("a" * 256) + incoming("old") + incoming("ok", b"1") + GO,
        errno.ENAMETOOLONG,
        {"old": b"old"},
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.desc)
def test_what_cannot_be_placed(case: Refused, data: Path, tmp_path: Path) -> None:
    (data / "old").write_bytes(b"old")
    (data / "folder").mkdir()
    (data / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is looked at
        place(case.sent)
    assert raised.value.errno == case.errno
    assert tree(data) == case.files
    assert not (tmp_path / "outside").exists()


def test_full_disk(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room, write = [5000], os.write

    def limited(fd: int, content: bytes) -> int:
        if not os.readlink(f"/proc/self/fd/{fd}").startswith(str(data)):
            return write(fd, content)
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(fd, bytes(content[: room[0]]))
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", limited)
    with pytest.raises(OSError, match="No space left"):
        place(incoming("a", *[b"x" * 1999] * 50) + incoming("b", BIG) + incoming("c") + GO)
    assert tree(data) == {"a": b"x" * 5000}


def test_writes_in_small_pieces(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, content: write(fd, bytes(content[:7])))
    place(incoming("a", bytes(range(256))) + GO)
    assert tree(data) == {"a": bytes(range(256))}


def test_service_that_goes_away(data: Path) -> None:
    with stream(incoming("a", b"1")) as (reader, _), pytest.raises(frames.StreamClosed):
        inputs.place(reader)


def _rewrite(file: Path) -> None:
    content, st = file.read_bytes(), file.stat()
    file.write_bytes(content)
    os.utime(file, ns=(st.st_atime_ns, st.st_mtime_ns))


def _replace(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    other.rename(file)


def _renew(file: Path) -> None:
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)


CHANGES: list[tuple[str, Callable[[Path], Any], bool]] = [
    ("nothing", lambda file: None, False),
    ("reading", lambda file: file.read_bytes(), False),
    ("appending", lambda file: file.write_bytes(file.read_bytes() + b"!"), True),
    ("cutting to nothing", lambda file: os.truncate(file, 0), True),
    ("the same content again, and its time set back", _rewrite, True),
    ("a copy in its place", _replace, True),
    ("removing and making it again", _renew, True),
]


@pytest.mark.parametrize(("desc", "change", "differs"), CHANGES, ids=[c[0] for c in CHANGES])
def test_marks(desc: str, change: Callable[[Path], Any], differs: bool, data: Path) -> None:
    file = data / "folder" / "a"
    place(incoming("folder/a", b"content") + GO)
    before = collector.marks(["folder/a"])
    time.sleep(0.02)  # more than the clock's tick, on hosts whose file times have no finer
    change(file)
    assert (collector.marks(["folder/a"]) != before) is differs


def test_marks_of_a_link_are_its_own(data: Path) -> None:
    (data / "a").write_bytes(b"")
    (data / "link").symlink_to("a")
    marks = collector.marks(["a", "link"])
    assert marks["a"] != marks["link"]


def test_marks_of_what_is_not_there(data: Path) -> None:
    with pytest.raises(FileNotFoundError):
        collector.marks(["a"])


@pytest.mark.parametrize(("packages", "error"), [(True, BadPackagesError), (False, RuntimeError)])
def test_a_place_that_is_taken(
    packages: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single, "run_as_user", lambda *_: 1)
    job = Job(1, ["a"], {}, True, 1.0, 1, 1, 1)
    with pytest.raises(error):
        single.place(frames.Reader(0), job, packages)
