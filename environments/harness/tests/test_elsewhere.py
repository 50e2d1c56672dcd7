"""Files beside /mnt/data: named where a person would miss them, and else passed over."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from wire import Recorder

from harness.files import collector, elsewhere
from harness.stream import frames


@pytest.fixture
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that the harness takes for /tmp."""
    monkeypatch.setattr(elsewhere, "TMP", str(tmp_path))
    monkeypatch.setattr(elsewhere, "HOME", f"{tmp_path}/home")
    monkeypatch.setattr(elsewhere, "HARNESS", -1)  # whoever runs the tests is a user
    return tmp_path


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"1")


def named(tmp: Path, since: int) -> list[str]:
    sent = Recorder()
    elsewhere.report(sent, since)
    for told in sent.of(frames.SKIPPED):
        assert told["reason"].endswith("save it below /mnt/data")
    paths = [os.path.relpath(told["path"], tmp) for told in sent.of(frames.SKIPPED)]
    assert (paths == []) is elsewhere.nothing_new(since)
    return paths


@pytest.mark.parametrize(
    ("desc", "written", "told"),
    [
        ("nothing", [], []),
        ("a file", ["plot.png"], ["plot.png"]),
        ("in home", ["home/a.csv"], ["home/a.csv"]),
        ("in folders", ["x/y/z.txt", "x/a"], ["x/a", "x/y/z.txt"]),
        ("of tempfile.mkdtemp", ["tmpab_12cd3/chart.png"], ["tmpab_12cd3/chart.png"]),
        ("a cache, settings, a profile", [".a", "home/.cache/matplotlib/f", "home/.ipython/h"], []),
        ("compiled modules", ["m/__pycache__/a.pyc", "a.pyc", "a.pyo"], []),
        ("installed packages", ["p/six.py", "p/six-1.0.dist-info/METADATA", "p/sub/a.txt"], []),
        ("a virtual environment", ["v/pyvenv.cfg", "v/bin/python"], []),
        ("a checkout", ["r/.git/HEAD", "r/README.md"], []),
        ("a browser's profile", ["tmpb/Local State", "tmpb/Default/Cookies"], []),
        ("of R, of Go", ["RtmpAb1/file.png", "go/cache/a", "go-build12/b", "gonb_1/go.mod"], []),
        (
            "markers in home and /tmp",
            [".git/HEAD", "home/pyvenv.cfg", "home/a"],
            ["home/a", "home/pyvenv.cfg"],
        ),
        ("of a server", ["server.log", "home/server.pid"], []),
        ("only begins alike", ["golf.txt", "kernel.txt"], ["golf.txt", "kernel.txt"]),
        ("deep", ["a/a/a/a/a/a/a/a/b", "c/c/c/c/c/c/c/c/c/d"], ["a/a/a/a/a/a/a/a/b"]),
    ],
)
def test_named(desc: str, written: list[str], told: list[str], tmp: Path) -> None:
    since = time.time_ns()
    write(tmp, *written)
    assert named(tmp, since) == told


def test_before_the_job(tmp: Path) -> None:
    write(tmp, "before", "changed", "home/before")
    time.sleep(3 * collector.TICK_NS / 1e9)
    since = time.time_ns()
    write(tmp, "changed", "home/new")
    assert named(tmp, since) == ["changed", "home/new"]


def test_what_is_no_result(tmp: Path) -> None:
    since = time.time_ns()
    (tmp / "empty").touch()
    write(tmp, "program")
    (tmp / "program").chmod(0o755)
    (tmp / "link").symlink_to("/etc/passwd")
    (tmp / "folder").symlink_to("/etc")
    (tmp / "folder2").mkdir()
    os.mkfifo(tmp / "fifo")
    assert named(tmp, since) == []


def test_of_the_harness(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "HARNESS", os.getuid())
    write(tmp, "kernel.json", "harness/a")
    assert named(tmp, 0) == []


def test_many(tmp: Path) -> None:
    write(tmp, *(f"{i:04}" for i in range(elsewhere.MAX_LOOKED + 100)))
    sent = Recorder()
    elsewhere.report(sent, 0)
    told = sent.of(frames.SKIPPED)
    assert len(told) == elsewhere.MAX_NAMED + 1
    more = elsewhere.MAX_LOOKED - elsewhere.MAX_NAMED
    assert told[-1] == {
        "path": str(tmp),
        "reason": f"{more} more files: save it below /mnt/data",
    }


def test_name_that_is_not_utf8(tmp: Path) -> None:
    since = time.time_ns()
    with open(os.fsencode(tmp) + b"/\xff.txt", "wb") as f:
        f.write(b"1")
    assert named(tmp, since) == ["\\xff.txt"]


def test_folder_that_is_shut(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root has no right to look into it: a child with the user's rights does."""
    (tmp / "tmpabc").mkdir()

    def refuse(*args: object, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            raise PermissionError
        return opened(*args)  # type: ignore[arg-type]

    opened = os.open
    monkeypatch.setattr(os, "open", refuse)
    assert not elsewhere.nothing_new(time.time_ns())
