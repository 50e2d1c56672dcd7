"""What a collector's frames may do to the stream, and what not."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from wire import Recorder, frame

from harness.files import relay
from harness.files.collector import Mark
from harness.files.marks import Marks
from harness.files.relay import MARKS, WHOLE, Latest, Relay
from harness.stream import frames

FILE = frame(frames.FILE, {"path": "a"})
DATA, END = frame(frames.FILE_DATA, b"x" * 10), frame(frames.FILE_END, {})


def skipped(path: Any = "/mnt/data/a", reason: Any = "why") -> bytes:
    return frame(frames.SKIPPED, {"path": path, "reason": reason})


def relayed(sent: bytes, sink: Recorder, known: Marks | None = None) -> tuple[bool, Relay]:
    reading, writing = os.pipe()

    def feed() -> None:
        with os.fdopen(writing, "wb") as out:
            out.write(sent)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    passing = Relay(reading, sink, known or Marks(), 2, 25)
    whole = passing.run()
    thread.join(30)
    os.close(reading)
    return whole, passing


def test_files(sent: Recorder) -> None:
    both = FILE + DATA + DATA + END + frame(frames.FILE, {"path": "b/c"}) + END + skipped()
    whole, passing = relayed(frame(MARKS, b'[["a", 1, 2]]') + both + frame(WHOLE), sent)
    assert whole
    assert passing.marks == {"a": (1, 2)}
    assert sent.of(frames.SKIPPED) == [{"path": "/mnt/data/a", "reason": "why"}]
    sent.frames.pop()
    assert sent.files() == {"a": b"x" * 20, "b/c": b""}


@pytest.mark.parametrize(
    ("desc", "bad", "begun"),
    [
        ("ends early", b"", False),
        ("ends in a file", FILE + DATA, True),
        ("ends in a frame", FILE[:-1], False),
        ("another kind", frame(frames.OUTCOME, {}), False),
        ("another kind in a file", FILE + frame(frames.OUTCOME, {}), True),
        ("a file in a file", FILE + FILE, True),
        ("an end in a file", FILE + frame(WHOLE), True),
        ("data of no file", DATA, False),
        ("an end of no file", END, False),
        ("too many files", b"".join(frame(frames.FILE, {"path": n}) + END for n in "abc"), False),
        ("too many bytes", FILE + DATA * 3, True),
        ("no bytes", FILE + frame(frames.FILE_DATA), True),
        ("too many reports", skipped() * 200, False),
        ("another version", b"\2" + FILE[1:], False),
        ("a frame of 4 GiB", b"\1F\xff\xff\xff\xff", False),
        ("not JSON", frame(frames.FILE, b"{"), False),
        ("no path", frame(frames.FILE, {}), False),
        ("a path that is none", frame(frames.FILE, {"path": 1}), False),
        ("a path that leads out", frame(frames.FILE, {"path": "../a"}), False),
        ("an absolute path", frame(frames.FILE, {"path": "/a"}), False),
        ("a path that is not UTF-8", frame(frames.FILE, b'{"path": "\\udc80"}'), False),
        ("a path that is too long", frame(frames.FILE, {"path": "d/" * 10000 + "a"}), False),
        ("a path with a NUL", frame(frames.FILE, b'{"path": "a\\u0000"}'), False),
        ("marks that are none", frame(MARKS, b'[["a"]]'), False),
        ("a list for an object", frame(frames.SKIPPED, b"[]"), False),
        ("a list for an end", FILE + frame(frames.FILE_END, b"[]"), False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_as_it_should_be(desc: str, bad: bytes, begun: bool, sent: Recorder) -> None:
    whole, _ = relayed(bad, sent)
    assert not whole
    kinds = {kind for kind, _ in sent.frames}
    assert kinds <= {frames.FILE, frames.FILE_DATA, frames.FILE_END, frames.SKIPPED}
    sent.files()  # each has its end
    if begun:
        assert sent.of(frames.FILE_END)[-1]["reason"]


def test_path_as_deep_as_a_collector_goes(sent: Recorder) -> None:
    path = "/".join(["d" * 255] * 65)
    assert relayed(frame(frames.FILE, {"path": path}) + DATA + END + frame(WHOLE), sent)[0]
    assert sent.files() == {path: b"x" * 10}


def test_reports_are_cut(sent: Recorder) -> None:
    whole, _ = relayed(skipped("p" * 9999, "r" * 9999) + frame(WHOLE), sent)
    assert whole
    (report,) = sent.of(frames.SKIPPED)
    assert (len(report["path"]), len(report["reason"])) == (4096, 300)


def test_collector_that_is_stopped(sent: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "SECONDS", 0.2)
    reading, writing = os.pipe()
    os.write(writing, FILE + DATA)
    assert not Relay(reading, sent, Marks(), 2, 25).run()
    assert sent.files() == {"a": b"x" * 10}
    os.close(reading)
    os.close(writing)


def test_file_that_was_written_meanwhile(sent: Recorder) -> None:
    known = Marks()
    known.note("", "a", (1, 2))
    marks = frame(MARKS, json.dumps([["a", 1, 2]]).encode())
    assert relayed(marks + FILE + DATA + END + frame(WHOLE), sent, known)[0]
    assert sent.frames == []


def collected(sent: Recorder, known: dict[str, Mark]) -> dict[str, Mark]:
    """Return the marks that a collector tells of."""
    collector = Latest(Recorder(), known, 10, 1 << 20)
    collector.hidden = ".hidden-"
    collector.collect()
    assert isinstance(collector.writer, Recorder)
    assert collector.writer.frames.pop() == (WHOLE, b"")
    marks: dict[str, Mark] = {}
    for kind, payload in collector.writer.frames:
        if kind == MARKS:
            marks |= {path: (inode, ctime) for path, inode, ctime in json.loads(payload)}
        else:
            sent.write(kind, payload)
    return marks


def test_only_what_is_new(data: Path) -> None:
    (data / "sub").mkdir()
    (data / "sub/a").write_text("a")
    (data / "b").write_text("b")
    (data / ".hidden-1").write_text("half")
    os.symlink("b", data / "l")
    first = Recorder()
    known = collected(first, {})
    assert known.keys() == {"sub/a", "b", "l"}
    assert first.files() == {"sub/a": b"a", "b": b"b"}
    assert [report["reason"] for report in first.of(frames.SKIPPED)] == ["symbolic link"]
    again = Recorder()
    assert collected(again, known) == known
    assert again.frames == []
    (data / "b").write_text("c")
    (data / "sub/a").rename(data / "sub/moved")
    third = Recorder()
    assert collected(third, known).keys() == {"sub/moved", "b", "l"}
    assert third.files() == {"sub/moved": b"a", "b": b"c"}
