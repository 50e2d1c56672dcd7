"""New files: out of /mnt/data, onto the stream. Numbers as E1 are of adversarial.md."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import Recorder

from harness.files import collector
from harness.stream import frames

Skipped = list[tuple[str, str]]


def collect(
    sent: Recorder,
    inputs: dict[str, collector.Mark] | None = None,
    max_files: int = 1000,
    max_bytes: int = 1 << 30,
) -> tuple[dict[str, bytes], Skipped]:
    """Return the files that were sent, and what was skipped for which reason."""
    collector.Collector(sent, inputs or {}, max_files, max_bytes).collect()
    skipped = [
        (os.path.relpath(s["path"], collector.DATA), s["reason"]) for s in sent.of(frames.SKIPPED)
    ]
    return sent.files(), skipped


def write(folder: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


@dataclass(frozen=True)
class Case:
    desc: str
    make: Callable[[Path], object]
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=list)


def _socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("socket")
    os.chdir(here)


def _sparse(folder: Path) -> None:
    with (folder / "sparse").open("wb") as f:
        f.truncate(1 << 40)


LINK = "symbolic link"

CASES = [
    Case("nothing", lambda d: None),
    Case("an empty file", lambda d: write(d, {"a": b""}), {"a": b""}),
    Case("every byte", lambda d: write(d, {"a": bytes(range(256))}), {"a": bytes(range(256))}),
    Case("hidden", lambda d: write(d, {".a/.b": b"1"}), {".a/.b": b"1"}),
    Case("an empty folder", lambda d: (d / "a").mkdir()),
    Case(
        "folders",
        lambda d: write(d, {"x/y/z": b"1", "x/w": b"2", "a": b"3"}),
        {"a": b"3", "x/w": b"2", "x/y/z": b"1"},
    ),
    Case("E1: a link out", lambda d: (d / "a").symlink_to("/etc/passwd"), {}, [("a", LINK)]),
    Case("E1: a relative link out", lambda d: (d / "a").symlink_to("../b"), {}, [("a", LINK)]),
    Case("E1: a link to a folder", lambda d: (d / "a").symlink_to("/etc"), {}, [("a", LINK)]),
    Case("E1: a dangling link", lambda d: (d / "a").symlink_to("none"), {}, [("a", LINK)]),
    Case("E1: a link to itself", lambda d: (d / "a").symlink_to("a"), {}, [("a", LINK)]),
    Case("E1: a link upwards", lambda d: (d / "a").symlink_to("."), {}, [("a", LINK)]),
    Case(
        "E1: two links in a circle",
        lambda d: ((d / "a").symlink_to("b"), (d / "b").symlink_to("a")),
        {},
        [("a", LINK), ("b", LINK)],
    ),
    Case(
        "E1: a link to a file beside it",
        lambda d: (write(d, {"x/b": b"1"}), (d / "x" / "a").symlink_to("b")),
        {"x/b": b"1"},
        [("x/a", LINK)],
    ),
    Case("E5: a FIFO", lambda d: os.mkfifo(d / "a"), {}, [("a", "not a regular file")]),
    Case("E5: a socket", _socket, {}, [("socket", "not a regular file")]),
    Case(
        "E6: 1 TiB of nothing",
        _sparse,
        {},
        [("sparse", f"more than {1 << 30} bytes in all files")],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.desc)
def test_collect(case: Case, data: Path, sent: Recorder) -> None:
    case.make(data)
    start = time.monotonic()
    assert collect(sent) == (case.files, case.skipped)
    assert time.monotonic() - start < 1


NAMES = [
    ("a line break", b'a\nX-Evil: "1"'),
    ("quotes", b"a\"b'c`$(id)"),
    ("right-to-left marks", "\u202egpj.\u2066exe\u2069".encode()),
    ("an option", b"-rf"),
    ("spaces", b" a "),
    ("a backslash", b"..\\a"),
    ("nearly the parent", b"..."),
    ("control characters", b"\x01\x1b[31m\x7f\r"),
    ("255 bytes", ("ü" * 127 + "a").encode()),
    ("beyond the first plane", "😀".encode()),
]


@pytest.mark.parametrize("inside", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize(("desc", "name"), NAMES, ids=[desc for desc, _ in NAMES])
def test_odd_names_are_kept(  # E7
    desc: str, name: bytes, inside: bool, data: Path, sent: Recorder
) -> None:
    path = os.path.join(os.fsdecode(name), "a") if inside else os.fsdecode(name)
    write(data, {path: b"1"})
    assert collect(sent) == ({path: b"1"}, [])
    assert all(payload.isascii() and b"\n" not in payload for _, payload in sent.frames)


@pytest.mark.parametrize("inside", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize(
    ("desc", "name", "shown"),
    [
        ("no UTF-8 at all", b"\xff\xfe", r"\xff\xfe"),
        ("Latin 1", b"caf\xe9.csv", r"caf\xe9.csv"),
        ("a surrogate in UTF-8's manner", b"\xed\xa0\x80", r"\xed\xa0\x80"),
        ("an overlong slash", b"\xc0\xaf", r"\xc0\xaf"),
        ("255 bytes", b"\xff" * 255, r"\xff" * 255),
    ],
)
def test_names_that_are_not_utf8(  # E7
    *, desc: str, name: bytes, shown: str, inside: bool, data: Path, sent: Recorder
) -> None:
    write(data, {"folder/" + os.fsdecode(name) + ("/a" if inside else ""): b"1", "b": b"2"})
    assert collect(sent) == ({"b": b"2"}, [(f"folder/{shown}", "its name is not UTF-8")])


CHANGES: list[tuple[str, Callable[[Path], object], dict[str, bytes]]] = [
    ("E10: untouched", lambda d: None, {}),
    ("E10: read", lambda d: (d / "x/in").read_bytes(), {}),
    ("changed", lambda d: write(d, {"x/in": b"new"}), {"x/in": b"new"}),
    ("written again with the same content", lambda d: write(d, {"x/in": b"in"}), {"x/in": b"in"}),
    ("renamed", lambda d: (d / "x/in").rename(d / "b"), {"b": b"in"}),
    ("in a renamed folder", lambda d: (d / "x").rename(d / "y"), {"y/in": b"in"}),
    ("removed", lambda d: (d / "x/in").unlink(), {}),
    (
        "two inputs that changed places",
        lambda d: (
            ((d / "x/in").rename(d / "t"), (d / "in").rename(d / "x/in"))
            and (d / "t").rename(d / "in")
        ),
        {"in": b"in", "x/in": b"two"},
    ),
    ("a new one beside", lambda d: write(d, {"x/new": b"1"}), {"x/new": b"1"}),
]


@pytest.mark.parametrize(("desc", "change", "new"), CHANGES, ids=[desc for desc, _, _ in CHANGES])
def test_inputs(
    desc: str,
    change: Callable[[Path], object],
    new: dict[str, bytes],
    data: Path,
    sent: Recorder,
) -> None:
    write(data, {"x/in": b"in", "in": b"two"})
    marks = collector.marks(["x/in", "in"])
    time.sleep(0.02)  # see test_place
    change(data)
    assert collect(sent, marks) == (new, [])


ALL_FILES = "more than 10 bytes in all files"

CAPS = [
    ("as many as may be", {"a": 1, "b": 1, "c": 1}, ["a", "b", "c"], []),
    ("one too many", dict.fromkeys("dcba", 1), ["a", "b", "c"], [("d", "more than 3 files")]),
    ("as much as may be", {"a": 4, "b": 6, "c": 0}, ["a", "b", "c"], []),
    ("one byte too many", {"a": 4, "b": 7}, ["a"], [("b", ALL_FILES)]),
    ("one that is too large alone", {"a": 11}, [], [("a", ALL_FILES)]),
    ("smaller ones after it", {"a": 9, "b": 11, "c": 1}, ["a", "c"], [("b", ALL_FILES)]),
    ("what is too large is not counted", {"a": 11, "b": 1, "c": 1, "d": 1}, ["b", "c", "d"],
     [("a", ALL_FILES)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("desc", "sizes", "names", "skipped"), CAPS, ids=[desc for desc, *_ in CAPS]
)
def test_caps(
    *,
    desc: str,
    sizes: dict[str, int],
    names: list[str],
    skipped: Skipped,
    data: Path,
    sent: Recorder,
) -> None:
    write(data, {name: b"x" * size for name, size in sizes.items()})
    found, left = collect(sent, max_files=3, max_bytes=10)
    assert found == {name: b"x" * sizes[name] for name in names}
    assert left == skipped


@pytest.mark.parametrize("link", [os.link, None], ids=["E4: hard links", "E3: links"])
def test_links_to_one_big_file(
    link: Callable[[Path, Path], None] | None, data: Path, sent: Recorder
) -> None:
    write(data, {"00": b"x" * 100})
    for i in range(1, 21):
        (link or (lambda old, new: new.symlink_to(old)))(data / "00", data / f"{i:02}")
    found, skipped = collect(sent, max_bytes=1000)
    assert len(found) == (10 if link else 1), "logical bytes are counted"
    assert len(found) + len(skipped) == 21


def test_large_file_in_parts(data: Path, sent: Recorder) -> None:
    content = os.urandom(2 * frames.CHUNK + 1)
    write(data, {"a": content})
    assert collect(sent) == ({"a": content}, [])


def test_reports_have_a_cap(data: Path, sent: Recorder) -> None:
    for i in range(collector.MAX_SKIPPED + 3):
        (data / f"{i:03}").symlink_to("/")
    _, skipped = collect(sent)
    assert skipped[:-1] == [(f"{i:03}", LINK) for i in range(collector.MAX_SKIPPED)]
    assert skipped[-1] == (".", "3 more files were left behind")


@pytest.mark.parametrize(
    "depth", [collector.MAX_DEPTH, collector.MAX_DEPTH + 1, collector.MAX_DEPTH + 9]
)
def test_depth_has_a_cap(depth: int, data: Path, sent: Recorder) -> None:  # E9
    write(data, {"d/" * depth + "a": b"1", "b": b"2"})
    found, skipped = collect(sent)
    if depth <= collector.MAX_DEPTH:
        assert (len(found), skipped) == (2, [])
    else:
        assert list(found) == ["b"]
        stopped = "/".join("d" * (collector.MAX_DEPTH + 1))
        assert skipped == [(stopped, f"more than {collector.MAX_DEPTH} folders deep")]


def test_entries_have_a_cap(  # E9
    data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "MAX_ENTRIES", 10)
    write(data, {f"x/{i}": b"" for i in range(20)} | {f"y/{i}": b"" for i in range(20)})
    found, skipped = collect(sent)
    reason = "more than 10 files: the rest was not looked at"
    assert len(found) == 8, "two of the ten entries are the folders"
    assert skipped == [("x", reason), ("y", reason)]


def test_order_is_that_of_the_names(data: Path, sent: Recorder) -> None:
    names = ["b", "a", "c/z", "c/y", "B", "ü", "10", "9"]
    write(data, dict.fromkeys(names, b""))
    assert list(collect(sent)[0]) == ["10", "9", "B", "a", "b", "c/y", "c/z", "ü"]


def test_nothing_stays_open(data: Path, sent: Recorder) -> None:
    write(data, {"x/y/a": b"1", "x/b": b"2", "z/c": b"3" * 100})
    before = os.listdir("/proc/self/fd")
    collect(sent, max_files=2, max_bytes=50)
    assert os.listdir("/proc/self/fd") == before


def test_service_that_is_gone(data: Path, sent: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(kind: bytes, payload: bytes = b"") -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sent, "write", gone)
    write(data, {"x/a": b"1"})
    with pytest.raises(BrokenPipeError):
        collect(sent)


NAME = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1)
    .filter(lambda name: name not in (".", ".."))
    .filter(lambda name: len(name.encode()) < 64)
)
TREE = st.dictionaries(
    NAME,
    st.recursive(
        st.binary(max_size=99),
        lambda inner: st.dictionaries(NAME, inner, max_size=4),
        max_leaves=9,
    ),
    max_size=4,
)


def _grow(folder: str, content: dict[str, object], path: str = "") -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    for name, inner in content.items():
        if isinstance(inner, bytes):
            Path(folder, path, name).write_bytes(inner)
            out[os.path.join(path, name)] = inner
        else:
            Path(folder, path, name).mkdir()
            out |= _grow(folder, inner, os.path.join(path, name))  # type: ignore[arg-type]
    return out


@given(content=TREE)
def test_any_tree(content: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector, "DATA", folder)
        expected = _grow(folder, content)
        assert collect(Recorder()) == (expected, [])
