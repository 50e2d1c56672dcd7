"""The harness's end of the sandbox's network, against a service that is a pipe."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from re import findall

import pytest
from wire import stream

from harness.stream import channels, frames, network
from harness.stream.channels import (
    CLOSE,
    CREDIT,
    DATA,
    END,
    MAX_CHANNELS,
    MAX_DATA,
    OPEN,
    RESET,
    WINDOW,
    Channels,
)
from harness.stream.network import Proxy

PATIENCE = 30.0  # seconds until a busy host is taken for a failure


class Service:
    """The other end: keeps what comes, and sends what a test wants."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self.proxy, writer = Proxy(), frames.Writer(self._writing)
        self.network = Channels(lambda: writer, self.proxy.listener)
        self.seen: list[tuple[bytes, int, bytes]] = []
        self.data: dict[int, bytes] = {}
        self.echo = False
        self._changed = threading.Condition()
        self._reader = frames.Reader(reading)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self.network.start()
        self._clients: list[socket.socket] = []

    def _read(self) -> None:
        while True:
            try:
                kind, payload = self._reader.read()
            except frames.StreamClosed:
                return
            assert kind == frames.CHANNEL
            op, number = struct.unpack_from(">cI", payload)
            data = payload[5:]
            with self._changed:
                self.seen.append((op, number, data))
                if op == DATA:
                    assert 0 < len(data) <= MAX_DATA
                    self.data[number] = self.data.get(number, b"") + data
                self._changed.notify_all()
            if self.echo and op == DATA:
                self.send(CREDIT, number, struct.pack(">I", len(data)))
                self.send(DATA, number, data)
            elif self.echo and op == END:
                self.send(END, number)

    def send(self, op: bytes, number: int, data: bytes = b"") -> None:
        self.network.receive(op + struct.pack(">I", number) + data)

    def credit(self, number: int, count: int) -> None:
        self.send(CREDIT, number, struct.pack(">I", count))

    def ops(self, number: int) -> list[bytes]:
        with self._changed:
            return [op for op, n, _ in self.seen if n == number and op != DATA]

    def until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), self.seen[-10:]

    def becomes(self, condition: Callable[[], bool], seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def connect(self) -> socket.socket:
        """Return a program's connection, of which the service may not know yet."""
        client = socket.create_connection(self.network._listener.getsockname(), PATIENCE)
        self._clients.append(client)
        return client

    def opened(self, number: int) -> None:
        self.until(lambda: (OPEN, number, b"") in self.seen)

    def close(self) -> None:
        if self.network._thread.is_alive():
            self.network.stop()
        for client in self._clients:
            client.close()
        os.close(self._writing)
        self._thread.join(PATIENCE)
        os.close(self._reader.fd)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(network, "PORT", 0)
    service = Service()
    yield service
    service.close()


def received(client: socket.socket) -> bytes:
    """Return all that comes to a program, up to the end."""
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def closed(client: socket.socket) -> bool:
    """Report whether a connection ends, and not well."""
    with pytest.raises(ConnectionResetError):
        received(client)
    return True


def test_request_and_answer(service: Service) -> None:
    client = service.connect()
    client.sendall(b"question")
    service.until(lambda: service.data.get(1) == b"question")
    service.send(DATA, 1, b"ans")
    service.send(DATA, 1, b"wer")
    service.send(CLOSE, 1)
    assert received(client) == b"answer"
    second = service.connect()
    service.opened(2)
    second.close()
    service.until(lambda: (END, 2, b"") in service.seen)
    assert service.ops(1) == [OPEN]


def test_program_ends_its_half(service: Service) -> None:
    client = service.connect()
    client.sendall(b"all")
    client.shutdown(socket.SHUT_WR)
    service.until(lambda: (END, 1, b"") in service.seen)
    assert service.data[1] == b"all"
    service.send(DATA, 1, b"late")
    service.send(END, 1)
    assert received(client) == b"late"


def test_service_ends_its_half(service: Service) -> None:
    client = service.connect()
    service.opened(1)
    service.send(END, 1)
    assert received(client) == b""
    client.sendall(b"late")
    client.close()
    service.until(lambda: (END, 1, b"") in service.seen)
    assert service.data[1] == b"late"
    service.until(lambda: not service.network._channels)


def test_service_gives_up(service: Service) -> None:
    client = service.connect()
    service.opened(1)
    service.send(DATA, 1, b"half")
    service.send(RESET, 1)
    assert closed(client), "what has come is not taken for the whole"
    assert service.ops(1) == [OPEN]


def test_program_gives_up(service: Service) -> None:
    client = service.connect()
    service.opened(1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    service.until(lambda: (RESET, 1, b"") in service.seen)
    for op in (DATA, END, CLOSE, RESET):
        service.send(op, 1, b"late" if op == DATA else b"")
    service.credit(1, 5)
    other = service.connect()
    service.opened(2)
    service.send(DATA, 2, b"x")
    assert other.recv(1) == b"x", "what was under way is passed over"


def test_no_more_than_there_is_credit_for(service: Service) -> None:
    client = service.connect()
    sender = threading.Thread(target=client.sendall, args=(bytes(WINDOW + 1000),), daemon=True)
    sender.start()
    service.until(lambda: len(service.data.get(1, b"")) >= WINDOW)
    other = service.connect()
    other.sendall(b"not held up")
    service.until(lambda: service.data.get(2) == b"not held up")
    assert len(service.data[1]) == WINDOW
    service.credit(1, 300)
    service.credit(1, 700)
    service.until(lambda: len(service.data[1]) == WINDOW + 1000)
    sender.join(PATIENCE)


def test_program_that_does_not_read(service: Service) -> None:
    slow = service.connect()
    service.opened(1)
    chunk, sent = bytes(16 << 10), 0

    def may_send() -> bool:
        given = sum(struct.unpack(">I", d)[0] for op, _, d in service.seen if op == CREDIT)
        return sent + len(chunk) - given <= WINDOW

    # More than the sockets hold, so that what is left is with the harness.
    while service.becomes(may_send, 0.5):
        service.send(DATA, 1, chunk)
        sent += len(chunk)
    other = service.connect()
    service.opened(2)
    service.send(DATA, 2, b"not held up")
    assert other.recv(100) == b"not held up"
    held = sum(map(len, service.network._channels[1].buffer))
    assert held <= WINDOW
    service.send(CLOSE, 1)
    assert len(received(slow)) == sent, "and nothing is lost"


def test_echo_of_much(service: Service) -> None:
    service.echo = True
    content = os.urandom(3 << 20)
    client = service.connect()
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(received(client)), daemon=True)
    reader.start()
    client.sendall(content)
    client.shutdown(socket.SHUT_WR)
    reader.join(PATIENCE)
    assert got == [content]
    service.until(lambda: not service.network._channels)


def test_connections_beyond_the_most_wait(service: Service) -> None:
    clients = [service.connect() for _ in range(MAX_CHANNELS + 5)]
    service.opened(MAX_CHANNELS)
    for client in clients[MAX_CHANNELS:]:
        client.sendall(b"waits")
    service.send(DATA, 1, b"x")
    assert clients[0].recv(1) == b"x"
    assert len(service.network._channels) == MAX_CHANNELS
    for number in range(1, 6):
        service.send(CLOSE, number)
    service.until(lambda: service.data.get(MAX_CHANNELS + 5) == b"waits")
    assert [n for op, n, _ in service.seen if op == OPEN] == list(range(1, MAX_CHANNELS + 6))


def test_nothing_turns_while_nothing_can_be_done(service: Service) -> None:
    turns = 0
    turn = service.network._turn

    def counted() -> None:
        nonlocal turns
        turns += 1
        turn()

    gone = service.connect()
    gone.sendall(bytes(1000))
    service.until(lambda: len(service.data.get(1, b"")) == 1000)
    half = service.connect()
    half.shutdown(socket.SHUT_WR)
    service.until(lambda: (END, 2, b"") in service.seen)
    gone.close()
    service.until(lambda: (END, 1, b"") in service.seen)
    service.network._turn = counted  # type: ignore[method-assign]
    time.sleep(0.3)
    assert turns < 10


def test_stop(service: Service) -> None:
    client = service.connect()
    service.opened(1)
    address = service.network._listener.getsockname()
    service.network.stop()
    assert closed(client)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, PATIENCE)
    assert not service.network._channels


def test_variables(service: Service) -> None:
    env = service.proxy.environment()
    port = service.network._listener.getsockname()[1]
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert env[name] == env[name.lower()] == f"http://127.0.0.1:{port}"
    assert env["NO_PROXY"] == env["no_proxy"] == "localhost,127.0.0.1,::1"
    assert len(env) == 8


def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.pem"
    own.write_text("of the image")
    monkeypatch.setattr(network, "PORT", 0)
    monkeypatch.setattr(network, "_BUNDLE", str(own))
    monkeypatch.setattr(network, "HARNESS", str(tmp_path))
    env = Proxy(ca="# Főtanúsítvány\nof the operator").environment()
    names = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"}
    names |= {"GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"}
    assert {name for name in env if "proxy" not in name.lower()} == names
    (path,) = {env[name] for name in names}
    own_and_theirs = "of the image\n# Főtanúsítvány\nof the operator"  # whose comments may be so
    assert Path(path).read_text("utf-8") == own_and_theirs
    assert os.stat(path).st_mode & 0o777 == 0o644


def test_turns_go_to_who_has_waited_longest() -> None:
    turn = frames.Turn()
    order: list[int] = []

    def take(number: int) -> None:
        with turn:
            order.append(number)

    threads = [threading.Thread(target=take, args=(n,), daemon=True) for n in range(20)]
    deadline = time.monotonic() + PATIENCE
    with turn:
        for n, thread in enumerate(threads):
            thread.start()
            while len(turn._waiting) <= n and time.monotonic() < deadline:
                time.sleep(0.001)
    with turn:  # asked for last
        order.append(20)
    assert order == list(range(21))


def test_frames_of_several_threads_are_whole() -> None:
    with stream() as (reader, fd):
        writer = frames.Writer(fd)

        def write(number: int) -> None:
            with contextlib.suppress(OSError):
                for _ in range(50):
                    writer.write(bytes((number,)), bytes((number,)) * 5000)

        threads = [threading.Thread(target=write, args=(n,), daemon=True) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            kind, payload = reader.read()
            assert payload == kind * 5000
        for thread in threads:
            thread.join(PATIENCE)


def test_accept_that_fails(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def __init__(self, listener: socket.socket) -> None:
            self.listener, self.tried = listener, False

        def __getattr__(self, name: str) -> object:
            return getattr(self.listener, name)

        def accept(self) -> tuple[socket.socket, object]:
            if not self.tried:
                self.tried = True
                raise OSError(errno.ECONNABORTED, "gone")
            return self.listener.accept()

    monkeypatch.setattr(service.network, "_listener", Gone(service.network._listener))
    client = service.connect()
    client.sendall(b"x")
    service.until(lambda: service.data.get(1) == b"x")


def test_both_sides_speak_one_protocol() -> None:
    folder = Path(__file__).parents[3] / "runner" / "internal" / "channel"
    go = (folder / "mux.go").read_text()
    assert {
        name.upper(): value.encode() for name, value in findall(r"op(\w+) +operation = '(.)'", go)
    } == {
        name: value
        for name, value in vars(channels).items()
        if isinstance(value, bytes) and name != "CHANNEL" and not name.startswith("_")
    }
    numbers = {
        name: int(n) << int(by or 0)
        for name, n, by in findall(r"(\w+) += (\d+)(?: << (\d+))?\n", go)
    }
    assert numbers["Window"] == WINDOW
    assert numbers["MaxChannels"] == MAX_CHANNELS
    assert numbers["maxData"] == MAX_DATA
    assert numbers["headerSize"] == channels._HEADER.size
