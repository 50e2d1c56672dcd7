"""The program inside every sandbox: python -I /opt/notebox.

 1. It starts a kernel as the user, says ready, and waits.
 2. A job comes: the notebook, input files, limits, and then go.
 3. nbconvert runs the cells; each output is passed on as it happens.
 4. The kernel may end by itself; then every process of the user is killed.
 5. The outcome goes back, the executed notebook, and the files that are new.

It serves one job and ends. Its own failures are a FAILED frame and exit code 1.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import nbformat

import cgroup
import files
import frames
from display import NAME, Display
from execute import Executor
from kernel import HOME, Kernel
from privileges import kill_user, run_as_user
from watchdog import Watchdog

PLACE_SECONDS = 120.0  # for input files to arrive: 512 MiB from a slow service
COLLECT_SECONDS = 60.0  # for new files to leave
KILL_SECONDS = 5.0


class BadEnvironmentError(Exception):
    """A kernel that has started does not start with the variables of the job."""


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


def main() -> None:
    # Only frames may go out through the stream: prints of libraries go to stderr.
    writer = frames.Writer(os.dup(1))
    os.dup2(2, 1)
    reader = frames.Reader(0)
    try:
        serve(reader, writer)
    except frames.StreamClosed:
        kill_user(KILL_SECONDS)
    except Exception as e:
        kill_user(KILL_SECONDS)
        env = isinstance(e, BadEnvironmentError)
        writer.write_json(frames.FAILED, {"message": f"{type(e).__name__}: {e}", "env": env})
        raise


def serve(reader: frames.Reader, writer: frames.Writer) -> None:
    name = os.environ.get("NOTEBOX_KERNEL", "python3")
    kernel = Kernel(name, environment({}))
    display = Display()
    writer.write_json(frames.READY, {"version": frames.VERSION, "kernel": name})
    job = await_job(reader)
    nb = nbformat.reads(await_notebook(reader, job.notebook_bytes), as_version=4)
    if job.env:
        # Some variables are read when an interpreter starts, or a library is loaded.
        kernel.close()
        try:
            kernel = Kernel(name, environment(job.env))
        except RuntimeError as e:
            raise BadEnvironmentError(str(e)) from e
    if status := run_as_user(lambda: files.place(reader), PLACE_SECONDS):
        raise RuntimeError(f"the input files could not be written ({status})")
    untouched = files.marks(job.inputs)

    executor = Executor(kernel, writer, job.stop_on_error, job.max_output)
    watchdog = Watchdog(reader, kernel, display, job.timeout_seconds, executor.abort)
    outcome = run_cells(nb, executor, watchdog, kernel)
    writer.write_json(frames.OUTCOME, outcome)
    writer.write_chunks(frames.NOTEBOOK_OUT, nbformat.writes(nb).encode("utf-8", "ufffd"))
    for report in executor.dropped:
        writer.write_json(frames.SKIPPED, report)
    collector = files.Collector(writer, untouched, job.max_files, job.max_file_bytes)
    status = run_as_user(collector.collect, COLLECT_SECONDS)
    writer.write_json(frames.DONE, {"collected": status == 0})
    wait_for_the_end(reader)


def environment(extra: dict[str, str]) -> dict[str, str]:
    """Return the environment of the kernel: nothing of the harness's own."""
    return {
        "HOME": HOME,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "DISPLAY": NAME,
        # Compiled modules of the user's are no files that a run has made.
        "PYTHONDONTWRITEBYTECODE": "1",
        **extra,
    }


def await_job(reader: frames.Reader) -> Job:
    while True:
        kind, payload = reader.read()
        if kind == frames.JOB:
            return Job(**json.loads(payload))
        if kind != frames.PING:
            raise frames.ProtocolError(f"{kind!r} before a job")


def await_notebook(reader: frames.Reader, size: int) -> str:
    data = bytearray()
    while len(data) < size:
        kind, payload = reader.read()
        if kind == frames.NOTEBOOK_IN:
            data += payload
        elif kind != frames.PING:
            raise frames.ProtocolError(f"{kind!r} before the notebook's end")
    return data.decode("utf-8")


def run_cells(
    nb: nbformat.NotebookNode, executor: Executor, watchdog: Watchdog, kernel: Kernel
) -> dict[str, Any]:
    """Run the notebook in place and end the user's processes; say how it went."""
    before = cgroup.read()
    start = time.monotonic()
    watchdog.start()
    executor.execute_notebook(nb, watchdog)
    watchdog.finish()
    wall = time.monotonic() - start
    died = watchdog.kernel_ended or executor.broken
    after = cgroup.read()
    if not died and watchdog.reason in ("", "timeout"):
        kernel.shut_down()
    if not kill_user(KILL_SECONDS):
        raise RuntimeError("a process of the user could not be killed")
    oom = after.oom_kills > before.oom_kills
    return {
        "status": status(watchdog.reason, died, oom, executor.errors),
        "wall_ns": int(wall * 1e9),
        "cpu_ns": after.cpu_ns - before.cpu_ns,
        "peak_memory": after.peak_memory,
    }


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


def wait_for_the_end(reader: frames.Reader) -> None:
    """Stay until the service closes the stream, so that nothing of it is lost."""
    while True:
        reader.read()


def replacement(e: UnicodeError) -> tuple[bytes, int]:
    """Encode what UTF-8 has no place for, a lone surrogate, as U+FFFD."""
    assert isinstance(e, UnicodeEncodeError)
    return "\ufffd".encode() * (e.end - e.start), e.end


codecs.register_error("ufffd", replacement)

if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
