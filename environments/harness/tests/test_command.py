"""Commands of a session, started here as the one who runs the tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wire import Recorder

from harness.job import clock, command
from harness.job.clock import Clock
from harness.job.command import Command, Leftovers, Output
from harness.stream import frames
from harness.system.grace import Grace

PATIENCE = 30.0  # seconds until a busy host is taken for a failure
LONG = 600.0  # seconds: not in these tests

started: list[int] = []


def spawn(arguments: list[str], env: dict[str, str], folder: str, out: int, err: int) -> int:
    process = subprocess.Popen(
        arguments,
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
    )
    started.append(process.pid)
    process.returncode = 0  # who waits for it is the command
    return process.pid


def own_group(pid: int, number: int) -> None:
    assert pid in started
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(command, "spawn", spawn)
    monkeypatch.setattr(command, "signal_group", own_group)
    monkeypatch.setattr(command, "as_user", contextlib.nullcontext)
    monkeypatch.setattr(command, "pipe", os.pipe)
    monkeypatch.setattr(command, "DATA", "/")
    started.clear()
    yield
    for pid in started:
        own_group(pid, signal.SIGKILL)


class Run:
    """A command that has ended."""

    def __init__(self, line: str, budget: int = 1 << 20, seconds: float = LONG) -> None:
        self.sent, self.cell, self.left = Recorder(), dict[str, Any](), Leftovers()
        env = {"PATH": os.environ["PATH"], "A": "from the session"}
        running = Command(line, env)
        self.clock = Clock(running, seconds, lambda: None, in_session=True)
        self.output = Output(self.sent, 3, self.cell, budget, self.clock)
        self.clock.start()
        self.code = running.run(self.output, self.left)
        self.clock.finish()
        self.output.finish()

    def outputs(self) -> list[tuple[str, str]]:
        return [(o["name"], o["text"]) for o in self.cell["outputs"]]


def test_streams() -> None:
    run = Run('echo "$A"; sleep 0.2; echo err >&2; sleep 0.2; echo $PWD; cat; tty; exit 3')
    assert run.code == 3
    assert run.outputs() == [
        ("stdout", "from the session\n"),
        ("stderr", "err\n"),
        ("stdout", "/\nnot a tty\n"),
    ]
    events = run.sent.of(frames.EVENT)
    assert {(e["kind"], e["cell"], e["output"]["output_type"]) for e in events} == {
        ("output", 3, "stream")
    }
    assert "".join(e["output"]["text"] for e in events) == "from the session\nerr\n/\nnot a tty\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [("true", 0), ("false", 1), ("exit 255", 255), ("kill -9 $$", 137), ("no-such-command", 127)],
)
def test_exit_code(line: str, code: int) -> None:
    assert Run(line).code == code


def test_bytes_that_are_no_text() -> None:
    run = Run(r"printf '\303'; sleep 0.2; printf '\274\377ok\303'")
    assert run.outputs() == [("stdout", "ü\ufffdok\ufffd")]


def test_much_output_at_the_end() -> None:
    assert Run("head -c 300000 /dev/zero | tr '\\0' x").outputs() == [("stdout", "x" * 300000)]


def test_output_that_the_command_takes_itself() -> None:
    thief = "exec 3<>/dev/stdout; cat <&3 >/dev/null & cat=$!"
    loop = "for i in {1..500}; do echo x; done"
    run = Run(f"{thief}; {loop}; kill $cat; echo e >/dev/stderr; exit 4")
    assert run.code == 4
    assert ("stderr", "e\n") in run.outputs()


def test_too_much_output() -> None:
    run = Run("yes ü; true", budget=1000)
    assert run.clock.reason == "output_limit"
    ((name, text),) = run.outputs()
    assert name == "stdout"
    assert 0 < len(text.encode()) <= 1000
    assert run.code == 128 + signal.SIGINT


def test_what_is_left_in_the_background_is_not_stopped() -> None:
    begun = time.monotonic()
    run = Run("(sleep 0.3; head -c 1000000 /dev/zero; echo done >&2; exec sleep 1000) & echo $!")
    assert time.monotonic() - begun < PATIENCE
    assert run.code == 0
    assert len(run.left._fds) == 2
    time.sleep(1)
    (pid,) = [int(text) for _, text in run.outputs()]
    os.kill(pid, 0)  # it did not end by its pipe
    own_group(started[-1], signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while run.left._fds and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not run.left._fds, "pipes that nobody writes to are closed"


def test_number_of_pipes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_LEFT", 2)
    left, writers = Leftovers(), []
    for _ in range(3):
        reading, writing = os.pipe()
        left.add(reading)
        writers.append(writing)
    assert len(left._fds) == 2
    with pytest.raises(BrokenPipeError):
        os.write(writers[0], b"x")
    for writing in writers:
        os.close(writing)


class Target:
    def __init__(self, interrupts: bool = True) -> None:
        self.interrupts = interrupts
        self.done: list[str] = []

    def interrupt(self) -> None:
        self.done.append("interrupt")

    def kill(self) -> None:
        self.done.append("kill")


def clocks(wall: list[float]) -> dict[str, Callable[[], Any]]:
    """Return the clocks of a grace in a sandbox where nothing can run."""
    return {"wall": lambda: wall[0], "cpu_ns": lambda: 1, "can_run": lambda: False}


def test_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [0.0]
    monkeypatch.setattr(clock, "Grace", lambda seconds, most: Grace(seconds, most, **clocks(wall)))
    target, roused = Target(), []
    one = Clock(target, 0.05, lambda: roused.append(1), in_session=True)
    one.interrupt()
    time.sleep(0.06)
    one.act()
    assert (target.done, one.reason, roused) == ([], "", []), "it has not started"
    one.start()
    one.interrupt()
    one.act()
    assert target.done == ["interrupt"], "nothing is due"
    time.sleep(0.06)
    one.act()
    assert (target.done, one.reason) == (["interrupt"] * 2, "timeout")
    one.stop("cancelled")
    one.act()
    assert (target.done, one.reason) == (["interrupt"] * 2, "timeout"), "the first reason stays"
    wall[0] = clock.GRACE_SECONDS
    time.sleep(clock.LOOK_SECONDS)
    one.act()
    one.act()
    assert target.done == ["interrupt"] * 2 + ["kill"]
    one.finish()
    one.interrupt()
    assert target.done == ["interrupt"] * 2 + ["kill"]


def test_clock_that_cannot_be_interrupted() -> None:
    target = Target(interrupts=False)
    one = Clock(target, LONG, lambda: None, in_session=True)
    one.start()
    one.stop("timeout")
    one.act()
    assert target.done == ["interrupt", "kill"], "it is not waited for"


def test_clock_that_is_stopped_before_it_runs() -> None:
    target = Target()
    one = Clock(target, LONG, lambda: None, in_session=True)
    one.stop("cancelled")
    assert target.done == []
    one.start()
    assert (target.done, one.reason) == (["interrupt"], "cancelled")


def test_clock_that_ends_with_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[float] = []
    monkeypatch.setattr(clock, "kill_user", killed.append)
    one = Clock(Target(), LONG, lambda: None, in_session=True)
    one.start()
    one.restart()
    assert (len(killed), one.reason, one.restarted) == (1, "killed", True)
    other = Clock(Target(), LONG, lambda: None, in_session=True)
    other.start()
    other.finish()
    other.restart()
    assert (len(killed), other.reason, other.restarted) == (1, "", False), "it is over"
