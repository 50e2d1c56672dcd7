"""File operations in a folder that others change meanwhile."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.files import folder
from harness.files.marks import Marks
from harness.files.operations import Operation

HIDDEN = ".notebox-abc-"


class Answer:
    def __init__(self, data: bytes) -> None:
        line, _, self.rest = data.partition(b"\n")
        self.reply = json.loads(line)
        self.code = self.reply["code"]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.rest.splitlines()]


class Service:
    """Asks for operations as the service does; signals and timers are not the tests' own."""

    def __init__(self) -> None:
        self.reading, self.note = os.pipe()
        os.set_blocking(self.reading, False)

    def ask(
        self, op: str, path: str, content: bytes = b"", reset: bool = False, **more: Any
    ) -> Answer:
        ours, theirs = socket.socketpair()
        operation = Operation(theirs, self.note, HIDDEN)
        done = threading.Thread(target=self._run, args=(operation, theirs), daemon=True)
        done.start()
        ours.sendall(json.dumps({"op": op, "path": path, **more}).encode() + b"\n" + content)
        if reset:
            ours.close()
            done.join(30)
            return Answer(b'{"code": "reset"}\n')
        ours.shutdown(socket.SHUT_WR)
        data = b""
        while part := ours.recv(1 << 16):
            data += part
        ours.close()
        done.join(30)
        return Answer(data)

    def _run(self, operation: Operation, theirs: socket.socket) -> None:
        try:
            operation.answer()
        except OSError:
            pass  # the service is gone
        finally:
            theirs.close()

    def notes(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in os.read(self.reading, 1 << 16).splitlines()]
        except BlockingIOError:
            return []


@pytest.fixture
def service(data: Path) -> Iterator[Service]:
    service = Service()
    yield service
    os.close(service.reading)
    os.close(service.note)


def test_write_and_read(service: Service, data: Path) -> None:
    content = os.urandom(1 << 20)
    answer = service.ask("write", "sub/deep/a b.txt", content)
    assert answer.code == ""
    st = os.stat(data / "sub/deep/a b.txt")
    assert answer.reply["entry"] == {
        "path": "sub/deep/a b.txt",
        "kind": "file",
        "size": len(content),
        "modified_ns": st.st_mtime_ns,
    }
    note = {"from": "", "path": "sub/deep/a b.txt", "mark": [st.st_ino, st.st_ctime_ns]}
    assert service.notes() == [note]
    assert service.ask("read", "sub/deep/a b.txt").rest == content
    assert service.ask("write", "sub/deep/a b.txt", b"").code == ""
    assert service.ask("read", "sub/deep/a b.txt").rest == b""
    assert os.listdir(data / "sub/deep") == ["a b.txt"], "nothing else is left"


def test_write_that_is_called_off(service: Service, data: Path) -> None:
    (data / "a").write_text("old")
    service.ask("write", "a", b"new", reset=True)
    assert os.listdir(data) == ["a"]
    assert (data / "a").read_text() == "old"
    assert service.notes() == []


@pytest.mark.parametrize("op", ["read", "write", "delete", "list", "move"])
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../a", "a/../b", "a//b", "./a", "a/", "a\0b", "/", ".", "x" * 5000]
)
def test_paths_that_are_none(op: str, path: str, service: Service) -> None:
    assert service.ask(op, path, to="b").code == folder.REFUSED


def test_no_link_is_followed(service: Service, data: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    os.symlink(outside, data / "link")
    os.symlink(outside / "secret", data / "file")
    os.mkfifo(data / "fifo")
    for path in ("link/secret", "file", "link", "fifo"):
        assert service.ask("read", path).code == folder.NOT_PLAIN, path
    assert service.ask("write", "link/new", b"x").code == folder.NOT_PLAIN
    assert service.ask("list", "link").code == folder.NOT_PLAIN
    assert service.ask("delete", "link/secret").code == folder.NOT_PLAIN
    (data / "a").write_text("a")
    assert service.ask("move", "a", to="link/a").code == folder.NOT_PLAIN
    assert service.ask("write", "file", b"replaced").code == ""
    assert service.ask("delete", "link").code == "", "the link itself"
    assert (outside / "secret").read_text() == "secret"
    assert os.listdir(outside) == ["secret"]


def test_folder_that_is_swapped_for_a_link(service: Service, data: Path, tmp_path: Path) -> None:
    outside, stop = tmp_path / "outside", threading.Event()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    os.mkdir(data / "real")
    (data / "real" / "secret").write_text("own")

    def swap() -> None:
        os.symlink(outside, data / "link")
        made = 0
        while not stop.is_set():
            for name in ("real", "link"):
                try:
                    os.rename(data / name, data / "d")
                except OSError:  # a write has made the folder
                    made += 1
                    os.rename(data / "d", data / f"made-{made}")
                    continue
                os.rename(data / "d", data / name)

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    for _ in range(100):
        assert service.ask("read", "d/secret").rest in (b"", b"own")
        service.ask("write", "d/planted", b"x")
        service.ask("delete", "d/secret2")
        service.ask("move", "d/secret", to="d/moved")
        service.ask("move", "d/moved", to="d/secret")
    stop.set()
    thread.join(30)
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_list(service: Service, data: Path) -> None:
    for path in ("b/c/d", "a", f"{HIDDEN}0"):
        (data / path).parent.mkdir(parents=True, exist_ok=True)
        (data / path).write_text("x")
    with open(os.fsencode(data) + b"/\xff", "w"):
        pass
    os.symlink("a", data / "l")

    def listed(path: str, **more: Any) -> list[tuple[str, str]]:
        return [(e["path"], e["kind"]) for e in service.ask("list", path, **more).lines()]

    top = [("a", "file"), ("b", "directory"), ("l", "symlink"), ("\\xff", "other")]
    assert listed("") == top
    below = [("b/c", "directory"), ("b/c/d", "file")]
    assert listed("", recursive=True) == [*top[:2], *below, *top[2:]]
    assert listed("b") == below[:1]
    cut = service.ask("list", "", recursive=True, max=3)
    assert (cut.reply["entries"], cut.reply["more"], len(cut.lines())) == (3, True, 3)
    assert service.ask("list", "a").code == folder.NOT_PLAIN
    assert service.ask("list", "none").code == folder.NOT_FOUND


def test_delete(service: Service, data: Path) -> None:
    (data / "a/b/c").mkdir(parents=True)
    (data / "a/b/f").write_text("x")
    assert service.ask("delete", "a").code == ""
    assert os.listdir(data) == []
    assert service.ask("delete", "a").code == folder.NOT_FOUND
    assert service.ask("delete", "").code == folder.REFUSED


def test_move(service: Service, data: Path) -> None:
    for name in ("a", "b"):
        (data / name).write_text(name)
    assert service.ask("move", "a", to="b").code == folder.EXISTS
    assert service.ask("move", "a", to="new/c").code == ""
    assert (data / "new/c").read_text() == "a"
    assert service.ask("move", "new/c", to="b", overwrite=True).reply["entry"]["size"] == 1
    assert (data / "b").read_text() == "a"
    assert [note["from"] for note in service.notes()] == ["a", "new/c"]
    assert service.ask("move", "new", to="new/below").code == folder.REFUSED
    assert service.ask("move", "none", to="x").code == folder.NOT_FOUND


@pytest.mark.parametrize(
    "request_", [b"[]\n", b"{}\n", b"{\n", b"", b'{"op": "list"}\n', b"x" * 99999]
)
def test_requests_that_are_none(request_: bytes, service: Service) -> None:
    ours, theirs = socket.socketpair()
    thread = threading.Thread(
        target=service._run, args=(Operation(theirs, service.note, HIDDEN), theirs), daemon=True
    )
    thread.start()
    ours.sendall(request_)
    ours.shutdown(socket.SHUT_WR)
    data = b""
    while part := ours.recv(1 << 16):
        data += part
    thread.join(30)
    assert json.loads(data)["code"] == folder.REFUSED


def test_marks(data: Path) -> None:
    marks = Marks()

    def note(path: str, origin: str = "") -> None:
        st = os.stat(data / path)
        marks.note(origin, path, (st.st_ino, st.st_ctime_ns))

    assert marks.nothing_new()
    (data / "sub").mkdir()
    assert marks.nothing_new(), "a folder is no file"
    (data / "sub/a").write_text("x")
    assert not marks.nothing_new()
    note("sub/a")
    assert marks.nothing_new()
    os.rename(data / "sub", data / "other")
    assert not marks.nothing_new()
    note("other", origin="sub")
    assert marks.nothing_new(), "it was moved with its folder"
    before = marks.copy()
    (data / "b").write_text("x")
    note("b")
    marks.replace(before)
    assert marks.nothing_new(), "what was written meanwhile is known"
    os.symlink("b", data / "l")
    assert not marks.nothing_new()


def test_list_of_a_path_that_nobody_could_ask_for(service: Service, data: Path) -> None:
    names = ["d" * 255] * 20
    fd = os.open(data, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    os.mkdir(os.fsencode(data) + b"/" + b"\xff" * 255)
    answer = service.ask("list", "", recursive=True)
    assert answer.code == ""
    paths = [line["path"] for line in answer.lines()]
    assert "/".join(names[:16]) in paths
    assert max(map(len, paths)) <= folder.MAX_PATH
    assert service.ask("delete", names[0]).code == ""


def test_content_that_cannot_be_read(
    service: Service, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "a").write_bytes(b"x" * 1000)
    read = os.read

    def fail(fd: int, size: int) -> bytes:
        if os.fstat(fd).st_size == 1000:
            raise OSError(errno.EIO, "a bad disk")
        return read(fd, size)

    monkeypatch.setattr(os, "read", fail)
    answer = service.ask("read", "a")
    assert (answer.code, answer.rest) == ("", b""), "no words where content is awaited"
