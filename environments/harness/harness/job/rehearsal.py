"""What a cell does is rehearsed in the process that it is forked from, by harness and kernel in
one: the interpreter makes code faster that has run often, in steps, and a fork has that."""

from __future__ import annotations

import asyncio
import os

import nbformat
from jupyter_core import utils
from nbformat.v4 import new_code_cell, new_notebook

from harness.job.clock import Clock
from harness.job.execute import NO_LIMIT, Executor
from harness.job.job import run_cells, tell
from harness.kernel.process import Rehearsed
from harness.stream.frames import Writer

TIMES = 30  # the interpreter's last step is after 16
BUDGET = 1 << 20  # bytes of output, which are few


def rehearse() -> None:
    """Run a notebook again and again, without a trace."""
    text = nbformat.writes(new_notebook(cells=[new_code_cell("print(1)")]))
    null = os.open(os.devnull, os.O_WRONLY)
    kernel, writer = Rehearsed(), Writer(null)
    with kernel.silenced(), kernel.on_stage():
        for _ in range(TIMES):
            executor = Executor.of(kernel, writer, True, BUDGET)
            nb, outcome = run_cells(
                lambda: nbformat.reads(text, as_version=4),
                executor,
                Clock(kernel, NO_LIMIT, lambda: None),
            )
            tell(writer, outcome, nb, executor.dropped)
            if not nb.cells[0].outputs:
                raise RuntimeError(f"the rehearsal failed: {outcome} {executor.dropped}")
    Executor.ahead = Executor()
    kernel.disconnect()
    os.close(null)
    utils.ensure_event_loop().close()
    asyncio.set_event_loop(None)
    utils._loop.set(None)
