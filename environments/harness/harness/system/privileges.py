"""Who runs what in a sandbox: the harness as root, everything of the user's as USER.

The container gives root nothing but CAP_SETUID and CAP_SETGID.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from harness.system.libc import LIBC

KILL_SECONDS = 5.0  # for processes to end that were killed


def _owner(folder: str) -> int:
    try:
        return os.stat(folder).st_uid
    except FileNotFoundError:  # this is no sandbox
        return 0


# The user's uid and gid. The service chooses them for each sandbox: the kernel of the host
# counts much by uid, and no sandbox is to use up what is another's.
USER = _owner("/mnt/data")
CLERK = USER + 1  # real uid of the harness's children that live beside the user's processes


def settle() -> None:
    """Look once more who the user is, in a cell that has just got its folders."""
    global USER, CLERK  # noqa: PLW0603 - they are constants of a sandbox
    USER = _owner("/mnt/data")
    CLERK = USER + 1


# The effective uid may be that of the whole process, and a fork inherits it: one thread at a
# time changes it, or forks.
identity = threading.RLock()


def become_user() -> None:
    """Turn this process, for good, into one of the user's."""
    if USER == 0:
        raise RuntimeError("the service has chosen no user")
    # What the kernel of the host ends first when memory runs out is the user's.
    # After the change of uid this file could not be written any more.
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("1000")
    os.nice(10)  # the harness shares these cores and must have its turn
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.umask(0o022)


def become_clerk() -> None:
    """Turn this process, for good, into one with the user's rights that the user cannot reach.

    By its effective uid it may do with files what the user may, and nothing else. To signal
    or trace it, or to look into its /proc, takes the real and the saved one.
    """
    os.nice(10)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(CLERK, USER, CLERK)
    set_dumpable(False)
    os.umask(0o022)


def become_guard() -> None:
    """Turn this process, for good, into one without rights that no process of the sandbox signals.

    The user's cannot, and kill_user, which acts with root's real uid, does not.
    """
    os.setgroups([])
    os.setresgid(CLERK, CLERK, CLERK)
    os.setresuid(CLERK, CLERK, CLERK)
    set_dumpable(False)


_PR_SET_DUMPABLE = 4  # linux/prctl.h


def set_dumpable(may: bool) -> None:
    """Say whether others of its user may trace this process and look into its /proc."""
    LIBC.prctl(_PR_SET_DUMPABLE, int(may), 0, 0, 0)


@contextlib.contextmanager
def as_user(uid: int | None = None) -> Iterator[None]:
    """Have the user's rights, or this one's, and no capability, for a moment."""
    with identity:
        _set_ids(-1, USER if uid is None else uid, -1)
        try:
            yield
        finally:
            _set_ids(-1, 0, -1)


def _set_ids(real: int, effective: int, saved: int) -> None:
    """Set the uids of this thread alone. The C library's own call sends a signal to each other
    thread, and waits; on a machine whose number of the call is not known it is used."""
    number = _SETRESUID.get(os.uname().machine)
    if number is None:
        os.setresuid(real, effective, saved)
    elif LIBC.syscall(number, real, effective, saved):
        raise OSError(ctypes.get_errno(), "setresuid")


_SETRESUID = {"x86_64": 117, "aarch64": 147}


def pipe() -> tuple[int, int]:
    """Return a pipe that the user's programs may open by its path, and make longer.

    What it holds counts for the real uid of who makes it. The user may signal nobody whose
    real uid is CLERK and whose saved one is root's.
    """
    with identity:
        _set_ids(CLERK, USER, 0)
        try:
            return os.pipe()
        finally:
            _set_ids(0, 0, 0)


def kill_clerk(pid: int) -> None:
    """Kill one of the harness's children that has not been waited for."""
    # Until it is a clerk it is root's.
    for uid in (CLERK, 0):
        with as_user(uid), contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def fork_clerk(task: Callable[[], None], keep: Sequence[int]) -> int:
    """Run task in a child that the user's processes cannot reach; return its id.

    Of the harness's descriptors it has those to keep, and stderr. Raises BlockingIOError
    where no process may be made.
    """
    with identity:
        pid = os.fork()
        if pid:
            _clerks.add(pid)
            return pid
    status = 70  # EX_SOFTWARE of sysexits.h
    try:
        become_clerk()
        keep_only(keep)
        task()
        status = 0
    except BaseException as e:  # noqa: BLE001 - a fork must never return
        os.write(2, f"{type(e).__name__}: {e}\n".encode(errors="replace"))
    finally:
        os._exit(status)


def await_clerk(pid: int) -> None:
    """Return when such a child has ended."""
    with contextlib.suppress(ChildProcessError):  # its status was taken by reap
        os.waitpid(pid, 0)
    _clerks.discard(pid)


_clerks: set[int] = set()  # that have not been waited for


def spare(pid: int) -> None:
    """Take a child of the harness's for none that code could run in."""
    _clerks.add(pid)


def spawn(arguments: list[str], env: dict[str, str], folder: str, out: int, err: int) -> int:
    """Start a program as the user, in a session of its own; return its id.

    Without waiting for it to be that program: the user's processes may stop it before. What
    keeps it from starting is written to err, and it exits with CANNOT_START.
    """
    with identity:
        if pid := os.fork():
            return pid
    try:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_DFL)
        begin_program(folder, out, err, dumpable=False)  # until it is the program
        os.execve(arguments[0], arguments, env)  # noqa: S606 - that is what this is for
    except BaseException as e:  # noqa: BLE001 - a fork must never return
        os.write(2, f"{os.path.basename(arguments[0])} cannot be started: {e}\n".encode())
    finally:
        os._exit(CANNOT_START)


def begin_program(folder: str, out: int, err: int, *, dumpable: bool) -> None:
    """Turn this process, which was just forked, into one of the user's that has nothing of the
    harness's. If it is dumpable, others of the user's may look into it, as into any program."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd, number in ((null, 0), (os.dup(out), 1), (os.dup(err), 2)):
        os.dup2(fd, number)
    os.closerange(3, _MAX_FD)
    become_user()
    set_dumpable(dumpable)
    try:
        os.chdir(folder)
    except PermissionError:  # the user has shut it, and needs a process to open it again
        os.chdir("/")


# What Python ignores, and what whoever started the harness may have had it ignore, as a
# shell does for what is in its background: no interrupt would end a program then.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)

CANNOT_START = 126  # the exit code of a shell for what it cannot run


def keep_only(keep: Sequence[int]) -> None:
    """Close every descriptor but these and stderr."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    close_others(keep)


def close_others(keep: Sequence[int]) -> None:
    """Close every descriptor but these and the first three."""
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, _MAX_FD)


_MAX_FD = 1 << 16  # above the container's own limit


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group of one of the user's processes."""
    with as_user(), contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def kill_user(seconds: float) -> bool:
    """Kill every process of the user; report whether none can run any more.

    kill(-1) with the user's rights reaches exactly these, and no fork outruns it:
    the system call walks all processes under a lock.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            with as_user():
                os.kill(-1, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return True
        reap()
        if not _any_can_run():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0002)


_EXITING = 0x4  # PF_EXITING of include/linux/sched.h


def _any_can_run() -> bool:
    """Report whether a thread but the harness's is not on its way out.

    One that is executes nothing of its program again. It has yet to give its memory
    back, which takes longer than a small run.
    """
    harness = ("1", str(os.getpid()))  # and the container's init
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        if pid in harness or int(pid) in _clerks:
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/stat", "rb") as f:
                    # The name of the program, in brackets, may hold anything.
                    flags = int(f.read().rpartition(b")")[2].split()[6])
                if not flags & _EXITING:
                    return True
    return False


def is_ending(pid: int) -> bool:
    """Report whether a process was killed, or is on its way out, and has yet to be gone."""
    try:
        with open(f"/proc/{pid}/status", "rb") as f:
            fields = dict(line.split(b":", 1) for line in f if b":" in line)
        pending = int(fields[b"SigPnd"], 16) | int(fields[b"ShdPnd"], 16)
        if pending & 1 << (signal.SIGKILL - 1):
            return True
        with open(f"/proc/{pid}/stat", "rb") as f:
            return bool(int(f.read().rpartition(b")")[2].split()[6]) & _EXITING)
    except (FileNotFoundError, ProcessLookupError):
        return True


def reap() -> None:
    """Take the exit status of every child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork(seconds: float) -> int:
    """Fork; those that are ending count against the limit of processes until they are gone."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with identity:
                return os.fork()
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            reap()
            time.sleep(0.001)


def run_as_user(task: Callable[[], None], seconds: float) -> int:
    """Run task in a child with the user's rights; return its exit status.

    The child shares the descriptors of the stream. It is ended after the given
    time; a negative result is the signal that ended it.
    """
    pid = _fork(KILL_SECONDS)
    if pid == 0:
        status = 70  # EX_SOFTWARE of sysexits.h
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            become_user()
            task()
            status = 0
        except BaseException as e:  # noqa: BLE001 - a fork must never return
            os.write(2, f"{type(e).__name__}: {e}\n".encode(errors="replace"))
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
