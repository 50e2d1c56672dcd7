"""A run from its notebook to its end, with a kernel that is a notepad."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_notebook
from wire import Recorder, frame

from harness import single
from harness.job import listener
from harness.job.clock import Clock
from harness.job.job import Job
from harness.kernel.choice import Choice
from harness.stream import frames

PATIENCE = 10.0  # seconds until a busy host is taken for a failure


class Scene(Recorder):
    """What is around the run, the service too, and a list of what was done."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []
        self.reading, self.service = os.pipe()
        self.listening, self.client = os.pipe()
        self.ended: Callable[[], None]
        self.cells: Callable[[Clock], None] = lambda _: None
        self.killing: Callable[[], None] = lambda: None
        self.starting: Callable[[], None] = lambda: None

    def write(self, kind: bytes, payload: bytes = b"") -> None:
        super().write(kind, payload)
        if kind == frames.DONE:
            self.done.append("done")
            self.hang_up()

    def hang_up(self) -> None:
        if self.service >= 0:
            os.close(self.service)
            self.service = -1

    def kill_user(self, _: float) -> bool:
        self.done.append("kill")
        self.killing()
        return True

    def start_display(self) -> None:
        self.done.append("display")
        self.starting()

    def watch(self, ended: Callable[[], None]) -> None:
        self.ended = ended

    def run(self) -> None:
        """Do a run, up to the end of the last of its threads."""
        others = set(threading.enumerate())
        notebook = nbformat.writes(new_notebook()).encode()
        os.write(self.service, frame(frames.NOTEBOOK_IN, notebook) + frame(frames.GO))
        job = Job(len(notebook), [], {}, True, 60.0, 1 << 20, 1, 1)
        kernel: Any = SimpleNamespace(
            choice=Choice(finishes=False), watch=self.watch, step_aside=lambda: None
        )
        display: Any = SimpleNamespace(fileno=lambda: self.listening, start=self.start_display)
        single.run(frames.Reader(self.reading), self, kernel, display, job, early=[])
        for thread in set(threading.enumerate()) - others:
            thread.join(PATIENCE)


@pytest.fixture
def scene(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    scene = Scene()
    executor = SimpleNamespace(
        execute_notebook=lambda _, clock: scene.cells(clock),
        errors=[], broken=False, quiet=False, dropped=[],
    )  # fmt: skip
    monkeypatch.setattr(single, "suited", lambda kernel, *_, **__: kernel)
    monkeypatch.setattr(single.Executor, "of", lambda *_: executor)
    monkeypatch.setattr(single, "kill_user", scene.kill_user)
    monkeypatch.setattr(single, "collect", lambda *_: True)
    monkeypatch.setattr(listener, "end", lambda _: None)
    yield scene
    scene.hang_up()
    for fd in (scene.reading, scene.listening, scene.client):
        os.close(fd)


def test_kernel_that_ends(scene: Scene) -> None:
    told: list[bool] = []

    def cells(clock: Clock) -> None:
        clock.abort = lambda: told.append(clock.kernel_ended)
        scene.ended()

    scene.cells = cells
    scene.run()
    assert told == [True]
    assert scene.of(frames.OUTCOME)[0]["status"] == "killed"
    assert scene.done == ["kill", "done"]


def test_program_that_connects_to_the_display_as_it_is_killed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = threading.Event()
    monkeypatch.setattr(listener.Listener, "_frame", lambda *_: heard.set())

    def killing() -> None:
        os.write(scene.client, b"x")
        os.write(scene.service, frame(frames.PING))
        assert heard.wait(PATIENCE), "what was there to be read was seen with this"

    scene.killing = killing
    scene.run()
    assert scene.done == ["kill", "done"], "no process is started once all were killed"


def test_display_that_is_being_started_as_all_is_killed(scene: Scene) -> None:
    begun, killed = threading.Event(), threading.Event()

    def cells(_: Clock) -> None:
        os.write(scene.client, b"x")
        assert begun.wait(PATIENCE)

    def starting() -> None:
        begun.set()
        assert killed.wait(PATIENCE)
        scene.done.append("fork")

    scene.cells, scene.starting, scene.killing = cells, starting, killed.set
    scene.run()
    assert scene.done == ["display", "kill", "fork", "kill", "done"]
