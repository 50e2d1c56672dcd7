"""The relay before a small kernel that says idle before its last output, and drops nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

import kernelrelay
from messages import Message

# Publishes what a cell says in JSON: "before" idle, "after" it, and "raw" on its stdout.
KERNEL = """
    import json, os, sys, time, zmq
    from kernelrelay import _address; from messages import Message
    info = json.load(open(sys.argv[1])); key = info["key"].encode(); c = zmq.Context()
    def bind(kind, channel):
        s = c.socket(kind); s.bind(_address(info, channel)); return s
    shell, iopub = bind(zmq.ROUTER, "shell"), bind(zmq.PUB, "iopub")
    def tell(kind, content):
        iopub.send_multipart(Message.new(kind, content, m.header).frames(key))
    while True:
        m = Message.read(shell.recv_multipart()); kind = m.kind
        tell("status", {"execution_state": "busy"})
        content = {"status": "ok", "protocol_version": "5.3"}
        if kind == "execute_request":
            request = json.loads(m.content); do = json.loads(request["code"])
            tell("stream", {"name": "stdout", "text": do.get("before", "")})
            os.write(1, do.get("raw", "").encode())
            content["asks"] = request["allow_stdin"]
            if "exit" in do: os._exit(do["exit"])
        reply = Message.new(kind.replace("request", "reply"), content, m.header)
        tell("status", {"execution_state": "idle"})
        time.sleep(0.02)
        reply.identities = m.identities; shell.send_multipart(reply.frames(key))
"""


# A relay that has another kernel after an exit code of 7.
SURVIVOR = """
    import sys
    from kernelrelay import Relay
    from messages import Message
    class Survivor(Relay):
        def launch(self):
            super().launch()
            while not self.kernel_iopub.poll(50):  # a publisher does not wait for connections
                ask = Message.new("kernel_info_request", {})
                self.kernel_shell.send_multipart(ask.frames(self.key))
            while self.kernel_iopub.poll(500):
                self.kernel_iopub.recv_multipart()
        def survives(self, status):
            for cell in list(self.cells.values()) if status == 7 else []:
                cell.reply = Message.new("execute_reply", {"status": "ok"}, cell.request.header)
                state = {"execution_state": "idle"}
                cell.idle = Message.new("status", state, cell.request.header)
                self.complete(cell)
            return status == 7
    Survivor(sys.argv[1], sys.argv[2:]).run()
"""


@pytest.fixture(params=[kernelrelay.__file__, SURVIVOR], ids=["relay", "survivor"])
def client(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    program = tmp_path / "kernel.py"
    program.write_text(textwrap.dedent(KERNEL))
    (tmp_path / "tmp").mkdir()
    file, _ = write_connection_file(str(tmp_path / "connection.json"))
    relay = Path(kernelrelay.__file__)
    folder = relay.parent
    if request.param != str(relay):
        relay = tmp_path / "survivor.py"
        relay.write_text(textwrap.dedent(request.param))
    process = subprocess.Popen(
        [sys.executable, relay, file, sys.executable, program, "{kernel_connection_file}"],
        env=os.environ | {"PYTHONPATH": str(folder), "TMPDIR": str(tmp_path / "tmp")},
    )
    kernel: Any = BlockingKernelClient()
    kernel.load_connection_file(file)
    kernel.start_channels(stdin=False, hb=False)
    kernel.wait_for_ready(timeout=20)
    kernel.process = process
    yield kernel
    kernel.stop_channels()
    process.kill()
    process.wait()


def run(kernel: Any, **do: Any) -> tuple[str, dict[str, Any]]:
    """Return the text that came before idle, and the reply."""
    request = kernel.execute(json.dumps(do))
    text = ""
    while True:
        message = kernel.get_iopub_msg(timeout=10)
        assert message["parent_header"]["msg_id"] == request
        if message["msg_type"] == "stream":
            text += message["content"]["text"]
        elif message["content"].get("execution_state") == "idle":
            break
    while (reply := kernel.get_shell_msg(timeout=10))["parent_header"]["msg_id"] != request:
        pass  # of the client's own, which asks until the kernel is ready
    return text, reply["content"]


def test_output_comes_before_idle(client: Any) -> None:
    text, reply = run(client, before="published\n", raw="of a child\n")
    assert sorted(text.splitlines()) == ["of a child", "published"]
    assert reply["status"] == "ok"


def test_a_large_output_is_whole(client: Any) -> None:
    text, _ = run(client, before="ä" * 3_000_000, raw="b" * 60_000)
    assert len(text) == 3_060_000


def test_nobody_can_be_asked(client: Any) -> None:
    assert run(client)[1]["asks"] is False


def test_output_of_a_kernel_that_ends(client: Any) -> None:
    client.execute(json.dumps({"raw": "last words", "exit": 3}))
    text = ""
    while "last words" not in text:
        text += client.get_iopub_msg(timeout=10)["content"].get("text", "")
    client.process.wait(timeout=20)


@pytest.mark.parametrize("client", [SURVIVOR], indirect=True)
def test_a_kernel_after_another(client: Any, tmp_path: Path) -> None:
    for _ in range(3):
        text, reply = run(client, raw="last words", exit=7)
        assert (text, reply["status"]) == ("last words", "ok")
    assert run(client, before="a")[0] == "a"
    assert list((tmp_path / "tmp").iterdir()) == []
    client.execute(json.dumps({"exit": 3}))
    assert client.process.wait(timeout=20) == 0


@pytest.mark.parametrize("client", [SURVIVOR], indirect=True)
def test_a_shutdown_without_a_kernel(client: Any) -> None:
    run(client, exit=7)
    client.shutdown()
    client.process.wait(timeout=20)


def test_the_connection_file_is_not_kept(client: Any, tmp_path: Path) -> None:
    assert run(client)[1]["status"] == "ok"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_is_no_message_is_dropped(client: Any) -> None:
    sign = client.session.sign
    for part in (b"[]", b"1", b"x", b"[" * 100_000):
        parts = [part, b"{}", b"{}", b"{}"]
        for channel in (client.shell_channel, client.control_channel):
            channel.socket.send_multipart([b"<IDS|MSG>", sign(parts), *parts])
    assert run(client, before="a")[0] == "a"


class Full:
    """A socket that takes nothing."""

    def send_multipart(self, _: list[bytes]) -> None:
        raise zmq.Again

    def poll(self, _: int) -> int:
        return 0


def test_a_harness_that_takes_nothing() -> None:
    relay = object.__new__(kernelrelay.Relay)
    full: Any = Full()
    relay.key, relay.iopub, relay.control = b"", full, full
    relay._until = time.monotonic() + 0.05
    relay.publish(Message.new("stream", {}))


@pytest.mark.parametrize("part", [b"[]", b"null", b"x", b"\xff", b"[" * 100_000])
def test_a_header_that_is_none(part: bytes) -> None:
    message = Message(part, part, b"{}", b"{}")
    for name in ("kind", "id", "parent_id"):
        with pytest.raises(ValueError):  # noqa: PT011 - JSON's own words
            getattr(message, name)


def test_a_message_that_is_none() -> None:
    with pytest.raises(ValueError, match="not in list"):
        Message.read([b"what"])
