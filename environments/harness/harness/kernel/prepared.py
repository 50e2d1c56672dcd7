"""A kernel that is built before there is a cell, in the process that cells are forked from.

ipykernel's own application, kernel and shell, with wires (wire.py) instead of ZeroMQ, without
a heartbeat, as the harness watches the process, and without a thread for each channel: there
is one thread, which flushes what was printed and reads what programs have written.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import logging
import os
import secrets
import select
import socket
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import zmq
from ipykernel import iostream, ipkernel, kernelapp
from tornado import ioloop
from traitlets import Any as AnyTrait
from traitlets import Type

from harness.kernel import application
from harness.kernel.application import HISTORY, pack
from harness.kernel.wire import Wire

TIMES = 4  # tables and figures: what they run through has loops enough for the interpreter
PIPE = 1 << 16  # bytes that a pipe holds
CHILD_PAUSE = 0.01  # seconds
# What code sees as the file of the connection, which is not there; named as a container's is.
NO_CONNECTION_FILE = "/run/notebox/kernel-of_cells/kernel.json"


class IOPubThread(iostream.IOPubThread):
    """Publishes at once, in whichever thread. Its own does what is due later."""

    wire: Wire | None = None  # in the fork
    thread: Any = None
    io_loop: Any

    def __init__(self, session: Any) -> None:
        self.session = session
        self.background_socket = iostream.BackgroundSocket(self)
        self.io_loop = self
        self.turn = threading.RLock()  # of who takes what was printed, and publishes it
        self._due: deque[tuple[float, Callable[[], object]]] = deque()

    def begin(self, wire: Wire, streams: Sequence[Any]) -> None:
        """Publish by that wire, in the fork, and look after these streams."""
        self.wire, self._streams = wire, streams
        self._master_pid = os.getpid()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        os.register_at_fork(after_in_child=self._forked)
        self.thread = threading.Thread(target=self._thread_main, name="IOPub", daemon=True)
        self.thread.start()

    def _forked(self) -> None:
        """Begin anew, in a process that code forks, with locks that a thread may have had."""
        self.turn = threading.RLock()
        for stream in self._streams:
            stream._buffer_lock = threading.RLock()

    @property
    def socket(self) -> Wire | None:
        return self.wire

    def send_multipart(self, msg: Any, *_: Any, **__: Any) -> None:
        """Publish a message."""
        if self.wire:
            self.wire.send_multipart(msg)

    def schedule(self, f: Callable[[], object]) -> None:
        """Have f called."""
        f()

    def call_later(self, delay: float, f: Callable[[], object]) -> None:
        """Have the thread call f; who asks for that has the same delay each time, in seconds."""
        if self.thread:
            self._due.append((time.monotonic() + delay, f))
            os.eventfd_write(self._wake, 1)

    def _thread_main(self) -> None:
        streams = {stream._fid: stream for stream in self._streams}
        poll = select.poll()
        for fd in (self._wake, *streams):
            poll.register(fd, select.POLLIN)
        while True:
            left = self._due[0][0] - time.monotonic() if self._due else None
            for fd, _ in poll.poll(None if left is None else max(0, left * 1000)):
                with contextlib.suppress(Exception):  # whatever the user does to streams
                    if fd == self._wake:
                        os.eventfd_read(fd)
                    elif streams[fd].closed:
                        poll.unregister(fd)
                    else:
                        streams[fd].take_written()
            while self._due and self._due[0][0] <= time.monotonic():
                with contextlib.suppress(Exception):
                    self._due.popleft()[1]()

    def stop(self) -> None:
        """Do nothing: it ends with the process."""

    def close(self) -> None:
        """Do nothing: what is sent is on its way."""


class OutStream(application.OutStream):
    """Standard output and error, published by whoever flushes them."""

    _taking = False  # what programs have written
    _fid: Any

    def _setup_stream_redirects(self, name: str) -> None:
        """Do as ipykernel does, without a thread."""
        self._fid, written = os.pipe()
        os.set_blocking(self._fid, False)
        self._original_stdstream_fd = getattr(sys, name).fileno()
        self._original_stdstream_copy = os.dup(self._original_stdstream_fd)
        os.dup2(written, self._original_stdstream_fd)
        self._exc = None
        self._should_watch = True

    def begin(self) -> None:
        """Begin, in the fork, to be what it is named after."""
        self._master_pid = os.getpid()
        self._setup_stream_redirects(self.name)

    def take_written(self) -> None:
        """Print what programs have written to the descriptor."""
        publisher: Any = self.pub_thread
        with publisher.turn:
            if self._taking:
                return
            self._taking = True
            try:
                written = os.read(self._fid, PIPE)
                self.write(written.decode(errors="replace"))
                os.write(self._original_stdstream_copy, written)
            except BlockingIOError:
                pass
            finally:
                self._taking = False

    def _flush(self) -> None:
        publisher: Any = self.pub_thread
        if publisher:
            with publisher.turn:
                super()._flush()

    def flush(self) -> None:
        """Return when what was printed and written is on its way."""
        publisher: Any = self.pub_thread
        if publisher:
            with publisher.turn:
                if self._should_watch and self._is_master_process():
                    self.take_written()
                self._flush()

    def close(self) -> None:
        """Close it, and have the descriptor be what it was."""
        if self._should_watch:
            self._should_watch = False
            os.dup2(self._original_stdstream_copy, self._original_stdstream_fd)
            os.close(self._original_stdstream_copy)
        super().close()


class Stream:
    """What the kernel has for a ZMQStream: its end of the shell channel."""

    wire: Wire
    io_loop: Any = None

    def __init__(self) -> None:
        self._tasks: set[asyncio.Future[Any]] = set()  # or nobody would hold them

    def on_recv(self, callback: Callable[..., Any], **_: Any) -> None:
        """Call back with each message, on the loop of this thread."""
        self.io_loop, self._callback, self._reader = ioloop.IOLoop.current(), callback, os.getpid()
        self.io_loop.asyncio_loop.add_reader(self.wire, self.flush)

    def flush(self, _: int = 0, limit: int | None = None) -> int:
        """Take messages that have come; return how many."""
        if os.getpid() != self._reader:
            # Code has forked, and its child came back to the loop. It has the same loop and wire,
            # and must not take what is its parent's; that one may be busy.
            time.sleep(CHILD_PAUSE)
            return 0
        taken = 0
        while taken != limit and (message := self.wire.receive()) is not None:
            task = asyncio.ensure_future(self._callback([zmq.Frame(part) for part in message]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            taken += 1
        if self.wire.over:  # the harness is no more, and so the sandbox
            os._exit(1)
        return taken

    def send_multipart(self, msg: Any, *_: Any, **__: Any) -> None:
        """Send a reply."""
        self.wire.send_multipart(msg)

    def getsockopt(self, _: int) -> int:
        """Return the descriptor, which a loop of a window system asks for by zmq.FD."""
        return self.wire.fileno()


class NoShellThread:
    """What the kernel asks for the thread that cells run in; there is none for their channel."""

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False


class IPythonKernel(application.IPythonKernel):
    """A kernel whose messages come by a wire, and by one channel."""

    shell: Any
    shell_stream = AnyTrait()
    _supports_kernel_subshells = False
    _execute_sleep = 0.0  # seconds before a reply: a flush has sent what was printed

    def start(self) -> None:
        """Do what any kernel does, and nothing for a debugger."""
        self.shell.exit_now = False
        super(ipkernel.IPythonKernel, self).start()


class IPKernelApp(application.IPKernelApp):
    """The application of the kernels that are forked from this process."""

    kernel_class = Type(IPythonKernel, klass="ipykernel.kernelbase.Kernel")
    kernel: Any
    shell: Any
    iopub_thread: Any

    def prepare(self) -> None:
        """Build the kernel and its shell, and import the modules."""
        before = dict(os.environ)
        plain = self._swap()
        kernelapp.IPKernelApp.initialize(self, ["-f", NO_CONNECTION_FILE, HISTORY])
        self.import_in_shell()
        if "pandas" in sys.modules:
            tabulate()
        if "matplotlib.backends.backend_agg" in sys.modules:
            draw()
        gc.collect()
        self.ending.begin()
        self._published = self._swap(plain)
        self._folder = list(_contents(self.ipython_dir))
        self._environment = dict(os.environ.items() - before.items())
        self.info: dict[str, Any] = self.kernel.kernel_info

    @classmethod
    def is_prepared(cls) -> bool:
        """Report whether a kernel that is forked from this process has been built in it."""
        return cls.initialized()

    def take(self, descriptors: Sequence[int]) -> None:
        """Take the ends of the wires of shell and iopub, in the fork."""
        self.kernel.shell_stream.wire, self._iopub = (
            Wire(socket.socket(fileno=fd)) for fd in descriptors
        )

    def initialize(self, argv: Any = None) -> None:
        """Do the rest, in the fork."""
        for path, content in self._folder:  # it is another home
            if content is None:
                os.mkdir(path)
            else:
                path.write_bytes(content)
        os.environ.update(self._environment)
        self.session.session, self.session.pid = secrets.token_hex(16), os.getpid()
        self.kernel.ident = str(uuid.uuid4())
        self.shell.displayhook.topic = self.kernel._topic("execute_result")
        streams: list[Any] = list(self._published[:2])
        for stream in streams:
            stream.begin()
        self._log_to(streams[1]._original_stdstream_copy)
        self._swap(self._published)
        kernelapp.IPKernelApp.init_signal(self)
        self.shell.starting_dir = os.getcwd()
        self.shell.history_manager.dir_hist[:] = [Path.cwd()]
        self.behave()
        self.iopub_thread.begin(self._iopub, streams)
        gc.freeze()
        self.ending.count()

    @contextlib.contextmanager
    def on_stage(self) -> Iterator[None]:
        """Have the kernel serve its wires in this process, which goes on otherwise afterwards."""
        plain = self._swap(self._published)
        self.iopub_thread.wire = self._iopub
        self.kernel.start()
        try:
            yield
        finally:
            self._swap(plain)
            self.iopub_thread.wire = None
            for wire in (self._iopub, self.kernel.shell_stream.wire):
                wire.close()
            self.session.message_count = 0

    def _swap(self, outputs: Sequence[Any] = ()) -> Sequence[Any]:
        """Return where this process's output goes; from now on it goes there."""
        before = sys.stdout, sys.stderr, sys.displayhook
        if outputs:
            sys.stdout, sys.stderr, sys.displayhook = outputs
        return before

    def _log_to(self, descriptor: int) -> None:
        """Have the application's own log go where it went, and not to the user's output."""
        for handler in self.log.handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.stream = io.TextIOWrapper(io.FileIO(descriptor, "w"))

    def init_sockets(self) -> None:
        self.session.pack = pack
        self.session.key = b""  # nobody else has the wire
        self.configure_tornado_logger()
        self.iopub_thread = IOPubThread(self.session)
        self.iopub_socket = self.iopub_thread.background_socket

    def init_io(self) -> None:
        outstream = f"{__name__}.OutStream"
        self.outstream_class, self.capture_fd_output = outstream, False
        super().init_io()

    def init_kernel(self) -> None:
        kind: Any = self.kernel_class
        self.kernel = kernel = kind.instance(
            parent=self,
            session=self.session,
            shell_stream=Stream(),
            shell_channel_thread=NoShellThread(),
            iopub_thread=self.iopub_thread,
            iopub_socket=self.iopub_socket,
            log=self.log,
            profile_dir=self.profile_dir,
            user_ns=self.user_ns,
        )
        self.displayhook.get_execution_count = lambda: kernel.execution_count

    def _nothing(self, *_: Any, **__: Any) -> None:
        """What is not done, or not yet."""

    init_connection_file = write_connection_file = log_connection_info = _nothing
    init_poller = init_heartbeat = init_signal = _nothing


def tabulate() -> None:
    """Make a table, describe it and show it as a notebook does, for the same reason."""
    import pandas as pd  # type: ignore[import-not-found,import-untyped]

    for _ in range(TIMES):
        table = pd.DataFrame({"a": range(10), "b": [f"{n}" for n in range(10)]})
        table["c"] = table.a**2
        for shown in (table, table.describe()):
            str(shown)
            shown._repr_html_()
        table.groupby("b").c.sum()


def draw() -> None:
    """Draw a figure that nobody sees, as a notebook does, so that the first one of a run is not
    the slowest. It has no number, and pyplot has not been asked."""
    from IPython.core.pylabtools import print_figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found]
    from matplotlib.figure import Figure  # type: ignore[import-not-found]

    for _ in range(TIMES):
        figure = Figure()
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.plot([0.5, 1.5, 2.5], label="a")
        axes.set(title="a", xlabel="b", ylabel="c")
        axes.legend()
        print_figure(figure)


def _contents(folder: str) -> Iterator[tuple[Path, bytes | None]]:
    """Yield a folder, and what is in it: files with their content, other folders without."""
    yield Path(folder), None
    for path in sorted(Path(folder).rglob("*")):
        yield path, None if path.is_dir() else path.read_bytes()


application.pass_for_parents(IOPubThread, OutStream, IPythonKernel, IPKernelApp)
