"""The kernelspec's program: Deno's kernel, with the relay between it and the harness.

What cells put out comes by a pipe of its own, in order and as fast as the harness takes it:
see prelude.js. An error that comes by it is its cell's. Of code that cannot be parsed, Deno's
kernel says nothing but "Execution failed"; what its loader says of the same code is the error
then. If code ends Deno, its cell is over, and the next one has another Deno.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import fcntl
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernelrelay import MAX_TEXT, PIPE_BYTES, Cell, Relay
from messages import Message, fields
from sources import Sources, unnamed

PRELUDE = Path(__file__).with_name("prelude.js")
FOLDER = str(Path(__file__).parent)
# What a user finds if Deno has ended in an earlier cell.
FRESH = "[Deno has ended in an earlier cell: this is a new one, without the earlier variables]\n"
FAILED = "CommandFailed"  # as of commands in sessions: executor/session.go
MAX_HEAD = 64  # bytes of a record's first line
START_MS = 60_000  # for Deno on a busy host; a healthy one needs half a second
CONNECT_MS = 1000  # for what Deno publishes to come, which it does at once
# Imports come first: what follows this one is parsed and never run.
GUARD = 'import "data:text/javascript,throw 0";'


class RecordPipe:
    """The pipe of what cells put out."""

    def __init__(self, path: str) -> None:
        # For writing as well: it never ends, and whoever opens it does not wait.
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        with contextlib.suppress(OSError):  # the user's share of pipes is used up
            fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._buffer = bytearray()
        self._kind, self._left = "", 0  # of the record that is being read
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def read(self) -> list[tuple[str, Any]] | None:
        """Return the content of messages by their kind; None if there is nothing."""
        try:
            self._buffer += os.read(self.fd, MAX_TEXT)
        except BlockingIOError:
            return None
        found: list[tuple[str, Any]] = []
        try:
            while self._next(found):
                pass
        except (ValueError, KeyError):  # of a program that was killed in the middle of one
            self._buffer.clear()
            self._left = 0
        for _, content in found:
            if isinstance(text := content.get("text"), list):
                content["text"] = "".join(text)
        return found

    def _next(self, found: list[tuple[str, Any]]) -> bool:
        """Take one step; report whether there may be another."""
        if not self._left:
            end = self._buffer.find(b"\n", 0, MAX_HEAD)
            if end < 0:
                return False
            self._kind, _, length = self._buffer[:end].decode().partition(" ")
            del self._buffer[: end + 1]
            self._left = int(length)
            return True
        if self._kind == "message":
            if len(self._buffer) < self._left:
                return False
            message = json.loads(self._take(self._left))
            found.append((message["msg_type"], message["content"]))
            return True
        data = self._take(min(self._left, len(self._buffer)))
        self._add_text(found, data)
        return bool(data)

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._left -= size
        return data

    def _add_text(self, found: list[tuple[str, Any]], data: bytes) -> None:
        decoder = self._decoders.setdefault(
            self._kind, codecs.getincrementaldecoder("utf-8")("replace")
        )
        text = decoder.decode(data)
        if found and found[-1][0] == "stream" and found[-1][1]["name"] == self._kind:
            found[-1][1]["text"].append(text)
        else:
            found.append(("stream", {"name": self._kind, "text": [text]}))


class DenoRelay(Relay):
    """A relay that knows Deno's kernel."""

    def __init__(self, connection_file: str, command: list[str]) -> None:
        os.makedirs(os.environ.get("HOME", "/tmp/home"), exist_ok=True)
        self._probes: dict[str, tuple[Cell, list[dict[str, Any]]]] = {}
        self._errors: dict[str, dict[str, Any]] = {}  # of cells, as they are published
        self._numbers: dict[str, int] = {}  # of cells: Deno may tell its count after their error
        self._fresh = False  # nobody was told that there is another Deno
        super().__init__(connection_file, command)

    def launch(self) -> None:
        self._sources = Sources(self._command[0])
        self._asked = self._count = 0  # cells so far; of the latest cell
        super().launch()
        folder = tempfile.mkdtemp(prefix="kernel-")
        path, programs = (os.path.join(folder, name) for name in ("output", "programs"))
        # After those of children: one that starts takes longer than to print after it has ended.
        for name in (path, programs):  # two, as writers would mix up what is large
            os.mkfifo(name, 0o600)
            self.pipes.append(RecordPipe(name))
        kept = f"/proc/{os.getpid()}/fd/{self.pipes[-1].fd}"
        code = PRELUDE.read_text(encoding="utf-8")
        for name, value in (("pipe", path), ("programs", kept), ("folder", FOLDER)):
            code = code.replace("{" + name + "}", value)
        self._prepare(code)
        for name in (path, programs):
            os.unlink(name)
        os.rmdir(folder)

    def survives(self, status: int) -> bool:
        if status < 0 or not self.cells:  # it crashed, or was killed; or nobody asked for it
            return False
        self._probes.clear()
        for cell in list(self.cells.values()):
            self._end(cell, status)
        self._fresh = True
        return True

    def _end(self, cell: Cell, status: int) -> None:
        """Answer a cell whose code has ended Deno."""
        reply: dict[str, Any] = {"execution_count": self._count}
        if status:
            message = f"the program ended with exit code {status}"
            error = {"ename": FAILED, "evalue": message, "traceback": [f"{FAILED}: {message}"]}
            self.publish(Message.new("error", error, cell.request.header))
            reply |= {"status": "error", **error}
        else:
            reply |= {"status": "ok", "payload": [], "user_expressions": {}}
        cell.failed = True
        cell.reply = Message.new("execute_reply", reply, cell.request.header)
        cell.idle = Message.new("status", {"execution_state": "idle"}, cell.request.header)
        self.complete(cell)

    def to_shell(self, message: Message) -> None:
        if message.kind == "execute_request":
            content = fields(message.content)
            if content.get("store_history", True) and not content.get("silent"):  # it is counted
                self._asked += 1
                self._numbers[message.id] = self._asked
                content["code"] = self._sources.name(self._asked, content["code"])
                message.content = json.dumps(content).encode()
        super().to_shell(message)
        if self._fresh and message.id in self.cells:
            self._fresh = False
            self._give([("stream", {"name": "stderr", "text": FRESH})])

    def _prepare(self, code: str) -> None:
        self._run_silently(code)
        # Before something has come by it, what a cell publishes could be lost.
        while not self.kernel_iopub.poll(CONNECT_MS):
            self._run_silently("")
        while self.kernel_iopub.poll(0):
            self.kernel_iopub.recv()

    def _run_silently(self, code: str) -> None:
        self.kernel_shell.send_multipart(_execute(code).frames(self.key))
        if not self.kernel_shell.poll(START_MS):
            raise SystemExit("Deno does not answer")
        reply = json.loads(Message.read(self.kernel_shell.recv_multipart()).content)
        if reply.get("status") != "ok":
            raise SystemExit(f"prelude.js: {reply}")

    def from_shell(self, message: Message) -> None:
        if message.parent_id not in self._probes:
            super().from_shell(message)

    def from_iopub(self, message: Message) -> None:
        probe = self._probes.get(message.parent_id)
        if probe is None:
            if message.kind == "execute_input":
                content = fields(message.content)
                self._count = content.get("execution_count", 0)
                content["code"] = unnamed(content.get("code", ""))
                message.content = json.dumps(content).encode()
            elif message.kind == "error":
                error = self._place(fields(message.content), message.parent_id)
                message.content = json.dumps(error).encode()
            super().from_iopub(message)
            return
        cell, errors = probe
        content = fields(message.content)
        if message.kind == "error":
            errors.append(content)
        elif content.get("execution_state") == "idle":
            del self._probes[message.parent_id]
            self._fail(cell, errors)
            super().complete(cell)

    def complete(self, cell: Cell) -> None:
        if cell.reply is None or cell.idle is None:
            return
        self.drain()
        content = fields(cell.reply.content)
        self._numbers.pop(cell.request.id, None)
        if error := self._errors.pop(cell.request.id, None):
            cell.reply.content = json.dumps(content | {"status": "error"} | error).encode()
        if cell.failed or content.get("status") != "error":
            super().complete(cell)
            return
        cell.failed = True
        code = GUARD + unnamed(json.loads(cell.request.content)["code"])
        source = base64.b64encode(code.encode(errors="replace")).decode()
        probe = _execute(f'await import("data:application/typescript;base64,{source}")')
        self._probes[probe.id] = cell, []
        self.kernel_shell.send_multipart(probe.frames(self.key))

    def _give(self, found: list[tuple[str, Any]]) -> None:
        for kind, content in found:
            cell = self.cells.get(str(fields(self.current).get("msg_id"))) if self.current else None
            if kind == "error" and cell is not None:
                cell.failed = True
                content.update(self._place(content, cell.request.id))
        super()._give(found)

    def _place(self, error: dict[str, Any], cell: str) -> dict[str, Any]:
        """Return a cell's error with its own lines; the first one becomes the reply's."""
        placed = self._sources.place(error, self._numbers.get(cell, 0))
        self._errors.setdefault(cell, placed)
        return placed

    def _fail(self, cell: Cell, errors: list[dict[str, Any]]) -> None:
        assert cell.reply is not None
        reply = json.loads(cell.reply.content)
        code = unnamed(json.loads(cell.request.content)["code"])
        said, name = (
            (str(errors[0].get(k, "")) for k in ("evalue", "ename")) if errors else ("", "")
        )
        error = load_error(code, said, name, reply.get("execution_count")) or {
            "ename": reply.get("ename", "Error"),
            "evalue": reply.get("evalue", ""),
            "traceback": [f"{reply.get('ename')}: {reply.get('evalue')}"],
        }
        cell.reply.content = json.dumps(reply | error).encode()
        self.publish(Message.new("error", error, cell.request.header))


def load_error(code: str, said: str, name: str, count: Any) -> dict[str, Any] | None:
    """Return the error that Deno's loader has said of GUARD and code; None if it is none.

    count is the cell's.
    """
    place = re.search(r"\bat data:[^ ]*:(\d+):(\d+)\s*$", said)
    if place is None:
        return None
    message = said.split("\n", 1)[0].partition(" at data:")[0]
    if message.startswith("SyntaxError: "):
        name, message = "SyntaxError", message.removeprefix("SyntaxError: ")
    line, column = int(place[1]), int(place[2])
    if line == 1:
        column = max(1, column - len(GUARD))
    lines = code.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    margin = " " * len(str(line))
    return {
        "ename": name,
        "evalue": message,
        "traceback": [
            f"Cell In[{count}], line {line}",
            f"{line} | {shown}",
            f"{margin} | {' ' * (column - 1)}^",
            f"{name}: {message}",
        ],
    }


def _execute(code: str) -> Message:
    content = {"code": code, "silent": True, "store_history": False, "allow_stdin": False}
    return Message.new("execute_request", content)


def main() -> None:
    """Run the kernel, from its start to its end."""
    sys.exit(DenoRelay(sys.argv[1], sys.argv[2:]).run() and 1)


if __name__ == "__main__":
    main()
