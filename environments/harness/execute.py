"""Runs a notebook with nbconvert's ExecutePreprocessor on a kernel that is up."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_core.utils import ensure_event_loop, run_sync
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert.preprocessors import ExecutePreprocessor
from nbformat import NotebookNode

from frames import EVENT, Writer
from kernel import Kernel
from watchdog import Watchdog

OUTPUT_OVERHEAD = 64  # bytes counted for each output, which costs its keeping too
DRAIN_MS = 50  # without a message, until a kernel that has ended has nothing more to say
NO_LIMIT = 10**9  # seconds that nbclient may wait; the watchdog is the clock


class Executor(ExecutePreprocessor):
    """nbconvert's execution, with its outputs counted and passed on as they happen."""

    def __init__(self, kernel: Kernel, writer: Writer, stop_on_error: bool, budget: int) -> None:
        super().__init__(timeout=None, iopub_timeout=NO_LIMIT, allow_errors=not stop_on_error)
        self.on_cell_error = self._note_error
        self.errors: list[str] = []  # the class of each exception that ended a cell
        self._kernel, self._writer, self._budget = kernel, writer, budget
        self._loop = ensure_event_loop()
        self._watchdog: Watchdog | None = None

    def execute_notebook(self, nb: NotebookNode, watchdog: Watchdog) -> None:
        """Run the cells of nb, in place, as far as the run gets."""
        self._watchdog = watchdog
        # What happened is in nb, in errors and in the watchdog.
        with contextlib.suppress(CellExecutionError, DeadKernelError):
            self.preprocess(nb, {}, km=self._kernel.manager)

    def abort(self) -> None:
        """End the wait for a kernel that is no more; from any thread."""

        async def cancel() -> None:
            # What the kernel had sent before it ended is still to be taken in.
            socket = self._kernel.client.iopub_channel.socket
            while await socket.poll(DRAIN_MS):
                await asyncio.sleep(0)
            if task := getattr(self, "task_poll_for_reply", None):
                task.cancel()

        asyncio.run_coroutine_threadsafe(cancel(), self._loop)

    async def async_start_new_kernel_client(self, **_: Any) -> AsyncKernelClient:
        self.kc = self._kernel.client
        return self.kc

    start_new_kernel_client = run_sync(async_start_new_kernel_client)

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        assert self._watchdog is not None
        if self._watchdog.reason:
            return cell, resources
        if self._watchdog.kernel_ended:
            raise DeadKernelError("Kernel died")
        return super().preprocess_cell(cell, resources, index)  # type: ignore[no-any-return]

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        kind = msg["msg_type"]
        if kind in _OUTPUTS and not self._admit(msg):
            return None
        out: NotebookNode | None = super().process_message(msg, cell, cell_index)
        if kind == "clear_output":
            self._writer.write_json(EVENT, {"kind": "clear", "cell": cell_index})
        elif kind == "update_display_data":
            update = {**msg["content"], "output_type": "display_data"}
            self._writer.write_json(EVENT, {"kind": "update", "cell": cell_index, "output": update})
        elif out is not None:
            self._writer.write_json(EVENT, {"kind": "output", "cell": cell_index, "output": out})
        return out

    def _admit(self, msg: dict[str, Any]) -> bool:
        """Count an output before it is kept; cut it where it passes the cap."""
        assert self._watchdog is not None
        if self._watchdog.reason == "output_limit":
            return False
        content = msg["content"]
        size = _size(content) + OUTPUT_OVERHEAD
        if size <= self._budget:
            self._budget -= size
            return True
        self._watchdog.stop("output_limit")
        if msg["msg_type"] != "stream":
            return False
        content["text"] = (
            content["text"].encode(errors="replace")[: self._budget].decode(errors="ignore")
        )
        self._budget = 0
        return True

    def _note_error(self, cell: NotebookNode, cell_index: int, execute_reply: Any) -> None:
        if "raises-exception" not in cell.metadata.get("tags", []):
            self.errors.append(str(execute_reply["content"].get("ename", "")))


_OUTPUTS = frozenset(("stream", "display_data", "execute_result", "error", "update_display_data"))


def _size(content: dict[str, Any]) -> int:
    """Return how many bytes an output is, as text."""
    if "text" in content:
        return len(content["text"].encode(errors="replace"))
    return sum(
        len(v.encode(errors="replace")) if isinstance(v, str) else len(json.dumps(v))
        for v in (
            *content.get("data", {}).values(),
            *content.get("traceback", ()),
            content.get("evalue", ""),
            content.get("metadata", {}),
        )
    )
