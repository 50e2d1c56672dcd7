"""Stands between the harness and a kernel that loses output, or says idle before its last.

    kernelrelay.py CONNECTION_FILE COMMAND…

has the harness's connection on one side, and on the other a kernel, COMMAND, with a
connection file of its own ({kernel_connection_file}; other ports, the same key). As numbered steps:

 1. What the kernel publishes is read at once and without a bound, as a publisher drops what
    its reader does not take. It is given on with back-pressure.
 2. The kernel's stdout and stderr are pipes whose text becomes stream messages: what
    its children write is seen as well. These make their writer wait.
 3. A cell is over when both its reply and its idle are there, and all that was in the
    pipes by then has been given on. Only then they are given on as well.
 4. Nobody can be asked for input: execute requests say so to the kernel.
 5. The relay ends when the kernel ends, after what that had still put out; or starts another
    one for the next cell, where that end was no failure (survives).
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq

from messages import Message, fields

MAX_TEXT = 1 << 20  # characters of one stream message: a cap can act in between
PIPE_BYTES = 1 << 20  # what a pipe holds; the most that an ordinary user may have
MAX_QUEUED = 16  # messages of up to MAX_TEXT that wait for the harness
SEND_MS = 20  # between looks at the control channel while the harness takes nothing
LAST_WORDS_MS = 100  # without a message, until a kernel that has ended has said all
FINISH_SECONDS = 10  # for all of that, also where the harness takes nothing
LINGER_MS = 10_000  # for the harness to take what has been sent
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass
class Cell:
    """An execute request on its way."""

    request: Message
    reply: Message | None = None
    idle: Message | None = None
    failed: bool = False  # an error was published


class TextPipe:
    """A pipe of text, read without waiting."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd, self.name = fd, name
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(fd, False)

    def read(self) -> list[tuple[str, Any]] | None:
        """Return the content of messages by their kind; None where there is nothing."""
        try:
            data = os.read(self.fd, MAX_TEXT)
        except BlockingIOError:
            return None
        if not data:
            return None
        text = self._decoder.decode(data)
        return [("stream", {"name": self.name, "text": text})] if text else []


class Relay:
    """One kernel behind one connection file."""

    def __init__(self, connection_file: str, command: list[str]) -> None:
        with open(connection_file, encoding="utf-8") as f:
            outside: dict[str, Any] = json.load(f)
        self.key = str(outside["key"]).encode()
        self.cells: dict[str, Cell] = {}
        self.current = b""  # the header of the latest request, whose output there is
        self._waiting: dict[str, list[bytes]] = {}  # whom a reply is for
        self.context = zmq.Context()
        self.context.setsockopt(zmq.LINGER, LINGER_MS)
        self._bind(outside)
        self._outside, self._command = outside, command
        self._until = math.inf  # when the relay gives up
        self.pipes: list[Any] = []  # TextPipe and what reads alike
        self.launch()

    def launch(self) -> None:
        """Start the kernel, and connect to it.

        One that survives launches again, and returns when the connection is up: the harness
        waits for the first kernel alone.
        """
        inside = self._outside | {"ip": "127.0.0.1", "transport": "tcp"} | free_ports()
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as own:
            json.dump(inside, own)
        self._file = own.name
        self._connect(inside)
        self._start([part.replace("{kernel_connection_file}", own.name) for part in self._command])

    def _bind(self, info: dict[str, Any]) -> None:
        def bind(kind: int, channel: str) -> zmq.Socket[bytes]:
            sock = self.context.socket(kind)
            sock.bind(_address(info, channel))
            return sock

        self.shell = bind(zmq.ROUTER, "shell")
        self.control = bind(zmq.ROUTER, "control")
        self.heartbeat = bind(zmq.ROUTER, "hb")
        self.context.setsockopt(zmq.SNDHWM, MAX_QUEUED)
        self.context.setsockopt(zmq.XPUB_NODROP, 1)
        self.context.setsockopt(zmq.SNDTIMEO, SEND_MS)
        self.iopub = bind(zmq.PUB, "iopub")

    def _connect(self, info: dict[str, Any]) -> None:
        context = self._kernel_context = zmq.Context()
        context.setsockopt(zmq.LINGER, 0)
        context.setsockopt(zmq.RCVHWM, 0)
        context.setsockopt(zmq.RECONNECT_IVL, 5)

        def connect(kind: int, channel: str) -> zmq.Socket[bytes]:
            sock = context.socket(kind)
            if kind == zmq.SUB:
                sock.subscribe(b"")
            sock.connect(_address(info, channel))
            return sock

        self.kernel_shell = connect(zmq.DEALER, "shell")
        self.kernel_control = connect(zmq.DEALER, "control")
        self.kernel_iopub = connect(zmq.SUB, "iopub")

    def _start(self, command: list[str]) -> None:
        pipes = {name: os.pipe() for name in ("stdout", "stderr")}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipes["stdout"][1],
            stderr=pipes["stderr"][1],
            preexec_fn=_die_with_parent,
        )
        for name, (reading, writing) in pipes.items():
            os.close(writing)
            self.pipes.append(TextPipe(reading, name))

    def run(self) -> int:
        """Relay until the kernel has ended for good; return its exit status."""
        try:
            while True:
                status = self._relay()
                if not (self.survives(status) and self._is_asked()):
                    self.context.destroy(linger=LINGER_MS)
                    return status
                self._forget_kernel()
                self.launch()
        finally:
            self.forget_file()

    def survives(self, status: int) -> bool:
        """Answer the cells that a kernel has left; report whether there may be another kernel.

        Where not, the relay ends as the kernel did, and its cells with it.
        """
        return False

    def _is_asked(self) -> bool:
        """Return, with no kernel, when another one has something to do, or nothing has."""
        poller = zmq.Poller()
        for sock in (self.shell, self.control, self.heartbeat):
            poller.register(sock, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self.heartbeat in ready:
                self.heartbeat.send_multipart(self.heartbeat.recv_multipart())
            if self.shell in ready or self.control in ready:
                return self.control not in ready  # which asks for an end, if anything

    def _forget_kernel(self) -> None:
        self.forget_file()
        self._kernel_context.destroy(linger=0)
        for pipe in self.pipes:
            os.close(pipe.fd)
        self.pipes = []
        self._waiting.clear()
        self.current = b""
        self._until = math.inf

    def forget_file(self) -> None:
        """Remove the kernel's connection file, which it has read when it says something."""
        if self._file:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file)
            self._file = ""

    def _relay(self) -> int:
        ended = os.pidfd_open(self.process.pid)
        poller = zmq.Poller()
        ways: dict[zmq.Socket[bytes], Callable[[Message], None]] = {
            self.kernel_iopub: self.from_iopub,
            self.kernel_shell: self.from_shell,
            self.kernel_control: self.from_control,
            self.shell: self.to_shell,
            self.control: self.to_control,
        }
        for sock in (*ways, self.heartbeat):
            poller.register(sock, zmq.POLLIN)
        for source in [pipe.fd for pipe in self.pipes] + [ended]:
            poller.register(source, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            for pipe in self.pipes:
                if pipe.fd in ready:
                    if ready[pipe.fd] & zmq.POLLERR:
                        poller.unregister(pipe.fd)  # nobody can write to it any more
                    self._give(pipe.read() or [])
            for sock, way in ways.items():
                if sock in ready:
                    if sock in (self.kernel_shell, self.kernel_iopub, self.kernel_control):
                        self.forget_file()
                    # A message that is none ends here, as in any kernel.
                    with contextlib.suppress(ValueError):
                        way(Message.read(sock.recv_multipart()))
            if self.heartbeat in ready:
                self.heartbeat.send_multipart(self.heartbeat.recv_multipart())
            if ended in ready:
                os.close(ended)
                return self._finish()

    def _finish(self) -> int:
        self._until = time.monotonic() + FINISH_SECONDS
        # Children of the kernel may have its sockets, and go on.
        while self.kernel_iopub.poll(LAST_WORDS_MS) and time.monotonic() < self._until:
            with contextlib.suppress(ValueError):
                self.from_iopub(Message.read(self.kernel_iopub.recv_multipart()))
        self.drain()
        return self.process.wait()

    # From the harness to the kernel.

    def to_shell(self, message: Message) -> None:
        self._waiting[message.id] = message.identities
        message.identities = []
        if message.kind == "execute_request":
            content = fields(message.content) | {"allow_stdin": False}
            message.content = json.dumps(content).encode()
            self.cells[message.id] = Cell(message)
            self.drain()  # of the cell before
            self.current = message.header
        self.kernel_shell.send_multipart(message.frames(self.key))

    def to_control(self, message: Message) -> None:
        self._waiting[message.id] = message.identities
        message.identities = []
        self.kernel_control.send_multipart(message.frames(self.key))

    # From the kernel to the harness.

    def from_control(self, message: Message) -> None:
        self._answer(self.control, message)

    def from_shell(self, message: Message) -> None:
        cell = self.cells.get(message.parent_id)
        if cell is None:
            self._answer(self.shell, message)
            return
        cell.reply = message
        self.complete(cell)

    def from_iopub(self, message: Message) -> None:
        self.drain()
        cell = self.cells.get(message.parent_id)
        if cell is not None:
            kind = message.kind
            if kind == "status" and fields(message.content).get("execution_state") == "idle":
                cell.idle = message
                self.complete(cell)
                return
            cell.failed |= kind == "error"
        self.publish(message)

    def complete(self, cell: Cell) -> None:
        """Give the end of a cell on, once it is there."""
        if cell.reply is None or cell.idle is None:
            return
        self.drain()
        del self.cells[cell.request.id]
        self._answer(self.shell, cell.reply)
        self.publish(cell.idle)

    def _answer(self, sock: zmq.Socket[bytes], message: Message) -> None:
        message.identities = self._waiting.pop(message.parent_id, [])
        if message.identities:
            sock.send_multipart(message.frames(self.key))

    def drain(self) -> None:
        """Give on what is in the pipes by now, which is no more than they hold."""
        for pipe in self.pipes:
            left = 2 * PIPE_BYTES // MAX_TEXT
            while left > 0 and (found := pipe.read()) is not None:
                self._give(found)
                left -= 1

    def _give(self, found: list[tuple[str, Any]]) -> None:
        if self.current:  # what a kernel says before there is a cell is nobody's
            for kind, content in found:
                self.publish(Message.new(kind, content, self.current))

    def publish(self, message: Message) -> None:
        """Give a message on; wait while the harness has enough to do.

        One that it does not take before the relay gives up is dropped.
        """
        if not message.identities:
            message.identities = [message.kind.encode()]
        frames = message.frames(self.key)
        while True:
            try:
                self.iopub.send_multipart(frames)
            except zmq.Again:
                if time.monotonic() >= self._until:
                    return
                while self.control.poll(0):  # so that an interrupt comes through
                    with contextlib.suppress(ValueError):
                        self.to_control(Message.read(self.control.recv_multipart()))
            else:
                return


def _address(info: dict[str, Any], channel: str) -> str:
    colon = ":" if info.get("transport", "tcp") == "tcp" else "-"
    return f"{info.get('transport', 'tcp')}://{info['ip']}{colon}{info[channel + '_port']}"


def free_ports() -> dict[str, int]:
    """Return ports that nobody has, for a kernel that is about to take them."""
    names = [f"{name}_port" for name in ("shell", "iopub", "stdin", "control", "hb")]
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        return {name: s.getsockname()[1] for name, s in zip(names, socks, strict=True)}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(Relay(sys.argv[1], sys.argv[2:]).run() and 1)
