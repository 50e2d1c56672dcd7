"""What a sandbox imports before any job is there, once, for the harness and the kernel.

The kernel is forked from the harness (see start.py), so that both share these pages and
neither pays twice. What code may import comes after that, in the kernel alone
(application.py).
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import os
import sys
from pathlib import Path

from harness.stream.frames import write_all
from harness.system.places import DISPLAY, HARNESS, HOME
from harness.system.privileges import as_user

# What a kernel loads by itself when it starts, and when it runs its first cell.
KERNEL = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "faulthandler",
    "psutil",
    "sqlite3",
    "tornado.locks",
    "tornado.platform.asyncio",
    "tornado.queues",
)


def environment(extra: dict[str, str]) -> dict[str, str]:
    """Return the environment of the kernel: nothing of the harness's own."""
    return {
        "HOME": HOME,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "DISPLAY": DISPLAY,
        # Compiled modules of the user's are no files that a run has made.
        "PYTHONDONTWRITEBYTECODE": "1",
        # Threads of OpenBLAS sleep as soon as they have nothing to do. By default each spins for
        # 2^26 cycles, at import too, which is a tenth of what a sandbox costs to start.
        "OPENBLAS_THREAD_TIMEOUT": "4",
        **extra,
    }


def begin() -> None:
    """Have an environment that is a kernel's, for what is imported."""
    env = environment({})
    os.environ.clear()
    os.environ.update(env)
    gc.disable()  # until the fork: what is imported stays
    home()


def kernel_modules() -> None:
    """Import what every kernel of Python does."""
    from harness.kernel.application import IPKernelApp

    for name in KERNEL:
        importlib.import_module(name)
    IPKernelApp.of_every_kernel.update(sys.modules)


def home() -> None:
    """Make the user's home, like a new user's, with caches of the image that take long to make."""
    with as_user():
        for path, mode, content, written in skeleton():
            if content is None:
                os.makedirs(path, exist_ok=True)
            else:
                with open(path, "wb", buffering=0) as f:
                    write_all(f.fileno(), content)
                os.utime(path, ns=(written, written))
            os.chmod(path, mode)


@functools.cache
def skeleton() -> list[tuple[str, int, bytes | None, int]]:
    """Return what a new user's home has: path, mode, a file's content, when it was written."""
    skeleton, found = Path("/etc/skel"), []
    for path in (skeleton, *sorted(skeleton.rglob("*"))):
        stat, content = path.stat(), None if path.is_dir() else path.read_bytes()
        own = os.path.join(HOME, path.relative_to(skeleton))
        found.append((own, stat.st_mode & 0o7777, content, stat.st_mtime_ns))
    return found


def after_fork() -> None:
    """Leave the user's home, which is the user's from now on."""
    os.environ["HOME"] = HARNESS
    gc.enable()


def executor_without_exporters() -> None:
    """Import nbconvert.preprocessors.execute, and nothing that it does not need.

    The packages around it import every exporter and filter there is, which costs more
    than all the rest. They are left unexecuted, and forgotten: who imports nbconvert
    afterwards gets the whole of it.
    """
    packages = ("nbconvert", "nbconvert.preprocessors", "nbconvert.utils")
    for name in packages:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
    importlib.import_module("nbconvert.preprocessors.execute")


def notebook_format() -> None:
    """Have the schema of notebooks compiled."""
    import nbformat

    nbformat.reads(nbformat.writes(nbformat.v4.new_notebook()), as_version=4)
