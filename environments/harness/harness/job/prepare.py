"""A kernel that is ready for what comes: before there is a job, and for the job's variables."""

from __future__ import annotations

import codecs
import select
from importlib.machinery import all_suffixes

from nbformat.v4 import new_code_cell, new_notebook

from harness.job.clock import Clock
from harness.job.execute import NO_LIMIT, OUTPUT_OVERHEAD, Executor
from harness.kernel import warm
from harness.kernel.choice import Choice
from harness.kernel.process import Kernel, SilentKernelError
from harness.stream.frames import Writer


class BadEnvironmentError(Exception):
    """A kernel that has started does not start with the variables of the job."""


class BadPackagesError(Exception):
    """No run starts with the packages that a caller has chosen."""


def first_kernel(choice: Choice, fd: int) -> tuple[Kernel, list[str]]:
    """Return a kernel that has done what it is to do before a job, and what it has imported.

    It hurries as soon as there is something to read at fd.
    """
    try:
        kernel = Kernel(choice, choice.environment(), first=True)
        warm.after_fork()
        codecs.register_error("ufffd", replacement)  # not in the kernel
        if kernel.rehearsed:
            from harness.kernel.application import IPKernelApp  # which other kernels do without

            return kernel, IPKernelApp.early
        return kernel, practise(kernel) if choice.is_python else warm_up(kernel, fd)
    except RuntimeError as e:
        if choice.packages and not isinstance(e, SilentKernelError):
            raise BadPackagesError(str(e)) from e
        raise


def warm_up(kernel: Kernel, fd: int) -> list[str]:
    """Run the cells that every run is to find done, until the service says something."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    for cell in kernel.choice.cells:
        if poll.poll(0):
            break
        run_silently(kernel, cell)
    return []


def suited(
    kernel: Kernel,
    env: dict[str, str],
    proxy: dict[str, str],
    *,
    told: bool,
    anew: bool = False,
    in_session: bool = False,
) -> Kernel:
    """Return a kernel with these variables: this one, or in its place one that starts anew.

    Some variables are read when an interpreter starts, or a library is loaded. Those of the
    proxy can be told to a kernel that is up, if told: programs look at them when they connect.
    """
    if env or anew or kernel.has_ended() or (proxy and not told):
        kernel.close()
        choice = kernel.choice
        try:
            return Kernel(choice, choice.environment(proxy | env), in_session=in_session)
        except RuntimeError as e:
            raise BadEnvironmentError(str(e)) from e
    if proxy:
        tell_kernel(kernel, proxy)
    return kernel


def shadow(inputs: list[str], modules: list[str]) -> bool:
    """Report whether a file in /mnt/data has the name of a module imported beforehand.

    A new kernel imports that file, which comes first on its sys.path.
    """
    for path in inputs:
        name, folder, _ = path.partition("/")
        endings = [] if folder else [e for e in all_suffixes() if name.endswith(e)]
        if (folder and name in modules) or any(name.removesuffix(e) in modules for e in endings):
            return True
    return False


def practise(kernel: Kernel) -> list[str]:
    """Run a cell that leaves no trace, so that the first one of a run is not the slowest.

    Its code paths are then in memory, on both sides of a fork that shared all of it.
    Returns the top-level names of what the kernel has imported beforehand.
    """
    return run_silently(kernel, "print()").early


def tell_kernel(kernel: Kernel, env: dict[str, str]) -> None:
    """Set variables in a kernel that is up, without a trace but these."""
    run_silently(kernel, f"__import__('os').environ.update({env!r})")


def run_silently(kernel: Kernel, code: str) -> Executor:
    """Run a cell of the harness's own; raise RuntimeError if that does not work."""

    class Unwritten(Writer):
        def write(self, kind: bytes, payload: bytes = b"") -> None:
            pass

    nb = new_notebook(cells=[new_code_cell(code)])
    with kernel.silenced():
        executor = Executor.of(kernel, Unwritten(-1), True, OUTPUT_OVERHEAD * 10)
        executor.execute_notebook(nb, Clock(kernel, NO_LIMIT, lambda: None))
    if executor.broken or executor.errors or kernel.has_ended():
        raise RuntimeError("the kernel does not run a cell")
    return executor


def replacement(e: UnicodeError) -> tuple[bytes, int]:
    """Encode what UTF-8 has no place for, a lone surrogate, as U+FFFD."""
    assert isinstance(e, UnicodeEncodeError)
    return "\ufffd".encode() * (e.end - e.start), e.end
