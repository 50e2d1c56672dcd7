"""What the harness knows of a kernel that is forked from it, whatever kernel that is."""

from __future__ import annotations

from collections.abc import Callable

MAX_QUEUED = 16  # messages that wait for the harness, on either side


class InKernelError(BaseException):
    """Unwinds the stack of the harness in a kernel that was forked from it: run is the kernel,
    and end what comes after it.

    Code of the user is as deep in the stack then as in any kernel, and recurses as deep.
    """

    def __init__(self, run: Callable[[], object], end: Callable[[], object]) -> None:
        super().__init__()
        self.run, self.end = run, end
