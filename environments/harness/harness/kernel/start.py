"""How a notebook's kernel comes to be, as the user.

fork makes it from a process that has imported what every kernel needs (warm.py). By main it
starts anew, in the program launch.py: for variables that an interpreter or a library reads
but once.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Sequence

from harness.kernel.application import DEBUGGER_VARIABLES, HISTORY, IPKernelApp
from harness.kernel.forked import InKernelError
from harness.system.places import PROGRAMS

_KEPT = 100  # the first descriptor of those that a kernel keeps
_MAX_FD = 1 << 16  # above the container's own limit


def main(connection_file: str) -> None:
    """Run a kernel in this process, from its start to its end."""
    _forget_harness()
    os.environ.update(DEBUGGER_VARIABLES)
    # Like a new user's: the image keeps caches there that take long to make.
    shutil.copytree("/etc/skel", os.environ["HOME"], dirs_exist_ok=True)
    _set_arguments(connection_file)
    run()
    finish()


def run() -> None:
    """Run the kernel as deep in the stack as Jupyter does, which is two frames below a module."""
    IPKernelApp.launch_instance()


def finish() -> None:
    """Do what a kernel that has run leaves to its end."""
    IPKernelApp.ending.finish(IPKernelApp.instance())


def fork(
    env: dict[str, str], folder: str, keep: Sequence[int], begin: Callable[[Sequence[int]], object]
) -> int:
    """Start a kernel as a copy of this process, which has one thread; return its id.

    In the kernel, calls begin with the descriptors that it keeps, and raises InKernelError.
    What this process was given since its start is not in it, as no request has come yet, nor
    is any other descriptor.
    """
    from harness.kernel.choice import PACKAGES
    from harness.system.privileges import become_user, set_dumpable

    gc.freeze()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        become_user()
        # As a program that is started anew has it; else its own /proc/self is closed to it.
        set_dumpable(True)
        kept = [os.dup2(fd, _KEPT + i, inheritable=False) for i, fd in enumerate(keep)]
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.closerange(3, _KEPT)
        os.closerange(_KEPT + len(kept), _MAX_FD)
        os.environ.clear()
        os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))  # as jupyter_client does
        os.environ.update(DEBUGGER_VARIABLES)
        os.chdir(folder)
        _forget_harness()
        if packages := env.get(PACKAGES):  # as an interpreter that starts has them
            own = (i for i, path in enumerate(sys.path) if path.endswith("site-packages"))
            sys.path.insert(next(own), packages)
        gc.enable()
        begin(kept)
    except BaseException:  # noqa: BLE001 - a fork must never return
        os._exit(1)
    raise InKernelError(IPKernelApp.launch_instance, finish)


def begin(connection_file: str, modules: list[str], hurry: int) -> None:
    """Have this process become a kernel of that file, which imports these modules.

    hurry is the end of a pipe that nothing comes through, as a module may be anybody's. Once
    the other end is closed, nothing more is imported.
    """
    IPKernelApp.modules, IPKernelApp.hurry = modules, hurry
    _set_arguments(connection_file)


def of_harness() -> list[str]:
    """Return the names of modules that a file of the user's could have the name of."""
    # And the packages of nbconvert, of which only a part is there.
    return [n for n in sys.modules if n.partition(".")[0] in ("harness", "nbconvert")]


def _forget_harness() -> None:
    """Leave none of them in a kernel."""
    sys.path.remove(PROGRAMS)
    for name in IPKernelApp.not_of_kernels or of_harness():
        sys.modules.pop(name, None)


def _set_arguments(connection_file: str) -> None:
    launcher = importlib.util.find_spec("ipykernel_launcher")
    assert launcher is not None
    assert launcher.origin is not None
    sys.argv = [launcher.origin, "-f", connection_file, HISTORY]  # as nbclient starts it
