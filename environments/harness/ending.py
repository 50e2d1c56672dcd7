"""The end of a kernel's process: what of it a user could notice, and nothing else.

An interpreter that ends waits for threads, runs exit handlers, finalizes objects, and with
that writes files out that were left open. Then it frees all libraries, object by object,
which takes longer than all of a small run. And most runs leave nothing to do at all.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import io
import os
import sys
import threading
import weakref
from types import GeneratorType
from typing import Any, NoReturn

MAX_BLOCKS = 200_000  # of memory since the start: more is not searched for finalizers


class Ending:
    """Knows what there was before any code of the user, to tell what that has added."""

    def __init__(self) -> None:
        self._libraries: set[str] = set()
        self._before = (-1, -1, -1)
        self._blocks = 0

    def begin(self) -> None:
        """Take what there is now as the kernel's own."""
        gc.freeze()  # what there is now stays, and is not looked at again
        self._libraries.update(sys.modules.keys() - {"__main__"})  # which is the user's
        self._before = _count()
        self._blocks = sys.getallocatedblocks()

    def is_quiet(self) -> bool:
        """Report whether the process could be killed now and nobody would know."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            pass
        else:
            return False
        own = threading.main_thread()
        return (
            _count() == self._before
            and not any(not t.daemon and t is not own for t in threading.enumerate())
            and sys.getallocatedblocks() - self._blocks < MAX_BLOCKS
            and not self._any_finalizes()
        )

    def _any_finalizes(self) -> bool:
        objects = gc.get_objects()
        kinds = set(map(type, objects))
        return (
            any(map(self._finalizes, kinds))
            # Instances without fields are not in that list; their classes are.
            or any(self._finalizes(kind) for kind in objects if isinstance(kind, type))
            # What waits in a with or try, such as a context that was not left.
            or (GeneratorType in kinds and any(map(self._waits, objects)))
        )

    def _finalizes(self, kind: type) -> bool:
        return kind.__module__ not in self._libraries and hasattr(kind, "__del__")

    def _waits(self, thing: object) -> bool:
        if type(thing) is not GeneratorType or not thing.gi_suspended:
            return False
        module = thing.gi_frame.f_globals.get("__name__")  # type: ignore[union-attr]
        return module not in self._libraries

    def finish(self, app: Any) -> NoReturn:
        """End the process."""
        threading._shutdown()  # type: ignore[attr-defined] # waits for those that are no daemons
        atexit.unregister(app.close)  # the sockets end with the process
        atexit._run_exitfuncs()
        for name, module in list(sys.modules.items()):
            if name == "__main__" or name not in self._libraries:
                space = vars(module)
                space.get("_oh", {}).clear()  # IPython's Out, which it holds on to
                space.clear()
        for name in ("last_exc", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
        gc.collect()
        for thing in gc.get_objects():
            if isinstance(thing, io.TextIOWrapper | io.BufferedWriter | io.BufferedRandom):
                with contextlib.suppress(Exception):
                    thing.flush()
        ctypes.CDLL(None).fflush(None)
        os._exit(0)


def _count() -> tuple[int, int, int]:
    """Count what an exit could have to do with: handlers, finalizers, files open for writing."""
    return (
        atexit._ncallbacks(),
        len(weakref.finalize._registry),  # type: ignore[attr-defined]
        sum(map(_may_be_written, os.listdir("/proc/self/fd"))),
    )


def _may_be_written(descriptor: str) -> bool:
    try:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        mode = fcntl.fcntl(int(descriptor), fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:  # that of the listing itself
        return False
    # A pipe or a socket leads to a process, and those are told by themselves.
    return name.startswith("/") and not name.startswith("/dev/") and mode != os.O_RDONLY
