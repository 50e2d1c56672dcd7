"""ipykernel's application, changed in how it publishes output, in what it imports before
there is a cell, in how it ends, and where a script of Python's would behave otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib
import json
import linecache
import logging
import os
import secrets
import select
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import zmq
from IPython.core import autocall, interactiveshell
from jupyter_client.jsonutil import json_default
from jupyter_client.session import json_packer
from traitlets import Type, default

from harness.kernel.ending import Ending
from harness.kernel.forked import MAX_QUEUED

sys.modules["debugpy"] = None  # type: ignore[assignment] # so that its import fails
from ipykernel import debugger, iostream, ipkernel, kernelapp, zmqshell  # noqa: E402

# Nobody could attach to a debugger here, and importing one takes longer than all the rest
# of a kernel's start. What a user would notice of one that nobody is attached to is kept.
assert not debugger._is_debugpy_available
del sys.modules["debugpy"]
DEBUGGER_VARIABLES = {"PYDEVD_USE_FRAME_EVAL": "NO"}

# Characters that are held back until a writer waits: few enough for a cap to act within one
# print, and for all messages that wait to have their place beside the user's data, also
# where each character is six of JSON.
MAX_MESSAGE = 1 << 16
# ZeroMQ's thread writes the beginning of a large message in one turn, the rest in the next.
ECHOES = 2
MAX_SAID = 1000  # messages that are remembered
ECHO_MS = 1000  # for it to have these turns, on a busy host


HISTORY = "--HistoryManager.hist_file=:memory:"  # and not in the user's home

# What a program finds as its own name: abspath of it, and its folder, are in /mnt/data.
PROGRAM = "/mnt/data/main.py"


def breakpoint_without_debugger(*_: Any, **__: Any) -> None:
    """Go on, as debugpy does where nobody is attached."""


class IOPubThread(iostream.IOPubThread):
    """The thread that publishes."""

    _echo: tuple[zmq.Socket[bytes], zmq.Socket[bytes]] | None = None
    _echoes = 0
    given = 0  # messages to publish
    written = 0  # of these, that have left this process

    def send_multipart(self, *args: Any, **kwargs: Any) -> None:
        """Publish a message."""
        super().send_multipart(*args, **kwargs)
        self.given += 1  # afterwards: what counts has its turn

    def await_written(self, given: int) -> None:
        """Return when ZeroMQ's thread has written the first messages, so many. For this thread.

        That one does what it is told in that order, and a message of its own comes back.
        """
        with contextlib.suppress(zmq.ZMQError):
            near, far = self._echo = self._echo or self._new_echo()
            for _ in range(ECHOES):
                self._echoes += 1
                number = b"%d" % self._echoes
                near.send(number, zmq.NOBLOCK)
                while far.recv() != number:  # one that was late
                    pass
            self.written = given

    def _new_echo(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        address = f"ipc://@{secrets.token_hex(16)}"
        near, far = (self.socket.context.socket(zmq.PAIR) for _ in range(2))
        far.rcvtimeo = ECHO_MS
        far.bind(address)
        near.connect(address)
        return near, far

    def schedule(self, f: Callable[[], object]) -> None:
        """Have f called by this thread. Who has much for it to do waits, as for a flush."""
        mine = threading.current_thread() is self.thread
        if not mine and self.thread.is_alive() and len(self._events) >= MAX_QUEUED:
            turn = threading.Event()
            super().schedule(turn.set)
            turn.wait(OutStream.flush_timeout)
        super().schedule(f)

    def _thread_main(self) -> None:
        # It empties this pipe itself, and would wait for itself where that is full.
        self._event_pipe.sndhwm = 0
        super()._thread_main()

    def start(self) -> None:
        """Start it, once its sockets are there."""
        for mark in (zmq.SNDHWM, zmq.RCVHWM):  # other sockets have ZeroMQ's own
            self.socket.context.sockopts.pop(mark, None)
        super().start()

    def close(self) -> None:
        """Close its sockets, once it has ended: the context waits for all of them."""
        for sock in self._echo or ():
            sock.close(linger=0)
        super().close()


class OutStream(iostream.OutStream):
    """Standard output and error, neither held back nor in messages of any size."""

    flush_interval = 0.02  # seconds, instead of 0.2: a reader sees lines as they come
    _flushing = False

    def _flush(self) -> None:
        self._flushing = True
        try:
            super()._flush()
        finally:
            self._flushing = False

    def flush(self) -> None:
        """Return when what was written has left this process, where the harness keeps up.

        ipykernel's own returns before: its thread sends in a turn after the one it waits for,
        and what is sent is with ZeroMQ's thread. A crash in the next line would take it along.
        """
        publisher: Any = self.pub_thread
        thread = publisher and publisher.thread
        if not (thread and thread.is_alive()) or thread is threading.current_thread():
            super().flush()
            return
        # In this order: what is no longer held is being flushed, or was given.
        if not self._held() and not self._flushing and publisher.given == publisher.written:
            return
        sent = threading.Event()

        def arrive(given: int) -> None:
            try:
                publisher.await_written(given)
            finally:
                sent.set()

        def flush() -> None:
            try:
                self._flush()
            finally:
                given = publisher.given
                publisher.schedule(lambda: arrive(given))  # behind what that has scheduled

        publisher.schedule(flush)
        # Without a word where that takes too long: stderr can be what is to be emptied.
        sent.wait(self.flush_timeout)

    def write(self, string: str) -> int | None:  # type: ignore[override]
        if not isinstance(string, str):
            return super().write(string)
        for start in range(0, max(len(string), 1), MAX_MESSAGE):
            super().write(string[start : start + MAX_MESSAGE])
            # Who writes faster than it is read waits, and does not fill the memory.
            if self._held() >= MAX_MESSAGE:
                self.flush()
        return len(string)

    def _held(self) -> int:
        """Return how many characters wait to be flushed."""
        with self._buffer_lock:
            return sum(buffer.tell() for buffer in self._buffers.values())


def is_success(e: BaseException | None) -> bool:
    """Report whether a program that ends by this exception has the exit code 0."""
    return type(e) is SystemExit and (e.code is None or (isinstance(e.code, int) and not e.code))


class ZMQExitAutocall(autocall.ZMQExitAutocall):
    """What exit and quit are: they end the run at once, as in a script."""

    def __call__(  # type: ignore[override]
        self, code: Any = None, *, keep_kernel: bool = False
    ) -> None:
        raise SystemExit(code)


class ZMQInteractiveShell(zmqshell.ZMQInteractiveShell):
    """Takes an exit with code 0 for a good end, of which nothing is shown."""

    left: SystemExit | None = None  # by which the cell has ended well

    @default("exiter")
    def _default_exiter(self) -> ZMQExitAutocall:
        return ZMQExitAutocall(self)

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        if is_success(evalue):
            self.left = evalue
        else:
            super()._showtraceback(etype, evalue, stb)


def warn_of_exit(message: str, category: type[Warning] | None = None, stacklevel: int = 1) -> None:
    """Warn as IPython does, which tells who has ended a cell by exit() to write exit()."""
    if not is_success(sys.exception()):
        warnings.warn(message, category, stacklevel + 1)


class IPythonKernel(ipkernel.IPythonKernel):
    """Tells the harness, with each reply, whether the cell has ended the run, and whether the
    kernel's end would have something to do."""

    shell_class = Type(ZMQInteractiveShell)

    # Not by do_execute, which would be one more frame below the user's code.
    def finish_metadata(self, parent: Any, metadata: Any, reply_content: Any) -> Any:
        metadata = super().finish_metadata(parent, metadata, reply_content)
        if parent["header"]["msg_type"] == "execute_request":
            if parent["content"].get("silent"):  # the harness's own, before any other
                self.forget_cell()
                IPKernelApp.ending.begin()
                reply_content["early"] = IPKernelApp.early
            self._note_exit(reply_content)
            try:
                quiet = IPKernelApp.ending.is_quiet()
            except Exception:  # noqa: BLE001 - without a reply the run would hang
                quiet = False
            reply_content["quiet"] = quiet
        return metadata

    def _note_exit(self, reply_content: Any) -> None:
        shell: Any = self.shell
        left, shell.left = shell.left, None
        if left is None:
            return
        reply_content["ended"] = True
        result = shell.last_execution_result
        if result is not None and result.error_in_exec is left:
            reply_content["status"] = "ok"
            for name in ("ename", "evalue", "traceback", "engine_info"):
                reply_content.pop(name, None)

    def forget_cell(self) -> None:
        """Forget the cell that has run last."""
        shell: Any = self.shell
        shell.last_execution_result = None
        for name in shell.compile._filename_map:
            linecache.cache.pop(name, None)
        shell.compile._filename_map.clear()


class IPKernelApp(kernelapp.IPKernelApp):
    """The application of one kernel in this process."""

    kernel_class = Type(  # type: ignore[assignment]
        IPythonKernel, klass="ipykernel.kernelbase.Kernel"
    )

    of_every_kernel: ClassVar[set[str]] = set()  # modules that are no news to a user
    modules: ClassVar[list[str]] = []  # to import beforehand
    hurry: ClassVar[int] = -1  # descriptor; once its other end is closed, nothing more is imported
    early: ClassVar[list[str]] = []  # top-level names of what was imported beforehand
    not_of_kernels: ClassVar[list[str]] = []  # modules to forget, if that is known beforehand
    ending = Ending()

    def init_iopub(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        # A publisher drops what its reader has not taken yet, unless told to wait.
        context.setsockopt(zmq.XPUB_NODROP, 1)
        context.setsockopt(zmq.SNDHWM, MAX_QUEUED)
        context.setsockopt(zmq.RCVHWM, MAX_QUEUED)  # of what forked children print
        super().init_iopub(context)
        self.session.pack = pack

    def initialize(self, argv: Any = None) -> None:
        """Start the kernel, and import what most code is going to.

        As code of a cell would: libraries look around for a shell, and for variables.
        """
        # Its default was read in the harness.
        self.parent_handle = int(os.environ.get("JPY_PARENT_PID") or 0)
        super().initialize(argv)
        self.behave()
        if self.hurry >= 0:
            gc.disable()
            self.import_in_shell()
            gc.enable()
            os.close(self.hurry)
        self.ending.begin()

    def behave(self) -> None:
        """Have this process be what code of a script takes it for."""
        sys.argv = [PROGRAM]  # and not those of the kernel, which a program's parser refuses
        sys.breakpointhook = breakpoint_without_debugger
        setattr(interactiveshell, "warn", warn_of_exit)  # noqa: B010
        for owner in (asyncio, asyncio.runners, asyncio.Runner):
            setattr(owner, "run", apart(vars(owner)["run"]))  # noqa: B010
        asyncio.BaseEventLoop.run_until_complete = apart(  # type: ignore[method-assign]
            asyncio.BaseEventLoop.run_until_complete
        )
        logging.getLogger("matplotlib.font_manager").addFilter(Once())

    def import_in_shell(self) -> None:
        """Import the modules, as code of a cell would."""
        shell: Any = self.shell
        with shell.builtin_trap:  # get_ipython is there, as in a cell
            self._import()

    def _import(self) -> None:
        poll = select.poll()
        if self.hurry >= 0:
            poll.register(self.hurry, select.POLLIN)
        for name in self.modules:
            if poll.poll(0):
                break
            try:
                importlib.import_module(name)
            except Exception:  # noqa: BLE001 - whatever a library does when it is imported
                traceback.print_exc()
        new = set(sys.modules) - self.of_every_kernel
        IPKernelApp.early = sorted({name.partition(".")[0] for name in new})


def apart(run: Callable[..., Any]) -> Callable[..., Any]:
    """Let run, which runs a loop, do so in a cell: there the kernel's own runs already.

    That one waits for the cell as it does for any other. What belongs to it, such as a task
    that an earlier cell has made, is awaited at a cell's top level.
    """

    @functools.wraps(run)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        app: Any = IPKernelApp.instance()
        loop = asyncio._get_running_loop()
        if loop is None or loop is not app.io_loop.asyncio_loop:
            return run(*args, **kwargs)
        asyncio._set_running_loop(None)
        try:
            return run(*args, **kwargs)
        finally:
            asyncio._set_running_loop(loop)
            asyncio.set_event_loop(loop)

    return call


class Once(logging.Filter):
    """Lets matplotlib say once that it lacks a font, and not for each text that it draws."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if text in self._said:
            return False
        if len(self._said) < MAX_SAID:
            self._said.add(text)
        return True


def pack(message: object) -> bytes:
    """Encode a message; lone surrogates, which UTF-8 has no place for, travel as escapes.

    Otherwise the whole message would be lost.
    """
    try:
        return json_packer(message)
    except UnicodeEncodeError:
        return json.dumps(message, default=json_default, allow_nan=False).encode()


def pass_for_parents(*kinds: type) -> None:
    """Have these be what a user sees their parents as, and what configuration is stored under."""
    for kind in kinds:
        parent = kind.__bases__[0]
        kind.__module__, kind.__qualname__ = parent.__module__, parent.__qualname__


# The names that the kernel looks up.
setattr(iostream, "OutStream", OutStream)  # noqa: B010
setattr(kernelapp, "IOPubThread", IOPubThread)  # noqa: B010
pass_for_parents(
    IOPubThread,
    OutStream,
    ZMQExitAutocall,
    ZMQInteractiveShell,
    IPythonKernel,
    IPKernelApp,
)
