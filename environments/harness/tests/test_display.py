"""The virtual display, with no X server behind it: what would be started is noted."""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

import display
from display import Display


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return where the display listens, which is not where the host's own would."""
    path = str(tmp_path / "x" / "X99")
    monkeypatch.setattr(display, "_SOCKET", path)
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


def test_socket_is_open_to_the_user(address: str, started: list[dict[str, Any]]) -> None:
    screen = Display()
    assert os.stat(address).st_mode & 0o777 == 0o777
    assert os.stat(os.path.dirname(address)).st_mode & 0o7777 == 0o1777
    screen.start()


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
