"""The end of a kernel's process: what of it a user could notice, and nothing else.

An interpreter that ends waits for threads, runs exit handlers, finalizes objects, and with
that writes files out that were left open. Then it frees all libraries, object by object,
which takes longer than all of a small run. And most runs leave nothing to do at all.

Nothing here calls code of the user's to find that out: objects are looked at by their types
alone, and types without their metaclasses' having a say.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import io
import logging
import os
import sys
import threading
import weakref
from types import AsyncGeneratorType, CoroutineType, GeneratorType, ModuleType
from typing import Any, NoReturn

MAX_BLOCKS = 200_000  # of memory since the start: more is not searched for finalizers

_bases = vars(type)["__mro__"].__get__
_members = vars(type)["__dict__"].__get__
_space = vars(ModuleType)["__dict__"].__get__


class Ending:
    """Knows what there was before any code of the user, to tell what that has added."""

    def __init__(self) -> None:
        self._libraries: set[str] = set()
        self._before: tuple[int, ...] = ()
        self._blocks = 0

    def begin(self) -> None:
        """Take what there is now as the kernel's own."""
        gc.freeze()  # what there is now stays, and is not looked at again
        self._libraries.update(sys.modules.keys() - {"__main__"})  # which is the user's
        self.count()

    def count(self) -> None:
        """Take what is counted now as the kernel's own."""
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
        kinds = {id(kind): kind for kind in map(type, objects)}
        # Instances without fields are not among the objects; their classes are.
        metas = {key for key, kind in kinds.items() if issubclass(kind, type)}
        kinds |= {id(thing): thing for thing in objects if id(type(thing)) in metas}
        return any(map(self._finalizes, kinds.values())) or (
            not kinds.keys().isdisjoint(_SUSPENDED) and any(map(self._waits, objects))
        )

    def _finalizes(self, kind: type) -> bool:
        module = _members(kind).get("__module__")
        if module is None or self._is_library(module):  # or written in C
            return False
        return any("__del__" in _members(base) for base in _bases(kind))

    def _waits(self, thing: Any) -> bool:
        """Report whether code of the user's is suspended, in a with or a try, say."""
        if (of := _SUSPENDED.get(id(type(thing)))) is None or not getattr(thing, f"{of}_suspended"):
            return False
        return not self._is_library(getattr(thing, f"{of}_frame").f_globals.get("__name__"))

    def _is_library(self, module: Any) -> bool:
        return type(module) is str and module in self._libraries

    def finish(self, app: Any) -> NoReturn:
        """End the process."""
        try:
            threading._shutdown()  # type: ignore[attr-defined] # waits for those that are no daemons
            atexit.unregister(app.close)  # the sockets end with the process
            atexit._run_exitfuncs()
            self._drop_objects()
        finally:
            _flush_files()
            ctypes.CDLL(None).fflush(None)
            os._exit(0)

    def _drop_objects(self) -> None:
        """Finalize the objects of the user's modules, in the order of an interpreter."""
        names = [name for name in sys.modules if name not in self._libraries]
        modules = [sys.modules.pop(name) for name in names]
        spaces = [_space(m) for m in modules if issubclass(type(m), ModuleType)]
        modules.clear()
        for name in ("last_exc", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
        gc.collect()
        for space in spaces:
            if type(shown := space.get("_oh")) is dict:  # IPython's Out, which it holds on to
                shown.clear()
            # What a finalizer needs goes after what it may belong to: see _PyModule_Clear.
            for private in (True, False):
                for name in [n for n in space if type(n) is str and n != "__builtins__"]:
                    if name.startswith("_") is private:
                        space[name] = None
        gc.collect()


# What code can be suspended in, by the address of the type.
_SUSPENDED = {id(GeneratorType): "gi", id(CoroutineType): "cr", id(AsyncGeneratorType): "ag"}


def _count() -> tuple[int, ...]:
    """Count what an exit could have to do with."""
    processes = sys.modules.get("multiprocessing.util")
    return (
        atexit._ncallbacks(),
        len(threading._threading_atexits),  # type: ignore[attr-defined]
        len(weakref.finalize._registry),  # type: ignore[attr-defined]
        len(processes._finalizer_registry) if processes else 0,
        len(logging._handlerList),  # type: ignore[attr-defined]
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


def _flush_files() -> None:
    for thing in gc.get_objects():
        if issubclass(type(thing), io.TextIOWrapper | io.BufferedWriter | io.BufferedRandom):
            with contextlib.suppress(Exception):
                thing.flush()
