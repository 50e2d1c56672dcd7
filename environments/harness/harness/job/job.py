"""A job: what the service asks for, how it goes, and what is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import nbformat

from harness.job.clock import Clock
from harness.job.execute import Executor, errors_shown
from harness.stream import frames
from harness.system import cgroup


@dataclass(frozen=True)
class Job:
    """What the service asks for. The JSON names are those of the Go side."""

    notebook_bytes: int
    inputs: list[str]
    env: dict[str, str]
    stop_on_error: bool
    timeout_seconds: float
    max_output: int
    max_files: int
    max_file_bytes: int
    network: dict[str, str] | None = None  # {"ca": PEM}; not a session's
    command: str = ""  # a session's


class Meter:
    """What is used in the sandbox from now on."""

    def __init__(self) -> None:
        self._before, self._start = cgroup.read(), time.monotonic()

    def outcome(self, how: Callable[[bool], str]) -> dict[str, Any]:
        """Say how a job went; how returns its status, told whether memory ran out."""
        wall, after = time.monotonic() - self._start, cgroup.read()
        return {
            "status": how(after.oom_kills > self._before.oom_kills),
            "wall_ns": int(wall * 1e9),
            "cpu_ns": after.cpu_ns - self._before.cpu_ns,
            "peak_memory": after.peak_memory,
        }


Read = Callable[[], nbformat.NotebookNode]
"""Reads the notebook: a part of the job, as 25 MiB of JSON can take seconds. Called once."""


def run_cells(
    read: Read, executor: Executor, clock: Clock
) -> tuple[nbformat.NotebookNode, dict[str, Any]]:
    """Run the notebook; return what has become of it, and how it went."""
    meter = Meter()
    clock.start()
    nb = read()
    executor.execute_notebook(nb, clock)
    clock.finish()
    died = clock.kernel_ended or executor.broken
    errors = executor.errors + errors_shown(nb)
    return nb, meter.outcome(lambda oom: status(clock.reason, died, oom, errors))


def status(reason: str, died: bool, oom: bool, errors: list[str]) -> str:
    """Return how a run ended, the root cause first.

    A run whose worker was killed for memory may hang until its time is over, so
    that out_of_memory goes before timeout.
    """
    if reason in ("cancelled", "output_limit"):
        return reason
    if oom or any(name.endswith("MemoryError") for name in errors):
        return "out_of_memory"
    if reason:
        return reason
    if died:
        return "killed"
    return "error" if errors else "ok"


def tell(
    writer: frames.Writer,
    outcome: dict[str, Any],
    nb: nbformat.NotebookNode,
    dropped: list[dict[str, str]],
) -> None:
    """Send how a job went, its notebook, and the outputs that are not in there."""
    writer.write_json(frames.OUTCOME, outcome)
    # As nbformat.writes, which then looks whether it is valid, and only logs that.
    document = nbformat.versions[nb.nbformat].writes_json(nb)
    writer.write_chunks(frames.NOTEBOOK_OUT, document.encode("utf-8", "ufffd"))
    for report in dropped:
        writer.write_json(frames.SKIPPED, report)
