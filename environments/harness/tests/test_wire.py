"""The wire between harness and kernel: whole messages, whoever writes them, and no others."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import zmq
from jupyter_core.utils import ensure_event_loop

from harness.kernel import wire
from harness.kernel.process import TolerantSession


class Ends:
    """A wire: the harness's end, and the kernel's."""

    def __init__(self) -> None:
        ours, theirs = wire.pair()
        self.loop = ensure_event_loop()
        self.harness = wire.HarnessWire(ours, self.loop)
        self.kernel, self.raw = wire.Wire(theirs), theirs

    def next(self, seconds: float = 5.0) -> list[bytes]:
        return self.loop.run_until_complete(
            asyncio.wait_for(self.harness.recv_multipart(), seconds)
        )

    def is_empty(self) -> bool:
        return not self.loop.run_until_complete(self.harness.poll(0))


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.harness.close()
    ends.kernel.close()


@pytest.mark.parametrize(
    "parts",
    [
        [b""],
        [b"a"],
        [b"a", b"", b"ccc"],
        [b"x" * wire.CHUNK],
        [b"x" * (wire.CHUNK - 4), b"y" * wire.CHUNK, b"z"],
        [os.urandom(5 << 20)],
    ],
)
def test_a_message_arrives_as_it_was(ends: Ends, parts: list[bytes]) -> None:
    sender = threading.Thread(target=ends.kernel.send_multipart, args=(parts,))
    sender.start()
    assert ends.next() == parts
    sender.join()
    assert ends.is_empty()


def test_buffers_of_any_kind(ends: Ends) -> None:
    numbers = memoryview(b"\1\0\0\0\2\0\0\0").cast("I")
    ends.kernel.send_multipart([bytearray(b"a"), numbers], copy=False, track=True)
    assert ends.next() == [b"a", bytes(numbers)]


def test_what_the_harness_sends_waits_for_nobody(ends: Ends) -> None:
    large = [[b"%d" % i, os.urandom(1 << 20)] for i in range(3)]
    for parts in large:
        ends.harness.send_multipart(parts)

    async def receive() -> list[list[bytes]]:
        got: list[list[bytes]] = []
        while len(got) < len(large):
            if (message := ends.kernel.receive()) is None:
                await asyncio.sleep(0.001)
            else:
                got.append(message)
        return got

    assert ends.loop.run_until_complete(receive()) == large


def test_several_write_at_once(ends: Ends) -> None:
    """Threads, and a process that was forked, with messages of many packets."""
    pid = os.fork()
    senders = [threading.Thread(target=send_all, args=(ends.kernel, b"%d" % i)) for i in range(2)]
    if not pid:
        send_all(ends.kernel, b"child")
        os._exit(0)
    for sender in senders:
        sender.start()
    got = [ends.next() for _ in range(3 * MESSAGES)]
    for name in (b"0", b"1", b"child"):
        assert [m for m in got if m[0] == name] == [message(name, i) for i in range(MESSAGES)]
    os.waitpid(pid, 0)


MESSAGES = 20


def message(name: bytes, number: int) -> list[bytes]:
    return [name, b"%d" % number, name * (number * wire.CHUNK // 5)]


def send_all(end: wire.Wire, name: bytes) -> None:
    for number in range(MESSAGES):
        end.send_multipart(message(name, number))


def test_who_is_killed_halfway_spoils_nothing(ends: Ends) -> None:
    pid = os.fork()
    if not pid:
        ends.kernel.send_multipart([b"x" * (64 << 20)])  # which nobody reads to its end
        os._exit(0)
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    sender = threading.Thread(target=ends.kernel.send_multipart, args=([b"whole"],))
    sender.start()
    assert ends.next() == [b"whole"]
    sender.join()


def test_who_is_interrupted_halfway_spoils_nothing(ends: Ends) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        ends.kernel.send_multipart([b"x" * (64 << 20)])
    signal.signal(signal.SIGALRM, before)
    sender = threading.Thread(target=ends.kernel.send_multipart, args=([b"whole"],))
    sender.start()
    assert ends.next() == [b"whole"]
    sender.join()


@pytest.mark.parametrize("garbage", [b"x", b"\0" * 8, b"\0" * 8 + b"\1" + b"\xff" * 9, b"\1" * 500])
def test_garbage_is_a_message_of_nobody(ends: Ends, garbage: bytes) -> None:
    session = TolerantSession(key=b"a")
    channel = wire.Channel(ends.harness, session)
    ends.raw.send(garbage)
    session.send(ends.kernel, "status", {"execution_state": "idle"})  # type: ignore[arg-type]

    async def until_status() -> int:
        for skipped in range(3):
            if (await channel.get_msg(timeout=5))["msg_type"] == "status":
                return skipped
        raise AssertionError("it is lost")

    assert ends.loop.run_until_complete(until_status()) <= 1


def test_descriptors_that_are_sent_are_nobodys(ends: Ends) -> None:
    before = len(os.listdir("/proc/self/fd"))
    null = os.open(os.devnull, os.O_RDONLY)
    socket.send_fds(ends.raw, [b"garbage"], [null])
    os.close(null)
    ends.kernel.send_multipart([b"a"])
    assert ends.next() == [b"a"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_nobody_is_there(ends: Ends) -> None:
    ends.harness.close()
    ends.kernel.send_multipart([b"lost"])
    assert ends.kernel.receive() is None
    assert ends.kernel.over


def test_a_wire_that_has_ended_is_waited_for_quietly(ends: Ends) -> None:
    ends.kernel.send_multipart([b"last"])
    ends.kernel.close()
    assert ends.next() == [b"last"]

    async def wait() -> tuple[int, int]:
        used = time.process_time()
        both = await asyncio.gather(ends.harness.poll(200), ends.harness.poll(200))
        assert time.process_time() - used < 0.1
        return both[0], both[1]

    assert ends.loop.run_until_complete(wait()) == (0, 0)
    ends.harness.send_multipart([b"lost"])


def test_two_wait_for_one_wire(ends: Ends) -> None:
    """As the executor does, and the clock's abort."""

    async def both() -> list[list[bytes]]:
        waiting = [asyncio.ensure_future(ends.harness.recv_multipart()) for _ in range(2)]
        await asyncio.sleep(0.01)
        gone = asyncio.ensure_future(ends.harness.poll())
        await asyncio.sleep(0.01)
        gone.cancel()
        ends.kernel.send_multipart([b"1"])
        ends.kernel.send_multipart([b"2"])
        return await asyncio.wait_for(asyncio.gather(*waiting), 5)

    assert sorted(ends.loop.run_until_complete(both())) == [[b"1"], [b"2"]]


def test_told_not_to_wait(ends: Ends) -> None:
    with pytest.raises(zmq.Again):
        ends.loop.run_until_complete(ends.harness.recv_multipart(zmq.NOBLOCK))
    ends.kernel.send_multipart([b"a"])
    assert ends.loop.run_until_complete(ends.harness.recv_multipart(zmq.NOBLOCK)) == [b"a"]
