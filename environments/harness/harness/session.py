"""Serves a session: job after job, with a kernel and processes that live on in between.

1. The service says session in place of a first job. If its variables want that, another
   kernel is started. The harness says kept.
2. The dispatcher reads all that comes from then on; this, the main thread, does the jobs.
3. A job ends by itself, or by an interrupt, or, if that is not heeded, by the end of
   what it runs in. If the kernel is no more, another one is started before done.
4. Files that are new since the last job go back; what file operations wrote is not new.
5. The session ends with its time, or with the stream.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
import time
from dataclasses import dataclass
from typing import Any, NoReturn

import nbformat
import zmq

from harness.dispatch import Dispatcher, Inbox, Work
from harness.files.clerks import Clerks
from harness.files.marks import Marks
from harness.files.relay import collect
from harness.job.clock import Clock, Target
from harness.job.command import Command, Leftovers, Output
from harness.job.execute import Executor
from harness.job.job import Job, Meter, Read, run_cells, status, tell
from harness.job.listener import end
from harness.job.prepare import suited
from harness.kernel.process import Kernel, run
from harness.stream import frames
from harness.stream.attachment import Attachments
from harness.stream.channels import Channels
from harness.stream.intake import ADOPTED, Intake
from harness.stream.network import Proxy
from harness.system import cgroup
from harness.system.display import Display
from harness.system.privileges import CANNOT_START, KILL_SECONDS, kill_user

DRAIN = 100  # messages of no cell that are thrown away at once
DRAIN_PAUSE = 0.05  # seconds; code that floods waits for its reader

# A job that is done: its notebook, its clock, how it went, and what of its output was dropped.
Done = tuple[nbformat.NotebookNode, Clock, dict[str, Any], list[dict[str, str]]]


@dataclass(frozen=True)
class Terms:
    """What a session is opened with."""

    token: bytes
    ttl_seconds: float
    env: dict[str, str]
    network: dict[str, str] | None  # {"ca": PEM}

    @classmethod
    def read(cls, payload: bytes) -> Terms:
        value = json.loads(payload)
        token = base64.b64decode(value["token"], validate=True)
        return cls(token, value["ttl_seconds"], value["env"] or {}, value["network"])


class Session:
    """One, from its begin to its end."""

    def __init__(
        self, fd: int, writer: frames.Writer, kernel: Kernel, display: Display, terms: Terms
    ) -> None:
        self._expires = time.monotonic() + terms.ttl_seconds
        self._display = display
        self._attachments = Attachments(writer.fd)
        self._inbox = Inbox()
        self._marks, self._left = Marks(), Leftovers()
        self._lost = False  # the kernel of the job before, and nobody was told
        self._gone = False  # the kernel, and there is no other yet
        self._fresh = False  # nothing of the user's runs since the last restart
        clerks = Clerks(self._marks)
        self._hidden = clerks.hidden
        proxy, listener = {}, None
        if terms.network is not None:
            door = Proxy(**terms.network)
            proxy, listener = door.environment(), door.listener
        self._channels = Channels(
            lambda: self._attachments.current, listener, clerks.open, clerks.turned
        )
        self._choice = kernel.choice
        self._env = self._choice.environment(proxy | terms.env)
        self._dispatcher = Dispatcher(
            fd,
            Intake(terms.token),
            self._attachments,
            self._inbox,
            channels=self._channels,
            display=display,
        )
        told = self._choice.is_python and not (terms.network or {}).get("ca")
        self._take(suited(kernel, terms.env, proxy, told=told, in_session=True))

    def _take(self, kernel: Kernel) -> None:
        self._kernel = kernel

        def ended() -> None:
            clock = self._dispatcher.clock
            if clock and kernel is self._kernel:
                clock.lost_kernel()

        kernel.watch(ended)

    def run(self) -> NoReturn:
        """Serve until the end."""
        expiry = threading.Timer(self._expires - time.monotonic(), end, (0,))
        expiry.daemon = True
        expiry.start()
        self._channels.start()
        self._dispatcher.start()
        self._attachments.current.write(frames.KEPT)
        does = {frames.JOB: self._job, frames.RESTART: self._restart, ADOPTED: self._adopted}
        while True:
            work = run(self._next())
            does[work.kind](work)

    async def _next(self) -> Work:
        if len(self._inbox):
            return await self._inbox.get()
        drain = asyncio.ensure_future(self._drain())
        try:
            return await self._inbox.get()
        finally:
            drain.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await drain

    async def _drain(self) -> None:
        """Throw away what the kernel says while no cell runs."""
        with contextlib.suppress(zmq.ZMQError):
            socket = self._kernel.client.iopub_channel.socket
            while True:
                await socket.poll()
                with contextlib.suppress(zmq.Again):
                    for _ in range(DRAIN):
                        await socket.recv_multipart(zmq.NOBLOCK)
                await asyncio.sleep(DRAIN_PAUSE)

    def _job(self, work: Work) -> None:
        writer = work.writer
        if writer.over:
            return
        self._fresh = False
        begun = cgroup.cpu_ns()
        job = Job(**work.job)
        self._look_after_kernel()
        since = time.time_ns()
        do = self._command if job.command else self._cells
        nb, clock, outcome, dropped = do(
            lambda: nbformat.reads(work.notebook.decode(), as_version=4), job, writer
        )
        lost = clock.restarted or clock.kernel_ended or self._kernel.settled()
        outcome["kernel_restarted"] = self._lost or lost
        tell(writer, outcome, nb, dropped)
        self._lost = outcome["kernel_restarted"] and writer.over
        self._gone = lost
        collected = False
        if not writer.over:  # else another service waits, and for neither of these
            self._renew_gone()
            limits = job.max_files, job.max_file_bytes
            collected = collect(writer, self._marks, self._hidden, *limits, since=since)
        cpu = cgroup.cpu_ns() - begun
        writer.write_json(frames.DONE, {"collected": collected, "cpu_ns": cpu})

    def _cells(self, read: Read, job: Job, writer: frames.Writer) -> Done:
        executor = Executor.of(self._kernel, writer, job.stop_on_error, job.max_output)
        clock = self._clock(self._kernel, job)
        with self._watched(clock, writer):
            nb, outcome = run_cells(read, executor, clock)
        if executor.broken:
            kill_user(KILL_SECONDS)
            clock.kernel_ended = True
        return nb, clock, outcome | {"exit_code": None}, executor.dropped

    def _command(self, read: Read, job: Job, writer: frames.Writer) -> Done:
        nb = read()  # the service's own, and small
        index = next(i for i, cell in enumerate(nb.cells) if cell.cell_type == "code")
        meter = Meter()
        code: int | None = None
        try:
            command = Command(job.command, self._env)
        except OSError as e:
            clock = self._clock(self._kernel, job)
            output = Output(writer, index, nb.cells[index], job.max_output, clock)
            output.write("stderr", f"bash could not be started: {e}\n".encode())
            code = CANNOT_START
        else:
            clock = self._clock(command, job)
            output = Output(writer, index, nb.cells[index], job.max_output, clock)
            with self._watched(clock, writer):
                clock.start()
                code = command.run(output, self._left)
                clock.finish()
        output.finish()
        errors = [str(code)] if code else []
        outcome = meter.outcome(lambda oom: status(clock.reason, False, oom and code != 0, errors))
        return nb, clock, outcome | {"exit_code": None if clock.reason else code}, []

    def _clock(self, target: Target, job: Job) -> Clock:
        seconds = job.timeout_seconds
        return Clock(target, seconds, self._dispatcher.rouse, in_session=True)

    @contextlib.contextmanager
    def _watched(self, clock: Clock, writer: frames.Writer) -> Any:
        self._dispatcher.clock = clock
        if writer.over:  # just now, when there was no clock to stop
            clock.reason = "cancelled"
        if self._kernel.has_ended():
            clock.kernel_ended = True
        self._dispatcher.rouse()
        try:
            yield
        finally:
            self._dispatcher.clock = None
            self._fresh = clock.restarted

    def _look_after_kernel(self) -> None:
        """Start another kernel if the last one has ended by itself."""
        if self._kernel.settled():
            self._lost = self._gone = True
        self._renew_gone()

    def _renew_gone(self) -> None:
        if self._gone:
            self._renew()

    def _renew(self) -> None:
        """Start another kernel; what else runs lives on, unless it leaves no room for one."""
        self._kernel.disconnect()
        try:
            kernel = Kernel(self._choice, self._env, in_session=True)
        except (RuntimeError, OSError):
            if not kill_user(KILL_SECONDS):
                raise
            kernel = Kernel(self._choice, self._env, in_session=True)
        self._take(kernel)
        self._gone = False
        self._display.renew()  # if what ended the kernel ended that, too

    def _restart(self, work: Work) -> None:
        if not self._fresh:
            if not kill_user(KILL_SECONDS):
                raise RuntimeError("a process of the user could not be killed")
            self._renew()
        work.writer.write(frames.RESTARTED)
        self._lost = work.writer.over

    def _adopted(self, _: Work) -> None:
        if self._gone or self._kernel.settled():
            self._lost = self._gone = True
        report = {
            "version": frames.VERSION,
            "kernel_restarted": self._lost,
            "ttl_seconds": max(0.0, self._expires - time.monotonic()),
        }
        if self._attachments.resume(report):
            self._lost = False
            self._channels.reset()
        self._renew_gone()
