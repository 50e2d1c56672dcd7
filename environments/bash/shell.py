"""A bash that lives over many cells.

It runs driver.sh, a loop in one line, so that the lines of a cell count from 1:

 1. It reports how it is: the number of the last cell, $?, $- and some traps.
 2. It waits for a line with the number of a cell, and the $? that this is to find.
 3. It reads the cell from a file in memory, up to a NUL, and evals it at top level. The
    cell's commands do not have the driver's descriptors.

An interrupt is a SIGINT to the shell's process group. The driver's trap has all that is
left of the cell skipped, by a DEBUG trap that ends loops and refuses commands; a trap of
the user's is run in its place. What the user traps by DEBUG or traces by set -x is put
aside between cells.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from streams import Streams

WAKE, CODE, REPORT = (
    220,
    221,
    222,
)  # descriptors of the driver's, which nobody else takes
DRIVER = Path(__file__).with_name("driver") / "bash"  # driver.sh; what bash says has its name
SKIPPING = "'notebox'"  # marks the driver's commands, and the trap that skips all others
INTERRUPTED = 128 + signal.SIGINT
UNSKIP = "shopt -u extdebug; "  # what the skipping has set, and the user has not
LOOKS, LOOK_SECONDS = 200, 0.0002  # for a moment at which bash can be interrupted
END_SECONDS = 0.8  # for EXIT traps; the harness waits a second for the kernel's end
BEGIN, FIELDS = b"\1\1", 4  # of a report; each field ends with a NUL
WAITS = ("61", "260")  # wait4 of x86-64 and of arm64, as in /proc/PID/syscall
PART = 64 << 10  # bytes of a report that are taken at once
MAX_STATUS = 255
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None)  # there before a fork, which may load nothing

_STATUS = re.compile(r"[0-9]{1,3}")
_BLOCKED = re.compile(r"^SigBlk:\s*([0-9a-f]+)$", re.MULTILINE)
_TRAP = re.compile(r"^trap -- ('(?:[^']|'\\'')*') (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Report:
    """How the shell was after a cell."""

    cell: str = ""
    status: int = 0
    flags: str = ""
    traps: dict[str, str] = field(default_factory=dict)  # the text, quoted, of each signal

    @classmethod
    def parse(cls, data: bytes) -> Report | None:
        """Return None for what the driver has not written: others can find its descriptor."""
        fields = data.decode(errors="surrogateescape").split("\0")
        if len(fields) != FIELDS + 1 or fields.pop() or not _STATUS.fullmatch(fields[1]):
            return None
        cell, status, flags, traps = fields
        if int(status) > MAX_STATUS:
            return None
        found = {name.removeprefix("SIG"): text for text, name in _TRAP.findall(traps)}
        return cls(cell, int(status), flags, found)

    @property
    def interrupted(self) -> bool:
        return "notebox" in self.traps.get("DEBUG", "")

    def prelude(self) -> str:
        """Return what is to be put back for the next cell, on its first line."""
        parts = []
        if self.interrupted:
            parts.append(UNSKIP)
        elif "DEBUG" in self.traps:
            parts.append(f"trap -- {self.traps['DEBUG']} DEBUG; ")
        if "x" in self.flags:
            parts.append("set -x; ")
        return "".join(parts)

    def last_status(self) -> int:
        """Return what the next cell is to find as $?, as far as it can be had."""
        # Making it would look like a failure to these.
        return 0 if "e" in self.flags or "ERR" in self.traps else self.status


@dataclass(frozen=True)
class Ended:
    """How a cell ended."""

    status: int
    of_shell: bool = False  # and with it the shell


class Side(Protocol):
    """What else is looked after while a cell runs."""

    def fileno(self) -> int: ...

    def serve(self) -> None: ...


class Shell:
    """One process of bash."""

    def __init__(self, streams: Streams, env: dict[str, str], folder: str) -> None:
        """Start it. Raises OSError if there can be no process."""
        self._streams = streams
        self._code = os.memfd_create("cell")
        wake, self._wake = os.pipe()
        self._reports, report = os.pipe()
        self._number, self._running, self._interrupted = 0, False, False
        self._skips = False  # after the report of a cell without code
        self._waits = False  # for a cell or in one: before that, an interrupt would end it
        self._last = Report()
        self._data = b""
        parent = os.getpid()

        def prepare() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it has ended by now
                os._exit(1)
            for fd, number in ((wake, WAKE), (self._code, CODE), (report, REPORT)):
                os.dup2(fd, number)
            for kind in (
                signal.SIGINT,
                signal.SIGQUIT,
            ):  # what is ignored cannot be trapped
                signal.signal(kind, signal.SIG_DFL)

        try:
            self._process = subprocess.Popen(
                ["/bin/bash", "--norc", "--noprofile", DRIVER.name, folder],
                cwd=DRIVER.parent,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=streams.stdout,
                stderr=streams.stderr,
                process_group=0,
                preexec_fn=prepare,
                close_fds=False,  # all others are not inherited; nor would these be
            )
        except (OSError, subprocess.SubprocessError):
            self._close()
            raise
        finally:
            os.close(wake)
            os.close(report)
        self.pid = self._process.pid
        self._end = os.pidfd_open(self.pid)

    @property
    def quiet(self) -> bool:
        """Report whether nobody would notice the shell's end."""
        return "EXIT" not in self._last.traps

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def run(self, code: str, side: Side) -> Ended:
        """Run a cell; what it writes is with the streams when this returns."""
        code = self._last.prelude() + code
        report: Report | None = self._last
        if self._interrupted and not self._last.interrupted:
            # The signal may have come after the cell's end. A cell without code takes it.
            report = self._exchange("", 0, side)
            self._skips |= report is not None and report.interrupted
            if report is not None and self._interrupted:  # once more, for the cell that is to run
                self._streams.drain()
                return Ended(INTERRUPTED)
            if self._skips:
                code = UNSKIP + code
            self._skips = False
        if report is not None:
            report = self._exchange(code, self._last.last_status(), side)
        self._streams.drain()
        if report is None:
            self._last = Report()
            status = self._process.wait()
            self._close()
            return Ended(status, of_shell=True)
        self._last = report
        return Ended(INTERRUPTED if report.interrupted else report.status)

    def _exchange(self, code: str, status: int, side: Side) -> Report | None:
        """Have the driver eval code, with that $?; return its report, None if the shell ends."""
        self._number += 1
        os.ftruncate(self._code, 0)
        os.pwrite(self._code, code.encode(errors="surrogateescape") + b"\0", 0)
        os.lseek(self._code, 0, os.SEEK_SET)
        self._running, self._interrupted = True, False
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended
                os.write(self._wake, b"%d %d\n" % (self._number, status))
            return self._follow(side)
        finally:
            self._running = False

    def _follow(self, side: Side) -> Report | None:
        """Return the cell's report, None if the shell ends."""
        poll = select.poll()
        for fd in (self._end, self._reports, side.fileno(), self._streams.fileno()):
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(self._streams.wait_ms())}
            self._streams.take()
            if side.fileno() in ready:
                side.serve()
            if self._reports in ready and (report := self._report()):
                return report
            if self._end in ready:
                return self._report()

    def _report(self) -> Report | None:
        """Return this cell's report, if it has come."""
        os.set_blocking(self._reports, False)
        try:
            while part := os.read(self._reports, PART):
                self._data += part
        except BlockingIOError:
            pass
        # One that was interrupted is followed by the next one.
        *earlier, last = self._data.split(BEGIN)
        self._data = b"" if last.count(b"\0") == FIELDS else BEGIN + last
        for data in (*earlier, last):
            report = Report.parse(data)
            if report is None:
                continue
            if not self._waits:
                self._waits = True
                if self._interrupted:
                    self.interrupt()
            if report.cell == str(self._number):
                return report
            if report.interrupted and self._interrupted:  # before the cell had begun
                self.interrupt()
        return None

    def interrupt(self) -> None:
        """End what runs, and the rest of the cell."""
        if self._running and not self.has_ended():
            self._interrupted = True
            if self._waits:
                with contextlib.suppress(ProcessLookupError):
                    self._interrupt_group()

    def _interrupt_group(self) -> None:
        """Send SIGINT to the shell and what it runs, at a moment that bash stands.

        Its wait_for (jobs.c) makes wait_sigint_handler the handler, and only then notes which
        one that is to put back. If the signal comes between, the handler sends it anew for ever.
        """
        if "CONT" in self._last.traps:  # it would notice
            os.killpg(self.pid, signal.SIGINT)
            return
        for _ in range(LOOKS):
            os.kill(self.pid, signal.SIGSTOP)
            if not self._begins_to_wait():
                break
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(LOOK_SECONDS)
        os.killpg(self.pid, signal.SIGINT)
        os.kill(self.pid, signal.SIGCONT)

    def _begins_to_wait(self) -> bool:
        """Report whether the shell, which is being stopped, is in wait_for and not yet waiting."""
        folder = Path(f"/proc/{self.pid}")
        try:
            for _ in range(LOOKS):
                if (folder / "stat").read_text().rpartition(")")[2].split()[0] not in "RSD":
                    break
                time.sleep(LOOK_SECONDS)
            blocked = int(_BLOCKED.findall((folder / "status").read_text())[0], 16)
            if not blocked & 1 << signal.SIGCHLD - 1:
                return False
            return (folder / "syscall").read_text().split()[0] not in WAITS
        except (OSError, IndexError):
            return False

    def finish(self) -> None:
        """Have the shell end by itself, with its EXIT trap; kill it if it does not.

        What it has in the background ends with it.
        """
        if self.has_ended():
            self._close()
            return
        os.close(self._wake)
        self._wake = -1
        # Nobody reads what it writes now, yet a full pipe would stop it.
        self._streams.forget_until(self._end, END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the shell, and what it has in the background, at once."""
        # The number of a process group is nobody else's until its leader is waited for.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        self._close()

    def _close(self) -> None:
        for name in ("_wake", "_reports", "_code", "_end"):
            if (fd := getattr(self, name, -1)) >= 0:
                os.close(fd)
            setattr(self, name, -1)
