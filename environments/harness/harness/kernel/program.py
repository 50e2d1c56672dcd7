"""A kernel that is the program of a kernelspec, of Python, and forked where cells are: the
process that these are forked from has imported it.

The kernelspec says so, by "metadata": {"notebox_fork": true}. Its first argument that ends in
.py is a module then, and the module's main() is the kernel.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec

from harness.kernel.forked import InKernelError
from harness.system import privileges

FORK = "notebox_fork"


def import_ahead(spec: KernelSpec) -> None:
    """Import it, if it is one that can be forked."""
    if spec.metadata.get(FORK):
        path = spec.argv[_place(spec)]
        sys.path.insert(0, os.path.dirname(path))
        importlib.import_module(Path(path).stem)


def is_imported(spec: KernelSpec) -> bool:
    """Report whether it was."""
    return bool(spec.metadata.get(FORK)) and _module(spec) in sys.modules


def fork(spec: KernelSpec, arguments: list[str], env: dict[str, str], folder: str) -> int:
    """Start it as a copy of this process, which has one thread; return its id.

    In the copy, raises InKernelError.
    """
    gc.freeze()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        null = os.open(os.devnull, os.O_RDWR)
        privileges.begin_program(folder, null, null, dumpable=True)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = arguments[_place(spec) :]
        main = sys.modules[_module(spec)].main
        gc.enable()
    except BaseException:  # noqa: BLE001 - a fork must never return
        os._exit(1)
    raise InKernelError(main, sys.exit)


def _place(spec: KernelSpec) -> int:
    """Return which argument is its file."""
    return next(i for i, argument in enumerate(spec.argv) if argument.endswith(".py"))


def _module(spec: KernelSpec) -> str:
    return Path(spec.argv[_place(spec)]).stem
