"""Runs a notebook with nbconvert's ExecutePreprocessor on a kernel that is up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import Any, ClassVar

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_core.utils import ensure_event_loop, run_sync
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from nbconvert.preprocessors.execute import ExecutePreprocessor
from nbformat import NotebookNode

from harness.job.clock import Clock
from harness.kernel.process import Kernel
from harness.stream.frames import EVENT, Writer
from harness.system.grace import LOOK_SECONDS, Grace

OUTPUT_OVERHEAD = 64  # bytes counted for each output, which costs its keeping too
MAX_DEPTH = 100  # of JSON in an output: what writes it recurses
MAX_DROPPED = 50  # reports of outputs that could not be kept
DRAIN_SECONDS = 0.25  # without a message, until a kernel that has ended has nothing more to say
DRAIN_MOST_SECONDS = 1.5  # for all of that; after the clock's two, of four
NO_LIMIT = 10**9  # seconds that nbclient may wait; a Clock counts


class Executor(ExecutePreprocessor):
    """nbconvert's execution, with its outputs counted and passed on as they happen."""

    ahead: ClassVar[Executor | None] = None  # one that was made before there is a job

    @classmethod
    def of(cls, kernel: Kernel, writer: Writer, stop_on_error: bool, budget: int) -> Executor:
        """Return a new one, which takes a while, or the one that was made ahead."""
        executor, cls.ahead = cls.ahead or cls(), None
        executor._take(kernel, writer, stop_on_error, budget)
        return executor

    def __init__(self) -> None:
        super().__init__(timeout=None, iopub_timeout=NO_LIMIT)
        self.on_cell_error = self._note_error
        self.on_cell_executed = self._note_reply
        self.early: list[str] = []
        self.ended = False  # by an exit with code 0: no cell runs any more
        self.quiet = True  # the kernel has nothing to do at its exit
        self.errors: list[str] = []  # the class of each exception that ended a cell
        self.dropped: list[dict[str, str]] = []  # outputs that could not be kept, and why
        self.broken = False  # the kernel's replies are none
        self._full = False  # the budget is used up
        self._clock: Clock | None = None

    def _take(self, kernel: Kernel, writer: Writer, stop_on_error: bool, budget: int) -> None:
        self.allow_errors = not stop_on_error
        self._kernel, self._writer, self._budget = kernel, writer, budget
        self._loop = ensure_event_loop()

    def execute_notebook(self, nb: NotebookNode, clock: Clock) -> None:
        """Run the cells of nb, in place, as far as the run gets."""
        self._clock, clock.abort = clock, self.abort
        # What happened is in nb, in errors and in the clock.
        try:
            with contextlib.suppress(CellExecutionError, DeadKernelError):
                self.preprocess(nb, {}, km=self._kernel.manager)
        except Exception as e:  # noqa: BLE001 - user code can send any reply
            self.broken = True
            self._drop(0, "reply", f"not a valid reply: {type(e).__name__}")

    def abort(self) -> None:
        """End the wait for a kernel that is no more; from any thread."""

        async def cancel() -> None:
            # What the kernel had sent before it ended is still to be taken in.
            socket = self._kernel.client.iopub_channel.socket
            end = time.monotonic() + DRAIN_MOST_SECONDS
            quiet = Grace(DRAIN_SECONDS, DRAIN_MOST_SECONDS)
            while time.monotonic() < end:
                if await socket.poll(LOOK_SECONDS * 1000):
                    quiet = Grace(DRAIN_SECONDS, DRAIN_MOST_SECONDS)
                    await asyncio.sleep(0)
                elif quiet.over():
                    break
            if task := getattr(self, "task_poll_for_reply", None):
                task.cancel()

        asyncio.run_coroutine_threadsafe(cancel(), self._loop)

    async def async_start_new_kernel_client(self, **_: Any) -> AsyncKernelClient:
        self.kc = self._kernel.client
        return self.kc

    start_new_kernel_client = run_sync(async_start_new_kernel_client)

    def wait_for_reply(self, msg_id: str, cell: NotebookNode | None = None) -> Any:
        if msg_id == self._kernel.info_request:
            return self._kernel.info
        return super().wait_for_reply(msg_id, cell)

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        assert self._clock is not None
        if self._clock.reason or self.ended:
            return cell, resources
        if self._clock.kernel_ended:
            raise DeadKernelError("Kernel died")
        return super().preprocess_cell(cell, resources, index)  # type: ignore[no-any-return]

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        kind, content = msg["msg_type"], msg["content"]
        if not (isinstance(kind, str) and isinstance(content, dict)):
            self._drop(cell_index, kind, "not a message")
            return None
        if not isinstance(content.get("execution_count", 0), int):
            del content["execution_count"]
        if kind not in _FREE and not self._admit(msg, cell_index):
            return None
        waiting = self.clear_before_next_output
        try:
            out: NotebookNode | None = super().process_message(msg, cell, cell_index)
        except CellControlSignal:
            raise
        except Exception as e:  # noqa: BLE001 - user code can send any message
            self._drop(cell_index, kind, f"not a valid message: {type(e).__name__}")
            return None
        # A clear that waits happens with the next output.
        if (waiting and not self.clear_before_next_output) or (
            kind == "clear_output" and not content.get("wait")
        ):
            self._tell("clear", cell_index)
        if kind == "update_display_data":
            self._tell("update", cell_index, {**content, "output_type": "display_data"})
        elif out is not None:
            # By its transient part an update finds the display; a notebook does not keep it.
            transient = {"transient": t} if (t := content.get("transient")) else {}
            self._tell("output", cell_index, {**out, **transient})
        return out

    def _tell(self, kind: str, cell_index: int, output: dict[str, Any] | None = None) -> None:
        event: dict[str, Any] = {"kind": kind, "cell": cell_index}
        if output is not None:
            event["output"] = output
        self._writer.write_json(EVENT, event)

    def _admit(self, msg: dict[str, Any], cell_index: int) -> bool:
        """Check and count what a message holds before it is kept; cut it at the cap."""
        if self._full:
            return False
        content = msg["content"]
        try:
            size = _size(content, msg["msg_type"]) * (1 + self._copies(content))
            size += sum(map(len, msg["buffers"])) + OUTPUT_OVERHEAD
        except (TypeError, ValueError, RecursionError, KeyError) as e:
            self._drop(cell_index, msg["msg_type"], f"not valid: {e}")
            return False
        if size <= self._budget:
            self._budget -= size
            return True
        self._full = True
        assert self._clock is not None
        self._clock.stop("output_limit")
        if msg["msg_type"] != "stream":
            return False
        text = content["text"].encode(errors="replace")[: self._budget]
        content["text"] = text.decode(errors="ignore")
        return True

    def _copies(self, content: dict[str, Any]) -> int:
        """Return how many outputs there are that a message with a display id changes too."""
        transient = content.get("transient")
        if not isinstance(transient, dict):
            return 0
        display_id: Any = transient.get("display_id")
        outputs = self._display_id_map.get(display_id, {})
        return sum(map(len, outputs.values()))

    def _drop(self, cell_index: int, kind: Any, reason: str) -> None:
        if len(self.dropped) < MAX_DROPPED:
            path = f"cell {cell_index}: {str(kind)[:100]}"
            self.dropped.append({"path": path, "reason": reason[:200]})

    def _note_error(self, cell: NotebookNode, cell_index: int, execute_reply: Any) -> None:
        if "raises-exception" not in cell.metadata.get("tags", []):
            self.errors.append(str(execute_reply["content"].get("ename", "")))

    def _note_reply(self, execute_reply: Any, **_: Any) -> None:
        self.ended = execute_reply["content"].get("ended") is True
        self.quiet = execute_reply["content"].get("quiet") is True
        self.early = execute_reply["content"].get("early", [])


def errors_shown(nb: NotebookNode) -> list[str]:
    """Return the class of each error among the outputs, but of cells that may raise.

    Of displays that raise, too: a repr, or a figure that cannot be drawn at the cell's end.
    They end no cell.
    """
    return [
        str(output.get("ename", ""))
        for cell in nb.cells
        if "raises-exception" not in cell.metadata.get("tags", [])
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]


_STREAM_NAME = len("stdout")  # free: the text alone is what people count

# Messages that leave nothing behind.
_FREE = frozenset(("status", "execute_input"))


def _size(content: dict[str, Any], kind: str) -> int:
    """Return how many bytes an output is: a stream's text, or the whole as JSON.

    Raises ValueError for what is not JSON or not a message's content.
    """
    _check_depth(content)
    if kind == "stream":
        text, name = content["text"], content["name"]
        if not (isinstance(text, str) and isinstance(name, str)):
            raise TypeError("a stream's text is a string")
        return len((text + name).encode(errors="replace")) - _STREAM_NAME
    return len(json.dumps(content, ensure_ascii=False, allow_nan=False).encode(errors="replace"))


def _check_depth(content: Any) -> None:
    """Raise ValueError where JSON is nested too deep to be written by recursion."""
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {MAX_DEPTH} deep")
