from __future__ import annotations

import codecs
import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

import pytest
from nbformat.v4 import new_notebook
from wire import Recorder, frame, stream

from harness import single
from harness.job import job, prepare
from harness.kernel import warm
from harness.kernel.choice import Choice
from harness.stream import awaiting, frames
from harness.system import cgroup

JOB = {
    "notebook_bytes": 10,
    "inputs": ["a"],
    "env": {"A": "b"},
    "stop_on_error": True,
    "timeout_seconds": 1.5,
    "max_output": 1,
    "max_files": 2,
    "max_file_bytes": 3,
}


@dataclass(frozen=True)
class End:
    desc: str
    status: str
    reason: str = ""
    died: bool = False
    oom: bool = False
    errors: list[str] = field(default_factory=list)


MEMORY = ["MemoryError"]

ENDS = [
    End("nothing happened", "ok"),
    End("an exception", "error", errors=["ValueError"]),
    End("several exceptions", "error", errors=["ValueError", "KeyError"]),
    End("an exception without a name", "error", errors=[""]),
    End("a name that only begins like it", "error", errors=["MemoryErrorOfMine"]),
    End("the kernel died", "killed", died=True),
    End("it died after an exception", "killed", died=True, errors=["ValueError"]),
    End("MemoryError", "out_of_memory", errors=MEMORY),
    End("MemoryError among others", "out_of_memory", errors=["KeyError", *MEMORY, "KeyError"]),
    End("NumPy's own", "out_of_memory", errors=["_ArrayMemoryError"]),
    End("NumPy's own, with its module", "out_of_memory", errors=["numpy._core.MemoryError"]),
    End("a process was killed for memory", "out_of_memory", oom=True),
    End("the kernel was", "out_of_memory", oom=True, died=True),
    End("a worker was, and an exception followed", "out_of_memory", oom=True, errors=["OSError"]),
    End("time is over", "timeout", "timeout"),
    End("time is over, interrupted", "timeout", "timeout", errors=["KeyboardInterrupt"]),
    End("time is over, the kernel was killed", "timeout", "timeout", died=True),
    End("a worker died of memory, the rest hung", "out_of_memory", "timeout", oom=True),
    End("MemoryError, then the rest hung", "out_of_memory", "timeout", errors=MEMORY),
    End("cancelled", "cancelled", "cancelled"),
    End("cancelled, the kernel was killed", "cancelled", "cancelled", died=True),
    End("all at once, cancelled", "cancelled", "cancelled", True, True, MEMORY),
    End("too much output", "output_limit", "output_limit"),
    End("too much output, the kernel was killed", "output_limit", "output_limit", died=True),
    End("all at once, too much output", "output_limit", "output_limit", True, True, MEMORY),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.desc)
def test_status(end: End) -> None:
    assert job.status(end.reason, end.died, end.oom, end.errors) == end.status


def test_environment_is_not_the_harness_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/opt/venv/bin:/usr/bin")
    monkeypatch.setenv("NOTEBOX_SECRET", "planted")
    env = warm.environment({})
    assert "planted" not in env.values()
    assert env["PATH"] == "/opt/venv/bin:/usr/bin"
    assert env["HOME"].startswith("/tmp/")
    assert env["USER"] == env["LOGNAME"] == "sandbox"


def test_environment_of_the_request() -> None:
    base, env = warm.environment({}), warm.environment({"A": "b c\nü", "LANG": "de_DE"})
    assert env == base | {"A": "b c\nü", "LANG": "de_DE"}
    assert warm.environment({}) == base, "one request's is not the next one's"


def test_job_after_pings() -> None:
    sent = frame(frames.PING) * 3 + frame(frames.HURRY) + frame(frames.JOB, JOB)
    with stream(sent) as (reader, _):
        assert json.loads(awaiting.await_frame(reader, frames.JOB)) == JOB


def test_silence_before_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "IDLE_SECONDS", 0.5)
    with stream() as (reader, _), subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as kernel:
        waited: list[float] = []
        monkeypatch.setattr(reader, "read", lambda: waited.append(0))
        with pytest.raises(frames.StreamClosed):
            awaiting.await_frame(reader, frames.JOB, kernel.pid)
        assert waited == [], "it does not wait once more"


@pytest.mark.parametrize("kind", [frames.GO, frames.NOTEBOOK_IN, frames.CANCEL, b"?"])
def test_anything_else_before_a_job(kind: bytes) -> None:
    with stream(frame(kind)) as (reader, _), pytest.raises(frames.ProtocolError):
        awaiting.await_frame(reader, frames.JOB)


@pytest.mark.parametrize(
    ("desc", "parts"),
    [
        ("empty", []),
        ("one part", ["{}"]),
        ("several parts", ["{", '"a"', ": ", "1}"]),
        ("not ASCII", ["ü😀\0\r\n"]),
    ],
)
def test_notebook(desc: str, parts: list[str]) -> None:
    sent = b"".join(frame(frames.PING) + frame(frames.NOTEBOOK_IN, part.encode()) for part in parts)
    whole = "".join(parts)
    with stream(sent + frame(frames.GO)) as (reader, _):
        assert awaiting.await_notebook(reader, len(whole.encode())) == whole
        assert reader.read() == (frames.GO, b"")


def test_character_in_two_parts() -> None:
    sent = frame(frames.NOTEBOOK_IN, b"\xc3") + frame(frames.NOTEBOOK_IN, b"\xbc")
    with stream(sent) as (reader, _):
        assert awaiting.await_notebook(reader, 2) == "ü"


def test_anything_else_before_the_notebook_s_end() -> None:
    sent = frame(frames.NOTEBOOK_IN, b"{") + frame(frames.GO)
    with stream(sent) as (reader, _), pytest.raises(frames.ProtocolError, match="b'G'"):
        awaiting.await_notebook(reader, 2)


@pytest.mark.parametrize(
    ("desc", "text", "written"),
    [
        ("none", "ü😀", "ü😀"),
        ("one", "a\ud800ü", "a\ufffdü"),
        ("two apart", "\udfffa\ud800", "\ufffda\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced(desc: str, text: str, written: str) -> None:  # B7
    codecs.register_error("ufffd", prepare.replacement)
    assert text.encode("utf-8", "ufffd").decode() == written


class Part:
    """Stands for the executor, the clock and the kernel, and notes what is done."""

    def __init__(
        self, reason: str = "", died: bool = False, quiet: bool = False, finishes: bool = True
    ) -> None:
        self.choice = Choice(finishes=finishes)
        self.reason, self.kernel_ended, self.errors = reason, died, ["ValueError"]
        self.broken, self.quiet = False, quiet
        self.dropped = [{"path": "cell 0", "reason": "too large"}]
        self.done: list[str] = []

    def execute_notebook(self, nb: object, clock: object) -> None:
        self.done.append("execute")

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.done.append(name) or True


EMPTY = new_notebook()


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (Part(), "error"),
        (Part("timeout"), "timeout"),
        (Part(died=True), "killed"),
        (Part("timeout", died=True), "timeout"),
        (Part("cancelled"), "cancelled"),
        (Part("output_limit"), "output_limit"),
    ],
)
def test_outcome(run: Part, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = iter([cgroup.Usage(1000, 50, 2), cgroup.Usage(4000, 70, 2)])
    monkeypatch.setattr(cgroup, "read", lambda: next(usage))
    nb, outcome = job.run_cells(lambda: run.done.append("read") or EMPTY, run, run)
    assert run.done == ["start", "read", "execute", "finish"]
    assert nb is EMPTY
    assert 0 <= outcome.pop("wall_ns") < 10**9
    assert outcome == {"status": status, "cpu_ns": 3000, "peak_memory": 70}


def test_process_that_was_killed_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = iter([cgroup.Usage(0, 0, 2), cgroup.Usage(0, 0, 3)])
    monkeypatch.setattr(cgroup, "read", lambda: next(usage))
    _, outcome = job.run_cells(lambda: EMPTY, Part(), Part())
    assert outcome["status"] == "out_of_memory"


ASKED = ["ask_to_end", "await_end", "kill_user"]
KILLED = ["step_aside", "kill_user"]


@pytest.mark.parametrize(
    ("desc", "used", "ends"),
    [("idle", awaiting.WAIT_CPU_NS // 2, False), ("at work", awaiting.WAIT_CPU_NS + 1, True)],
)
def test_what_waits_does_nothing(
    desc: str, used: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = iter((7, 7 + used))
    monkeypatch.setattr(cgroup, "cpu_ns", lambda: next(counter))
    with (
        stream(frame(frames.PING) + frame(frames.JOB)) as (reader, _),
        subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as kernel,
    ):
        waiting = kernel.pid
        if ends:
            with pytest.raises(RuntimeError, match="processor"):
                awaiting.await_frame(reader, frames.JOB, waiting)
        else:
            assert awaiting.await_frame(reader, frames.JOB, waiting) == b""


@pytest.mark.parametrize(
    ("desc", "run", "done"),
    [
        ("something is left to do", Part(), ASKED),
        ("nothing is", Part(quiet=True), KILLED),
        ("nothing ever is, in this language", Part(finishes=False), KILLED),
        ("interrupted", Part("timeout"), ASKED),
        (
            "interrupted, where the last cell to end left nothing",
            Part("timeout", quiet=True),
            ASKED,
        ),
        ("killed by itself", Part(died=True), KILLED),
        ("killed", Part("timeout", died=True), KILLED),
        ("cancelled", Part("cancelled"), KILLED),
        ("flooding", Part("output_limit"), KILLED),
    ],
)
def test_end_of_a_run(  # the kernel may write what it has buffered, but only where it can
    desc: str, run: Part, done: list[str], sent: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single, "kill_user", run.kill_user)
    single.finish(sent, new_notebook(), {"status": "ok"}, kernel=run, executor=run, clock=run)
    assert run.done == done
    assert [kind for kind, _ in sent.frames] == [
        frames.OUTCOME,
        frames.NOTEBOOK_OUT,
        frames.SKIPPED,
    ]


def test_process_that_does_not_go_away(sent: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "kill_user", lambda _: False)
    parts = {"kernel": Part(), "executor": Part(), "clock": Part()}
    with pytest.raises(RuntimeError, match="could not be killed"):
        single.finish(sent, new_notebook(), {"status": "ok"}, **parts)


def test_names_of_modules_imported_beforehand() -> None:
    early = ["numpy", "pandas"]
    for path in ("pandas.py", "numpy/__init__.py", "numpy/a.txt", "pandas.so"):
        assert prepare.shadow(["a.csv", path], early)
    assert not prepare.shadow([], early)
    assert not prepare.shadow(["pandas_data.csv", "pandas.csv", "sub/pandas.py", "json.py"], early)
