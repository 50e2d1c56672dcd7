"""The Jupyter kernel of bash: each cell is run by one shell that lives on (shell.py).

Started by its kernelspec, with the name of a connection file.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

import zmq
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
from traitlets import Type

from shell import Ended, Shell
from shows import Shows
from streams import Streams

# What a user finds if a shell has ended in an earlier cell.
FRESH = "[the shell of the earlier cells has ended: this is a new one, without their variables]\n"
FAILED = "CommandFailed"  # as of commands in sessions: executor/session.go


class BashKernel(Kernel):
    """Runs cells of bash."""

    implementation = "bash-kernel"
    implementation_version = "1"
    banner = "bash"
    language_info = {  # noqa: RUF012 - traitlets' own
        "name": "bash",
        "mimetype": "text/x-shellscript",
        "codemirror_mode": "shell",
        "pygments_lexer": "bash",
        "file_extension": ".sh",
    }
    _execute_sleep = 0  # nothing here is printed by the kernel's own process

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._streams = Streams()
        self._folder = tempfile.mkdtemp(prefix="bash-kernel-")
        self._shows = Shows(os.path.join(self._folder, "display"))
        self._env = {k: v for k, v in os.environ.items() if k != "JPY_PARENT_PID"}
        self._env["BASH_KERNEL_DISPLAY"] = self._shows.path
        self._home = os.getcwd()
        self._shell = Shell(self._streams, self._env, self._home)
        self._has_ended = False  # the shell of an earlier cell, and nobody was told

    def start(self) -> None:
        super().start()
        loop = asyncio.get_event_loop()
        loop.add_reader(self._streams.fileno(), self._streams.take)
        loop.add_reader(self._shows.fileno(), self._shows.serve)

    # A signal is for the shell, whatever the kernel does.
    def pre_handler_hook(self) -> None:
        pass

    def post_handler_hook(self) -> None:
        pass

    def interrupt(self, *_: Any) -> None:
        """End what the shell runs: a handler of SIGINT."""
        self._shell.interrupt()

    async def do_execute(  # type: ignore[override]
        self, code: str, silent: bool, store_history: bool = True, *_: Any, **__: Any
    ) -> dict[str, Any]:
        if not store_history and not silent:
            self.execution_count -= 1
        try:
            error = self._run(code, silent)
        except Exception as e:  # noqa: BLE001 - whatever it is, somebody waits for the reply
            self._shell.kill()
            self._has_ended = True
            error = f"the kernel failed: {e}"
        reply: dict[str, Any] = {
            "execution_count": self.execution_count,
            # Whether the harness may kill the kernel, and nobody would know.
            "quiet": self._shell.has_ended() or self._shell.quiet,
        }
        if not error:
            return {"status": "ok", "payload": [], "user_expressions": {}, **reply}
        content = {"ename": FAILED, "evalue": error, "traceback": [f"{FAILED}: {error}"]}
        if not silent:
            self._publish("error", content)
        return {"status": "error", **content, **reply}

    def _run(self, code: str, silent: bool) -> str:
        """Run a cell; return what is wrong with how it ended, "" if nothing is."""
        if "\0" in code:
            return "the code has a NUL character in it, which no command can hold"
        fresh = self._has_ended or self._shell.has_ended()
        if fresh:
            try:
                self._shell = Shell(self._streams, self._env, self._home)
            except OSError as e:
                return f"the shell does not start: {e.strerror}"
            self._has_ended = False
        try:
            if not silent:
                self._shows.tell = self._show
            self._streams.begin(self._forget if silent else self._tell)
            if fresh:
                self._streams.note(FRESH)
            return self._told(self._shell.run(code, self._shows))
        finally:
            self._shows.tell = None
            self._streams.end()

    def _told(self, ended: Ended) -> str:
        status = ended.status
        if not ended.of_shell:
            return f"the command ended with exit code {status}" if status else ""
        self._has_ended = True
        if status < 0:
            name = signal_name(-status)
            return f"the shell was killed by {name}, exit code {128 - status}"
        return f"the shell ended with exit code {status}" if status else ""

    def _tell(self, name: str, text: str) -> None:
        self._publish("stream", {"name": name, "text": text})

    def _forget(self, name: str, text: str) -> None:
        pass

    def _show(self, data: dict[str, Any]) -> None:
        self._streams.drain()
        self._streams.flush()
        self._publish("display_data", {"data": data, "metadata": {}})

    def _publish(self, kind: str, content: dict[str, Any]) -> None:
        self.send_response(self.iopub_socket, kind, content)

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:  # type: ignore[override]
        self._shell.finish()
        shutil.rmtree(self._folder, ignore_errors=True)
        return {"status": "ok", "restart": restart}


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # most real-time signals have no name


class BashKernelApp(IPKernelApp):
    """The application of one kernel."""

    kernel_class = Type(  # type: ignore[assignment]
        BashKernel, klass="ipykernel.kernelbase.Kernel"
    )

    def init_iopub(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        # A publisher drops what its reader has not taken yet, unless told to wait.
        context.setsockopt(zmq.XPUB_NODROP, 1)
        super().init_iopub(context)

    def init_signal(self) -> None:
        pass  # there is nobody to tell yet

    def init_kernel(self) -> None:
        super().init_kernel()
        signal.signal(signal.SIGINT, self.kernel.interrupt)


def main() -> None:
    if home := os.environ.get("HOME"):
        shutil.copytree("/etc/skel", home, dirs_exist_ok=True)
    BashKernelApp.launch_instance(argv=["-f", sys.argv[1]])
    os._exit(0)  # what an interpreter does at its end takes longer than a small run


if __name__ == "__main__":
    main()
