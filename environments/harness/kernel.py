"""The notebook's kernel: a process of the user, and the harness's connection to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import Empty
from typing import Any

import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.session import Session
from jupyter_core.utils import ensure_event_loop

from privileges import become_user, kill_user, signal_group

DATA = "/mnt/data"
HOME = "/tmp/home"
START_SECONDS = 60.0  # a cold kernel on a busy host; a healthy one needs one second
EXIT_SECONDS = 1.0  # for atexit handlers and buffered files, when a run has ended


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


class Manager(AsyncKernelManager):
    """Starts the kernel through launch.py, as the user."""

    def write_connection_file(self, **kwargs: Any) -> None:
        super().write_connection_file(**kwargs)
        os.chmod(self.connection_file, 0o644)  # it was made for root alone

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        launcher = str(Path(__file__).with_name("launch.py"))
        return [sys.executable, launcher, self.connection_file]


class Kernel:
    """One started kernel."""

    manager: Manager
    client: AsyncKernelClient

    def __init__(self, name: str, env: dict[str, str]) -> None:
        """Start a kernel and wait until it can take a cell.

        Raises RuntimeError where it does not come up.
        """
        self._context = zmq.asyncio.Context()
        self._folder = tempfile.mkdtemp(prefix="kernel-")
        os.chmod(self._folder, 0o711)  # the user may read the file whose name it is told
        self.manager = Manager(
            kernel_name=name,
            context=self._context,
            session=TolerantSession(),
            connection_file=os.path.join(self._folder, "kernel.json"),
        )
        run(self._start(env))
        self.pid: int = self.manager.provisioner.pid  # type: ignore[union-attr]

    async def _start(self, env: dict[str, str]) -> None:
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
        try:
            await asyncio.wait_for(self._ready(), START_SECONDS)
        except TimeoutError:
            raise RuntimeError("the kernel did not answer") from None

    async def _ready(self) -> None:
        """Return when both channels carry the kernel's answer to one request."""
        while True:
            if not await self.manager.is_alive():
                raise RuntimeError("the kernel ended while it started")
            request = self.client.kernel_info()
            with contextlib.suppress(Empty):
                while (await self._message(self.client.shell_channel, 1.0))[0] != request:
                    pass
                while await self._message(self.client.iopub_channel, 0.2) != (request, "idle"):
                    pass
                return

    async def _message(self, channel: Any, seconds: float) -> tuple[str, str]:
        message = await channel.get_msg(timeout=seconds)
        return message["parent_header"].get("msg_id", ""), message["content"].get(
            "execution_state", ""
        )

    def interrupt(self) -> None:
        """Send SIGINT to the kernel and what it started, as Jupyter does."""
        signal_group(self.pid, signal.SIGINT)

    def watch(self, ended: Callable[[], None]) -> None:
        """Call ended, from a thread of its own, as soon as the process has ended."""

        def wait() -> None:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            ended()

        threading.Thread(target=wait, daemon=True).start()

    def shut_down(self) -> None:
        """Let the kernel end by itself, so that what it has buffered is written."""

        async def ask() -> None:
            self.client.shutdown()
            for _ in range(int(EXIT_SECONDS / 0.005)):
                if not await self.manager.is_alive():
                    return
                await asyncio.sleep(0.005)

        run(ask())

    def close(self) -> None:
        """End every process of the user and the connection."""
        kill_user(EXIT_SECONDS)
        self.client.stop_channels()
        self.manager.cleanup_connection_file()
        os.rmdir(self._folder)
