"""Serves one job, up to the end of the sandbox.

1. The notebook comes, input files, and then go.
2. nbconvert runs the cells; each output is passed on as it happens.
3. The kernel may end by itself; then every process of the user is killed.
4. The outcome goes back, the executed notebook, and the files that are new.
5. The sandbox ends with the stream.
"""

from __future__ import annotations

import time
from typing import Any

import nbformat

from harness.files import collector, elsewhere, inputs
from harness.job.clock import Clock
from harness.job.execute import Executor
from harness.job.job import Job, run_cells, tell
from harness.job.listener import Listener
from harness.job.prepare import BadPackagesError, shadow, suited
from harness.kernel.process import Kernel
from harness.stream import frames
from harness.stream.awaiting import await_frame, await_notebook
from harness.stream.channels import Channels
from harness.stream.network import Proxy
from harness.system import cgroup
from harness.system.display import Display
from harness.system.privileges import KILL_SECONDS, kill_user, run_as_user

PLACE_SECONDS = 120.0  # for input files to arrive: 512 MiB from a slow service
COLLECT_SECONDS = 60.0  # for new files to leave


def run(
    reader: frames.Reader,
    writer: frames.Writer,
    kernel: Kernel,
    display: Display,
    job: Job,
    *,
    early: list[str],
) -> None:
    """Do the job. Returns never: the process ends when the service closes the stream.

    early are the names of modules that the kernel has imported before there was a job.
    """
    begun = cgroup.cpu_ns()
    text = [await_notebook(reader, job.notebook_bytes)]
    proxy, network = {}, None
    if job.network is not None:
        door = Proxy(**job.network)
        proxy, network = door.environment(), Channels(lambda: writer, door.listener)
    # A file named like a library is to be imported instead of it; Python is also told of
    # variables that are new to it.
    anew, told = shadow(job.inputs, early), kernel.choice.is_python
    kernel = suited(kernel, job.env, proxy, told=told, anew=anew)
    place(reader, job, kernel.choice.packages)
    untouched = collector.marks(job.inputs)
    since = time.time_ns()

    executor = Executor.of(kernel, writer, job.stop_on_error, job.max_output)
    listener = Listener(reader.fd, display, network, silence=frames.IDLE_SECONDS)
    clock = listener.clock = Clock(kernel, job.timeout_seconds, listener.rouse)
    kernel.watch(clock.lost_kernel)
    listener.start()
    if network:
        network.start()
    # The text, which can be large, is gone when it has been read.
    nb, outcome = run_cells(lambda: nbformat.reads(text.pop(), as_version=4), executor, clock)
    starter = listener.leave_display()
    if network:
        network.stop()
    finish(writer, nb, outcome, kernel=kernel, executor=executor, clock=clock)
    if starter:  # it may have forked the display's server after that
        starter.join()
        end_processes()
    collected = collect(writer, untouched, since, job)
    cpu = cgroup.cpu_ns() - begun  # with what a kernel does at its start and its end
    writer.write_json(frames.DONE, {"collected": collected, "cpu_ns": cpu})
    listener.join()  # so that nothing that was written is lost


def place(reader: frames.Reader, job: Job, packages: bool) -> None:
    """Take the input files in, up to go.

    Raises BadPackagesError if they cannot be written where a caller's packages may have been
    imported ahead: these may have made something of their own there.
    """
    if not job.inputs:
        await_frame(reader, frames.GO)
        return
    if status := run_as_user(lambda: inputs.place(reader), PLACE_SECONDS):
        kind = BadPackagesError if packages else RuntimeError
        raise kind(f"the input files could not be written ({status})")


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


def finish(
    writer: frames.Writer,
    nb: nbformat.NotebookNode,
    outcome: dict[str, Any],
    *,
    kernel: Kernel,
    executor: Executor,
    clock: Clock,
) -> None:
    """Send what the cells have left, and end every process of the user meanwhile."""
    ends_by_itself = kernel.choice.finishes and may_end_by_itself(executor, clock)
    # What the kernel does at its end goes on while the notebook is sent.
    if ends_by_itself:
        kernel.ask_to_end()
    tell(writer, outcome, nb, executor.dropped)
    if ends_by_itself:
        kernel.await_end()
    else:
        kernel.step_aside()
    end_processes()


def end_processes() -> None:
    """End every process of the user."""
    if not kill_user(KILL_SECONDS):
        raise RuntimeError("a process of the user could not be killed")


def may_end_by_itself(executor: Executor, clock: Clock) -> bool:
    """Report whether the kernel is there to be asked, and has something to do at its end."""
    if clock.kernel_ended or executor.broken:
        return False
    return clock.reason == "timeout" or not (clock.reason or executor.quiet)
