"""Serves one job, from the start of the sandbox to its end.

 1. The service says what to import beforehand; a kernel is forked, as the user.
 2. The harness says ready, and waits.
 3. A job comes: the notebook, input files, limits, and then go.
 4. nbconvert runs the cells; each output is passed on as it happens.
 5. The kernel may end by itself; then every process of the user is killed.
 6. The outcome goes back, the executed notebook, and the files that are new.

Its own failures are a FAILED frame and exit code 1.
"""

from __future__ import annotations

import codecs
import json
import os
import select
import time
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from typing import TYPE_CHECKING, Any

import nbformat

from harness.files import collector, elsewhere
from harness.job.execute import Executor, errors_shown, practise, run_silently, tell_kernel
from harness.job.listener import Watchdog
from harness.kernel import warm
from harness.kernel.choice import Choice
from harness.kernel.process import SERVICE, Kernel, SilentKernelError
from harness.stream import frames
from harness.stream.channels import Channels
from harness.stream.network import Proxy
from harness.system import cgroup
from harness.system.display import Display
from harness.system.privileges import KILL_SECONDS, kill_user, run_as_user

if TYPE_CHECKING:
    from harness.job.clock import Step

PLACE_SECONDS = 120.0  # for input files to arrive: 512 MiB from a slow service
COLLECT_SECONDS = 60.0  # for new files to leave
WAIT_CPU_NS = 2_000_000_000  # that a sandbox may use while it waits for a job


class BadEnvironmentError(Exception):
    """A kernel that has started does not start with the variables of the job."""


class BadPackagesError(Exception):
    """No kernel starts with the packages that a caller has chosen."""


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


def main() -> None:
    # Only frames may go out through the stream: prints of libraries go to stderr.
    writer = frames.Writer(os.dup(1))
    os.dup2(2, 1)
    reader = frames.Reader(SERVICE)
    try:
        serve(reader, writer)
    except frames.StreamClosed:
        kill_user(KILL_SECONDS)
    except Exception as e:
        kill_user(KILL_SECONDS)
        report = {
            "message": f"{type(e).__name__}: {e}",
            "env": isinstance(e, BadEnvironmentError),
            "packages": isinstance(e, BadPackagesError),
        }
        writer.write_json(frames.FAILED, report)
        raise


def serve(reader: frames.Reader, writer: frames.Writer) -> None:
    choice = Choice.read(await_frame(reader, frames.WARM))
    kernel, early = first_kernel(choice, reader)
    display = Display()
    writer.write_json(frames.READY, {"version": frames.VERSION})
    kind, payload = next_frame(reader, (frames.JOB, frames.SESSION), kernel)
    if kind == frames.SESSION:
        from harness.session import Session, Terms  # which a run does without

        Session(reader.fd, writer, kernel, display, Terms.read(payload)).run()
    job = Job(**json.loads(payload))
    begun = cgroup.read().cpu_ns
    nb = nbformat.reads(await_notebook(reader, job.notebook_bytes), as_version=4)
    proxy, network = {}, None
    if job.network is not None:
        door = Proxy(**job.network)
        proxy, network = door.environment(), Channels(lambda: writer, door.listener)
    told = choice.is_python  # also of what is new to it
    if job.env or shadow(job.inputs, early) or kernel.has_ended() or (proxy and not told):
        # Some variables are read when an interpreter starts, or a library is loaded; and
        # a file named like a library is to be imported instead of it.
        kernel.close()
        try:
            kernel = Kernel(choice, choice.environment(proxy | job.env))
        except RuntimeError as e:
            raise BadEnvironmentError(str(e)) from e
    elif proxy:
        # Programs and libraries look at these when they connect, not when they start.
        tell_kernel(kernel, proxy)
    place(reader, job)
    untouched = collector.marks(job.inputs)
    since = time.time_ns()

    executor = Executor(kernel, writer, job.stop_on_error, job.max_output)
    watchdog = Watchdog(
        reader, kernel, display, job.timeout_seconds, executor.abort, network=network
    )
    if network:
        network.start()
    outcome = run_cells(nb, executor, watchdog)
    if network:
        network.stop()
    finish(writer, nb, Run(kernel, executor, watchdog), outcome)
    collected = collect(writer, untouched, since, job)
    cpu = cgroup.read().cpu_ns - begun  # with what a kernel does at its start and its end
    writer.write_json(frames.DONE, {"collected": collected, "cpu_ns": cpu})
    wait_for_the_end(reader)


def first_kernel(choice: Choice, reader: frames.Reader) -> tuple[Kernel, list[str]]:
    """Return a kernel that has done what it is to do before a job, and what it has imported."""
    try:
        kernel = Kernel(choice, choice.environment(), first=True)
        warm.after_fork()
        codecs.register_error("ufffd", replacement)  # not in the kernel
        return kernel, practise(kernel) if choice.is_python else warm_up(kernel, reader.fd)
    except RuntimeError as e:
        if choice.packages and not isinstance(e, SilentKernelError):
            raise BadPackagesError(str(e)) from e
        raise


def warm_up(kernel: Kernel, fd: int) -> list[str]:
    """Run the cells that every run is to find done, until the service says something."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    for cell in kernel.choice.cells:
        if poll.poll(0):
            break
        run_silently(kernel, cell)
    return []


def shadow(inputs: list[str], modules: list[str]) -> bool:
    """Report whether a file in /mnt/data has the name of a module imported beforehand.

    A new kernel imports that file, which comes first on its sys.path.
    """
    for path in inputs:
        name, folder, _ = path.partition("/")
        endings = [] if folder else [e for e in all_suffixes() if name.endswith(e)]
        if (folder and name in modules) or any(name.removesuffix(e) in modules for e in endings):
            return True
    return False


def place(reader: frames.Reader, job: Job) -> None:
    """Take the input files in, up to go."""
    if not job.inputs:
        await_frame(reader, frames.GO)
        return
    if status := run_as_user(lambda: collector.place(reader), PLACE_SECONDS):
        raise RuntimeError(f"the input files could not be written ({status})")


def collect(
    writer: frames.Writer, untouched: dict[str, collector.Mark], since: int, job: Job
) -> bool:
    """Send what is new in /mnt/data and name what is elsewhere; report whether all was seen."""
    if collector.nothing_new(untouched) and elsewhere.nothing_new(since):
        return True

    def look() -> None:
        collector.Collector(writer, untouched, job.max_files, job.max_file_bytes).collect()
        elsewhere.report(writer, since)

    return run_as_user(look, COLLECT_SECONDS) == 0


def await_frame(reader: frames.Reader, expected: bytes, kernel: Kernel | None = None) -> bytes:
    """Return the payload of the next frame but pings and such, which must be of this kind."""
    return next_frame(reader, (expected,), kernel)[1]


def next_frame(
    reader: frames.Reader, expected: tuple[bytes, ...], kernel: Kernel | None
) -> tuple[bytes, bytes]:
    """Return the next frame but pings and such, which must be of one of these kinds.

    Raises RuntimeError where the kernel ends meanwhile, as nobody else would know, or does
    something: a package that it has imported may have started to work, at nobody's cost.
    """
    begun = cgroup.read().cpu_ns
    while True:
        if kernel is not None:
            await_input(reader.fd, kernel.pid)
        kind, payload = reader.read()
        if kind == frames.PING and kernel and cgroup.read().cpu_ns - begun > WAIT_CPU_NS:
            raise RuntimeError("the processor was used while there was nothing to do")
        if kind in expected:
            return kind, payload
        if kind not in (frames.PING, frames.HURRY):
            raise frames.ProtocolError(f"{kind!r} instead of {expected!r}")


def await_input(fd: int, pid: int) -> None:
    """Return when there is something to read. Raises what reading does where nothing comes."""
    process = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(process, select.POLLIN)
        ready = poll.poll(frames.IDLE_SECONDS * 1000)
        if (process, select.POLLIN) in ready:
            raise RuntimeError("the kernel ended while it waited")
        if not ready:  # or reading would wait once more
            raise frames.StreamClosed
    finally:
        os.close(process)


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
    nb: nbformat.NotebookNode, executor: Executor, watchdog: Watchdog | Step
) -> dict[str, Any]:
    """Run the notebook in place and say how it went."""
    before = cgroup.read()
    start = time.monotonic()
    watchdog.start()
    executor.execute_notebook(nb, watchdog)
    watchdog.finish()
    wall = time.monotonic() - start
    after = cgroup.read()
    died = watchdog.kernel_ended or executor.broken
    oom = after.oom_kills > before.oom_kills
    return {
        "status": status(watchdog.reason, died, oom, executor.errors + errors_shown(nb)),
        "wall_ns": int(wall * 1e9),
        "cpu_ns": after.cpu_ns - before.cpu_ns,
        "peak_memory": after.peak_memory,
    }


@dataclass(frozen=True)
class Run:
    """Who takes part in one."""

    kernel: Kernel
    executor: Executor
    watchdog: Watchdog


def finish(
    writer: frames.Writer, nb: nbformat.NotebookNode, run: Run, outcome: dict[str, Any]
) -> None:
    """Send what the cells have left, and end every process of the user meanwhile."""
    ends_by_itself = run.kernel.choice.finishes and may_end_by_itself(run.executor, run.watchdog)
    # What the kernel does at its end goes on while the notebook is sent.
    if ends_by_itself:
        run.kernel.ask_to_end()
    writer.write_json(frames.OUTCOME, outcome)
    writer.write_chunks(frames.NOTEBOOK_OUT, nbformat.writes(nb).encode("utf-8", "ufffd"))
    for report in run.executor.dropped:
        writer.write_json(frames.SKIPPED, report)
    if ends_by_itself:
        run.kernel.await_end()
    else:
        run.kernel.step_aside()
    if not kill_user(KILL_SECONDS):
        raise RuntimeError("a process of the user could not be killed")


def may_end_by_itself(executor: Executor, watchdog: Watchdog) -> bool:
    """Report whether the kernel is there to be asked, and has something to do at its end."""
    if watchdog.kernel_ended or executor.broken:
        return False
    return watchdog.reason == "timeout" or not (watchdog.reason or executor.quiet)


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
