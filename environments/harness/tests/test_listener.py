"""The listener and its clock, with a service that is a pipe and a kernel that is a notepad."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from wire import frame

from harness.dispatch import Dispatcher
from harness.job import clock, listener
from harness.job.clock import Clock
from harness.job.listener import GENTLY, Listener
from harness.stream import frames
from harness.stream.intake import Intake

GRACE = 0.2  # seconds, instead of one
LONG = 60.0  # seconds: not in these tests
PATIENCE = 10.0  # seconds until a busy host is taken for a failure


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


class Scene:
    """A listener with its surroundings, and a list of what it did, and when."""

    def __init__(self) -> None:
        self.reading, self.service = os.pipe()
        self.done: list[tuple[str, float]] = []
        self.over = False
        self.interrupts = True
        self.start = time.monotonic()
        self.listening, self.client = os.pipe()
        self.display = False
        self.listener: Listener
        self.clock: Clock

    def watch(self, seconds: float = LONG, display: bool = False, network: Any = None) -> Clock:
        kernel = SimpleNamespace(
            interrupts=self.interrupts,
            interrupt=lambda: self.interrupts and self.note("interrupt"),
            kill=lambda: self.note("kill"),
        )
        self.display = display
        screen = SimpleNamespace(
            fileno=lambda: self.listening if self.display else -1,
            start=self.start_display,
        )
        self.start = time.monotonic()
        self.listener = Listener(self.reading, screen, network, silence=frames.IDLE_SECONDS)
        self.clock = Clock(kernel, seconds, self.listener.rouse)
        self.clock.abort = lambda: self.note("abort")
        self.listener.clock = self.clock
        run = self.listener.run

        def until_exit() -> None:
            with contextlib.suppress(SystemExit):
                run()

        self.listener.run = until_exit  # type: ignore[method-assign]
        self.listener.start()
        self.clock.start()
        return self.clock

    def note(self, what: str) -> None:
        if not self.over:
            self.done.append((what, time.monotonic() - self.start))

    def start_display(self) -> None:
        self.display = False  # who listens there is the server now
        self.note("display")

    def exit(self, code: int) -> None:
        self.note(f"exit {code}")
        self.over = True  # nothing is done by a process that is no more
        raise SystemExit

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        os.write(self.service, frame(kind, payload))

    def hang_up(self) -> None:
        if self.service >= 0:
            os.close(self.service)
            self.service = -1

    def names(self) -> list[str]:
        return [what for what, _ in self.done]

    def until(self, *names: str) -> None:
        """Wait until these things are done, in this order, and no others."""
        deadline = time.monotonic() + PATIENCE
        while self.names() != list(names) and time.monotonic() < deadline:
            time.sleep(0.005)
        assert self.names() == list(names)

    def when(self, what: str) -> float:
        return dict(self.done)[what]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    scene = Scene()
    monkeypatch.setattr(clock, "GRACE_SECONDS", GRACE)
    monkeypatch.setattr(listener, "kill_user", lambda _: scene.note("kill"))
    monkeypatch.setattr(os, "_exit", scene.exit)
    yield scene
    scene.hang_up()
    scene.listener.join()
    for fd in (scene.reading, scene.listening, scene.client):
        os.close(fd)


def test_time_is_over(scene: Scene) -> None:
    timer = scene.watch(0.1)
    scene.until("interrupt", "kill")
    assert timer.reason == "timeout"
    assert scene.when("interrupt") >= 0.1
    assert scene.when("kill") - scene.when("interrupt") >= GRACE - 0.01
    time.sleep(0.1)
    timer.finish()
    assert scene.names() == ["interrupt", "kill"], "and once is enough"


def test_code_that_takes_the_interrupt(scene: Scene) -> None:
    timer = scene.watch(0.05)
    scene.until("interrupt")
    timer.finish()
    time.sleep(GRACE + 0.05)
    assert scene.names() == ["interrupt"]
    assert timer.reason == "timeout"


def test_run_that_ends_in_time(scene: Scene) -> None:
    timer = scene.watch(0.2)
    timer.finish()
    assert scene.listener.is_alive(), "the service is heard up to the end"
    assert time.monotonic() - scene.start < 0.2, "it does not wait for its clock"
    time.sleep(0.25)
    assert (timer.reason, scene.done) == ("", [])


@pytest.mark.parametrize("frame_before", [None, frames.PING, frames.INPUT])
def test_cancel(frame_before: bytes | None, scene: Scene) -> None:
    timer = scene.watch()
    if frame_before:
        scene.send(frame_before)
    scene.send(frames.CANCEL)
    scene.until("kill")
    assert timer.reason == "cancelled"


def test_cancel_gently(scene: Scene) -> None:
    timer = scene.watch()
    scene.send(frames.CANCEL, GENTLY)
    scene.until("interrupt", "kill")
    assert timer.reason == "cancelled"


def test_too_much_output(scene: Scene) -> None:
    timer = scene.watch()
    timer.stop("output_limit")
    scene.until("kill")
    assert timer.reason == "output_limit"


def test_what_cannot_be_interrupted_is_killed_at_once(scene: Scene) -> None:
    scene.interrupts = False
    timer = scene.watch(0.05)
    scene.until("kill")
    assert timer.reason == "timeout"


def test_first_reason_stays(scene: Scene) -> None:
    timer = scene.watch(0.05)
    scene.until("interrupt")
    timer.stop("output_limit")
    scene.send(frames.CANCEL)
    scene.until("interrupt", "kill")
    assert timer.reason == "timeout"
    assert scene.when("kill") - scene.when("interrupt") >= GRACE - 0.01, "the grace stays, too"


def test_no_reason_after_the_end(scene: Scene) -> None:
    taken: list[bytes] = []
    timer = scene.watch(network=SimpleNamespace(receive=taken.append))
    timer.finish()
    timer.stop("output_limit")
    scene.send(frames.CANCEL)
    scene.send(frames.CHANNEL)
    wait_for(lambda: taken)  # and what came before it
    assert (timer.reason, scene.done) == ("", [])


def test_pings_keep_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "IDLE_SECONDS", 0.5)
    timer = scene.watch()
    for _ in range(8):
        time.sleep(0.1)
        scene.send(frames.PING)
    timer.finish()
    assert scene.done == []


@pytest.mark.parametrize("pings", [0, 1])
def test_silence_ends_the_sandbox(
    pings: int, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "IDLE_SECONDS", 0.2)
    scene.watch()
    for _ in range(pings):
        time.sleep(0.1)
        scene.send(frames.PING)
    scene.until("kill", "exit 0")
    assert scene.when("exit 0") >= 0.2 + 0.1 * pings


def test_silence_after_the_interrupt(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(clock, "GRACE_SECONDS", LONG)
    scene.watch(0.05)
    scene.until("interrupt", "kill", "exit 0")


@pytest.mark.parametrize(
    ("desc", "data"),
    [
        ("closed", b""),
        ("closed in a frame", frame(frames.PING)[:3]),
        ("another version", b"\x02P\0\0\0\0"),
        ("a frame of 4 GiB", b"\x01P\xff\xff\xff\xff"),
    ],
)
def test_service_that_is_gone(desc: str, data: bytes, scene: Scene) -> None:
    scene.watch()
    os.write(scene.service, data)
    scene.hang_up()
    scene.until("kill", "exit 0")
    assert scene.when("exit 0") < PATIENCE


def test_listener_that_fails(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("can't start new thread")

    scene.watch(display=True)
    monkeypatch.setattr(threading, "Thread", fail)
    os.write(scene.client, b"x")
    scene.until("kill", "exit 1")


def test_kernel_that_ends(scene: Scene) -> None:
    timer = scene.watch()
    assert not timer.kernel_ended
    timer.lost_kernel()
    assert timer.kernel_ended
    assert scene.names() == ["abort"]
    assert timer.reason == "", "nobody ended the run"


def test_display_that_does_not_start_holds_nothing_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(scene, "start_display", stopped.wait)
    scene.watch(0.3, display=True)
    os.write(scene.client, b"x")
    scene.until("interrupt", "kill")
    stopped.set()


def test_display_starts_when_a_program_connects(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bytes] = []
    up = threading.Event()

    def start() -> None:
        scene.note("display")
        up.wait(PATIENCE)  # until then there is something to read at its socket
        scene.display = False

    monkeypatch.setattr(scene, "start_display", start)
    timer = scene.watch(display=True, network=SimpleNamespace(receive=taken.append))
    time.sleep(0.05)
    assert scene.done == [], "it costs nothing until then"
    os.write(scene.client, b"x")
    scene.until("display")
    for turns in (1, 2):
        scene.send(frames.CHANNEL)
        wait_for(lambda turns=turns: len(taken) == turns)
    up.set()
    wait_for(lambda: not scene.display)
    os.write(scene.client, b"x")
    timer.finish()
    assert scene.names() == ["display"], "once"


def test_what_comes_for_the_network_goes_there(scene: Scene) -> None:
    got: list[bytes] = []
    scene.watch(network=SimpleNamespace(receive=got.append))
    os.write(scene.service, frame(frames.CHANNEL, b"one") + frame(frames.PING))
    os.write(scene.service, frame(frames.CHANNEL, b"two"))
    wait_for(lambda: len(got) >= 2)
    assert got == [b"one", b"two"]


def test_without_a_network_it_is_passed_over(scene: Scene) -> None:
    timer = scene.watch()
    os.write(scene.service, frame(frames.CHANNEL, b"x"))
    scene.send(frames.CANCEL)
    scene.until("kill")
    assert timer.reason == "cancelled"


@pytest.mark.parametrize(("session", "code"), [(False, 0), (True, 1)])
def test_stream_that_cannot_be_read(
    session: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service is gone, for a run without a word; a session's harness tells of it."""
    codes: list[int] = []
    monkeypatch.setattr(listener, "end", codes.append)
    fd, display, parts = os.open("/", os.O_RDONLY), SimpleNamespace(fileno=lambda: -1), [None] * 2
    try:
        if session:
            intake = Intake(bytes(frames.TOKEN_SIZE))
            Dispatcher(fd, intake, *parts, channels=None, display=display).run()
        else:
            Listener(fd, display).run()
    finally:
        os.close(fd)
    assert codes == [code]
    assert ("IsADirectoryError" in capsys.readouterr().err) is session
