"""The notebook's kernel: a process of the user, and the harness's connection to it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from queue import Empty
from typing import Any

import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_client.session import Session
from jupyter_core.paths import jupyter_path
from jupyter_core.utils import ensure_event_loop

from harness.kernel import program, wire
from harness.kernel.choice import PYTHON, Choice
from harness.kernel.forked import MAX_QUEUED
from harness.system.grace import Grace
from harness.system.places import DATA, HARNESS, PROGRAMS
from harness.system.privileges import (
    KILL_SECONDS,
    as_user,
    become_user,
    is_ending,
    kill_user,
    signal_group,
    spawn,
)

SERVICE = 0  # the descriptor that what the service says comes by
START_SECONDS = 60.0  # a cold kernel on a busy host; a healthy one needs one second
RECONNECT_MS = 5  # between looks whether a kernel that starts takes connections yet
END_SECONDS = 1.0  # for a process that was killed to give its memory back
END_MOST_SECONDS = 10.0  # for that on a busy machine
EXIT_SECONDS = 1.0  # for atexit handlers and buffered files, when a run has ended
EXIT_MOST_SECONDS = 3.0  # for these on a busy machine


def run(task: Awaitable[Any]) -> Any:
    """Run a coroutine on the loop that nbclient uses in this thread."""
    return ensure_event_loop().run_until_complete(task)


class TolerantSession(Session):
    """A session that takes a message that is none for one that nobody waits for.

    The user's code has the kernel's key and can send anything.
    """

    def feed_identities(self, msg_list: Any, copy: bool = True) -> Any:
        try:
            return super().feed_identities(msg_list, copy)
        except ValueError:
            return [], msg_list

    def deserialize(self, msg_list: Any, content: bool = True, copy: bool = True) -> Any:
        try:
            msg = super().deserialize(msg_list, content, copy)
            if all(isinstance(msg[part], dict) for part in _PARTS):
                return msg
        except Exception:  # noqa: BLE001, S110 - whatever is wrong with it
            pass
        return {"msg_type": "", "msg_id": "", "buffers": [], **{part: {} for part in _PARTS}}


_PARTS = ("header", "parent_header", "metadata", "content")


@functools.cache
def kernelspec(name: str) -> KernelSpec:
    """Return a kernelspec of the image, as it was before there was a job."""
    # Without this default all of IPython would be imported, to ask where its folder is.
    folders = jupyter_path("kernels")
    manager = KernelSpecManager(ensure_native_kernel=False, kernel_dirs=folders)
    return manager.get_kernel_spec(name)


class Manager(AsyncKernelManager):
    """Starts the kernel as the user: by fork, by launch.py, or as its kernelspec says."""

    launcher: str = os.path.join(PROGRAMS, "launch.py")

    def fork_kernel(self, env: dict[str, str], modules: list[str]) -> int:
        """Start a kernel with what this process has imported, and these modules.

        Once the descriptor that is returned is closed, it imports nothing more.
        """
        from harness.kernel import start  # which other kernels do without

        self.write_connection_file()
        hurry, ours = os.pipe()

        def begin(kept: Sequence[int]) -> None:
            start.begin(self.connection_file, modules, kept[0])

        self._take(start.fork(env, DATA, [hurry], begin))
        os.close(hurry)
        return ours

    def fork_prepared(self, env: dict[str, str]) -> list[socket.socket]:
        """Start a kernel that this process has prepared; return our ends of its wires."""
        from harness.kernel import prepared, start

        pairs = [wire.pair() for _ in range(2)]
        keep = [theirs.fileno() for _, theirs in pairs]
        self._take(start.fork(env, DATA, keep, prepared.IPKernelApp.instance().take))
        for _, theirs in pairs:
            theirs.close()
        return [ours for ours, _ in pairs]

    def start_program(self, env: dict[str, str], *, first: bool) -> None:
        """Start the program of the kernelspec: the first one by a fork, if this process has it."""
        self.write_connection_file()
        spec = kernelspec(self.kernel_name)
        values = {"connection_file": self.connection_file, "resource_dir": spec.resource_dir}
        arguments = [_filled(argument, values) for argument in spec.argv]
        env = spec.env | env
        if first and program.is_imported(spec):
            self._take(program.fork(spec, arguments, _as_child(env), DATA))
            return
        arguments[0] = shutil.which(arguments[0], path=env["PATH"]) or arguments[0]
        self._spawn(arguments, env)

    def spawn_kernel(self, env: dict[str, str]) -> None:
        """Start a kernel anew, beside processes of the user's that may be hostile."""
        self.write_connection_file()
        self._spawn(self.format_kernel_cmd(), env)

    def _spawn(self, arguments: list[str], env: dict[str, str]) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            pid = spawn(arguments, _as_child(env), DATA, null, null)
        finally:
            os.close(null)
        self._take(pid)

    def _take(self, pid: int) -> None:
        # It may have been made ahead.
        local: Any = self.provisioner or LocalProvisioner(parent=self)
        self.provisioner, local.process, local.pid = local, Forked(pid), pid

    def write_connection_file(self, **kwargs: Any) -> None:
        super().write_connection_file(**kwargs)
        os.chmod(self.connection_file, 0o644)  # it was made for root alone

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        return [sys.executable, self.launcher, self.connection_file]


def is_prepared() -> bool:
    """Report whether a kernel of Python's that is forked from this process has been built in it."""
    prepared = sys.modules.get("harness.kernel.prepared")  # which no container has
    return prepared is not None and prepared.IPKernelApp.is_prepared()


def _as_child(env: dict[str, str]) -> dict[str, str]:
    """Return the variables of a kernel that is a child of this process."""
    return env | {"JPY_PARENT_PID": str(os.getpid())}  # as jupyter_client does


def _filled(argument: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace("{" + name + "}", value)
    return argument


class SilentKernelError(RuntimeError):
    """A kernel that may come up yet: the host can be the cause."""


class Forked:
    """A forked kernel, with what LocalProvisioner asks of a subprocess.Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = self.stdout = self.stderr = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process is alive."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # its status was taken by privileges.reap
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


@functools.cache
def _made_ahead() -> tuple[Manager, wire.Client]:
    """Return what a prepared kernel is managed with, which has been there before the fork."""
    manager = Manager(kernel_name=PYTHON)
    return manager, wire.Client(session=TolerantSession(), parent=manager)


class Kernel:
    """One started kernel."""

    manager: Manager
    client: AsyncKernelClient
    info_request: str  # the id of the request that info is the reply to
    info: dict[str, Any]

    def __init__(
        self,
        choice: Choice,
        env: dict[str, str],
        *,
        first: bool = False,
        in_session: bool = False,
    ) -> None:
        """Start a kernel and wait until it can take a cell.

        Python's is forked if it is the first one: this process may have no threads yet.
        Else it starts anew, with env before anything else; in a session, where others of the
        user's processes may live. Raises RuntimeError if it does not come up, and OSError
        if there can be no process.
        """
        self.choice = choice
        self._ended = threading.Event()
        self._loop = ensure_event_loop()
        self.rehearsed = choice.is_python and first and is_prepared()
        if self.rehearsed:
            self._take_prepared(env)
        else:
            self._make(choice, env, first=first, in_session=in_session)
        self.pid: int = self.manager.provisioner.pid  # type: ignore[union-attr]

    def _take_prepared(self, env: dict[str, str]) -> None:
        """Fork a kernel from what this process has prepared."""
        self._attach(_made_ahead()[0].fork_prepared(env))
        run(self._answers(self._up()))

    def _attach(self, ends: list[socket.socket]) -> None:
        """Take the ends of a prepared kernel's wires."""
        from harness.kernel import prepared

        self.manager, client = _made_ahead()
        self.client = client
        client.attach(ends, self._loop)
        content = prepared.IPKernelApp.instance().info
        self.info_request, self.info = "", {"parent_header": {}, "content": content}
        vars(client)["kernel_info"] = lambda: self.info_request

    async def _up(self) -> None:
        """Return when a prepared kernel has published something: that it starts."""
        while not await self.client.iopub_channel.socket.poll(1000):
            if not await self.manager.is_alive():
                raise RuntimeError("the kernel ended while it started")

    def _make(self, choice: Choice, env: dict[str, str], *, first: bool, in_session: bool) -> None:
        """Start a kernel that takes connections."""
        self._folder = tempfile.mkdtemp(prefix="kernel-", dir=HARNESS)
        os.chmod(self._folder, 0o711)  # the user may read the file whose name it is told
        self.manager = Manager(
            kernel_name=choice.kernel,
            session=TolerantSession(),
            connection_file=os.path.join(self._folder, "kernel.json"),
        )
        started, hurry = True, None
        if not choice.is_python:
            self.manager.start_program(env, first=first)
        elif first and not choice.hides_imported():
            hurry = self.manager.fork_kernel(env, choice.modules)
        elif in_session:
            self.manager.spawn_kernel(env)
        else:
            started = False
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
        context.setsockopt(zmq.RCVHWM, MAX_QUEUED)
        self.manager.context = context
        with self._hurried(hurry):
            run(self._start(env, started))

    @contextlib.contextmanager
    def _hurried(self, hurry: int | None) -> Iterator[None]:
        """Close hurry as soon as the service says something, and in the end."""
        if hurry is None:
            yield
            return

        def tell() -> None:
            self._loop.remove_reader(SERVICE)
            os.close(hurry)

        self._loop.add_reader(SERVICE, tell)
        try:
            yield
        finally:
            if self._loop.remove_reader(SERVICE):
                os.close(hurry)

    async def _start(self, env: dict[str, str], started: bool) -> None:
        if not started:
            await self.manager.start_kernel(
                cwd=DATA,
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Before anything of env is looked at: an interpreter obeys much of it.
                preexec_fn=become_user,
            )
        self.client = self.manager.client()
        # No stdin channel: what asks for input gets an error at once. No heartbeat:
        # the process itself is watched.
        self.client.start_channels(stdin=False, hb=False)
        await self._answers(self._ready())

    async def _answers(self, sign: Awaitable[None]) -> None:
        """Return when there is a sign of the kernel."""
        try:
            await asyncio.wait_for(sign, START_SECONDS)
        except TimeoutError:
            raise SilentKernelError("the kernel did not answer") from None

    async def _ready(self) -> None:
        """Return when both channels carry the kernel's answer to one request."""
        while True:
            if not await self.manager.is_alive():
                raise RuntimeError("the kernel ended while it started")
            self.info_request = self.client.kernel_info()
            with contextlib.suppress(Empty):
                await self._answer(self.client.shell_channel, 1.0)
                while (await self._answer(self.client.iopub_channel, 0.05))["content"].get(
                    "execution_state"
                ) != "idle":
                    pass
                break
        # nbconvert asks once more. It is told the same, without asking the kernel.
        vars(self.client)["kernel_info"] = lambda: self.info_request

    async def _answer(self, channel: Any, seconds: float) -> dict[str, Any]:
        """Return the next message on a channel that answers the request for information."""
        while True:
            message: dict[str, Any] = await channel.get_msg(timeout=seconds)
            if message["parent_header"].get("msg_id") == self.info_request:
                if message["header"].get("msg_type") == "kernel_info_reply":
                    self.info = message
                return message

    def has_ended(self) -> bool:
        """Report whether the process is no more, by whatever cause."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def settled(self) -> bool:
        """Report whether the process is no more. Wait for the end of one that was killed.

        Until then it would be taken for one that does what it is asked.
        """
        grace = Grace(END_SECONDS, END_MOST_SECONDS)
        while not self.has_ended():
            if not is_ending(self.pid) or grace.over():
                return False
            time.sleep(0.001)
        return True

    @property
    def interrupts(self) -> bool:
        """Report whether a cell can be interrupted."""
        return self.choice.interrupts

    def interrupt(self) -> None:
        """Interrupt the kernel and what it started, as Jupyter does, if it can be interrupted."""
        if not self.interrupts:
            return
        if not self.choice.is_python and kernelspec(self.choice.kernel).interrupt_mode == "message":
            message = self.client.session.msg("interrupt_request", {})
            self._loop.call_soon_threadsafe(self.client.control_channel.send, message)
        else:
            signal_group(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """End every process of the user.

        Those that an earlier job started on purpose too: they can be in the kernel's own
        process group, and nothing tells a program that is to stay from one that ran away.
        """
        kill_user(KILL_SECONDS)

    def watch(self, ended: Callable[[], None]) -> None:
        """Call ended, from a thread of its own, as soon as the process has ended."""

        def wait() -> None:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._ended.set()
            ended()

        threading.Thread(target=wait, daemon=True).start()

    @contextlib.contextmanager
    def silenced(self) -> Iterator[None]:
        """Have cells run without a trace in the kernel's history."""
        execute = self.client.execute

        def silent(code: str, **_: Any) -> str:
            return str(execute(code, silent=True, store_history=False))

        vars(self.client)["execute"] = silent
        try:
            yield
        finally:
            del vars(self.client)["execute"]

    def step_aside(self) -> None:
        """Have the kernel give its memory back on another core than this thread's.

        That takes as long as half of a small run, and nothing can interrupt it.
        """
        with open("/proc/thread-self/stat", "rb") as f:
            mine = int(f.read().rpartition(b")")[2].split()[36])
        if others := os.sched_getaffinity(0) - {mine}:
            with as_user(), contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{self.pid}/task"):
                    os.sched_setaffinity(int(thread), others)

    def ask_to_end(self) -> None:
        """Have the kernel end by itself, so that what it has buffered is written.

        What it still publishes is nobody's, and nothing that it waits with.
        """
        self.client.iopub_channel.stop()
        self.client.shutdown()

    def await_end(self) -> None:
        """Return when the process that watch watches has ended, or has had its time."""
        Grace(EXIT_SECONDS, EXIT_MOST_SECONDS).wait(self._ended)

    def close(self) -> None:
        """End every process of the user and the connection."""
        kill_user(EXIT_SECONDS)
        self.disconnect()

    def disconnect(self) -> None:
        """End the connection."""
        self.client.stop_channels()
        if self.rehearsed:
            return
        self.manager.context.destroy(linger=0)
        self.manager.cleanup_connection_file()
        os.rmdir(self._folder)


class Rehearsed(Kernel):
    """The prepared kernel before there is any fork of it, in this process."""

    def __init__(self) -> None:
        from harness.kernel import prepared

        self.choice, self.pid, self.rehearsed = Choice(), os.getpid(), True
        self._loop = ensure_event_loop()
        pairs = [wire.pair() for _ in range(2)]
        self._attach([ours for ours, _ in pairs])
        self.manager._take(self.pid)
        self._app = prepared.IPKernelApp.instance()
        self._app.take([theirs.detach() for _, theirs in pairs])

    def on_stage(self) -> contextlib.AbstractContextManager[None]:
        """Have this process be a kernel, too."""
        return self._app.on_stage()

    def has_ended(self) -> bool:
        return False
