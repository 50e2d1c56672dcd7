"""The virtual display, with no X server behind it: what would be started is noted."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.system import display
from harness.system.display import Display


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return where the display listens, which is not where the host's own would."""
    path = str(tmp_path / "x" / "X99")
    monkeypatch.setattr(display, "_SOCKET", path)
    monkeypatch.setattr(display, "as_user", contextlib.nullcontext)  # whose folder it is not
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: out.append(options))
    return out


def connect(address: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(address)
    return client


def test_starts_at_the_first_connection(address: str, started: list[dict[str, Any]]) -> None:
    screen = Display()
    poll = select.poll()
    poll.register(screen.fileno(), select.POLLIN)
    assert poll.poll(0) == [], "nothing to do until then"
    with connect(address):
        assert poll.poll(0) == [(screen.fileno(), select.POLLIN)]
        listening = screen.fileno()
        screen.start()
    screen.start()
    assert [options["pass_fds"] for options in started] == [(listening,)], "once"
    assert screen.fileno() == -1


def test_server_is_the_user_s(address: str, started: list[dict[str, Any]]) -> None:
    screen = Display()
    screen.start()
    assert started[0]["preexec_fn"] is display.become_user
    assert started[0]["env"] == {"PATH": os.environ["PATH"]}
    assert {started[0][name] for name in ("stdin", "stdout", "stderr")} == {subprocess.DEVNULL}


def test_acts_with_the_users_rights_alone(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rights: list[bool] = []

    @contextlib.contextmanager
    def as_user() -> Iterator[None]:
        assert not os.path.exists(os.path.dirname(address))
        yield
        rights.append(os.path.exists(address))

    monkeypatch.setattr(display, "as_user", as_user)
    Display()
    assert rights == [True], "folder and socket are made, and both between"


def test_what_is_in_its_place_is_left_alone(address: str, started: list[dict[str, Any]]) -> None:
    Path(address).parent.write_text("the user's")
    screen = Display()
    assert screen.fileno() == -1, "there is no display"
    screen.renew()
    screen.start()
    assert started == []
    assert Path(address).parent.read_text() == "the user's"


@pytest.mark.parametrize(
    "failure",
    [BlockingIOError(errno.EAGAIN, "no process is left"), subprocess.SubprocessError("preexec")],
    ids=lambda failure: type(failure).__name__,
)
def test_client_is_refused_where_no_process_is_left(
    failure: Exception, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise failure

    monkeypatch.setattr(subprocess, "Popen", fail)
    screen = Display()
    with connect(address) as client:
        screen.start()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert screen.fileno() == -1
    with pytest.raises(ConnectionRefusedError):
        connect(address)


def test_listens_again_when_the_server_is_no_more(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    status: list[int | None] = [None]

    class Server:
        def poll(self) -> int | None:
            return status[0]

    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Server())
    screen = Display()
    screen.renew()
    with connect(address):
        screen.start()
    screen.renew()
    assert screen.fileno() == -1, "the server lives"
    status[0] = -9
    screen.renew()
    with connect(address):
        assert select.select([screen.fileno()], [], [], 30)[0]
