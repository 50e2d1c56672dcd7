"""What the installers of dependencies share, in every image at /opt/installers.

An installer is a program that runs in a sandbox of its own (environments/environment.go):
it reads a request from /mnt/data, has the client of its registry do the work, and leaves a
layer. What goes wrong for a user is Unresolvable, Unreachable or layer.TooLarge, with words
that a user may read.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from layer import write_layer

DATA = "/mnt/data"
MAX_TAIL = 400  # lines of a client's output that are looked at when it fails
MAX_WORDS = 2000  # characters of them that a user is told as the reason
REACH_SECONDS = 3  # for a registry to take a connection: who waits is told within 5
PORTS = {"https": 443, "http": 80}
# What the service takes for a package (packageName, packageVersion in dependencies/installer.go).
NAME = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@/._+~-]{0,213}", re.ASCII)
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:!-]{0,127}", re.ASCII)


class Unresolvable(Exception):
    """The set cannot be had; the message is the client's own words."""


class Unreachable(Exception):
    """The registry could not be reached."""


@dataclass(frozen=True)
class Request:
    """What is asked for. The JSON names are those of the Go side."""

    phase: str  # "hosts" or "install"
    dependencies: list[str] = field(default_factory=list)
    builds: bool = False  # code of packages may run
    max_bytes: int = 0  # of the layer

    @classmethod
    def read(cls) -> Request:
        return cls(**json.loads(Path(DATA, "request.json").read_text()))


def settings(name: str) -> str | None:
    """Return the path of one of the operator's files of settings, None where there is none."""
    path = os.path.join(DATA, "settings", name)
    return path if os.path.isfile(path) else None


@dataclass(frozen=True)
class Ended:
    """How a client ended."""

    code: int
    lines: list[str]  # the last of its output

    def words(self, wanted: Sequence[str] = ()) -> str:
        """Return what it said last, or the lines that have one of these in them."""
        lines = [line for line in without_traces(self.lines) if line.strip()]
        chosen = [line for line in lines if any(part in line for part in wanted)] or lines[-10:]
        return "\n".join(dict.fromkeys(chosen))[-MAX_WORDS:].strip()

    def says(self, *parts: str) -> bool:
        """Report whether one of these is in its output."""
        return any(part in line for line in self.lines for part in parts)


def without_traces(lines: Iterable[str]) -> list[str]:
    """Return lines without the stacks of Python's exceptions, which tell a user nothing."""
    kept, stack = [], False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            stack = True
        elif not line.startswith(" "):
            stack = False
        if not stack:
            kept.append(line)
    return kept


def run(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    tell: bool = True,
    folder: str = "",
    needless: Sequence[str] = (),
    descriptors: Sequence[int] = (),
) -> Ended:
    """Run a client, print what it says while it goes on, and end what it has started.

    folder is where it runs, DATA unless said. Lines with a part in needless are left out.
    The client has these descriptors too.
    """
    adopt_orphans()
    own = children()
    tail: deque[str] = deque(maxlen=MAX_TAIL)
    with subprocess.Popen(
        arguments,
        env=dict(env),
        cwd=folder or DATA,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=descriptors,
    ) as client:
        assert client.stdout is not None
        # What it leaves behind has its output open, which would not end before.
        ender = Ender(client, own)
        ender.start()
        for line in client.stdout:
            said = line.rstrip("\r\n")
            if any(part in said for part in needless):
                continue
            tail.append(said)
            if tell:
                print(said, flush=True)
        ender.join()
    if not ender.done:
        raise RuntimeError("what the client started does not end")
    return Ended(client.returncode, list(tail))


# ---- what a client leaves behind ---------------------------------------------------

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
END_SECONDS = 10  # for processes that start others faster than they are killed


def adopt_orphans() -> None:
    """Become the parent of what the processes below this one leave behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class Ender(threading.Thread):
    """Waits for a client, and kills what it has left: children that are not this process's own."""

    def __init__(self, client: subprocess.Popen[str], own: set[int]) -> None:
        super().__init__(daemon=True)
        self.done = False  # there are none
        self._client, self._own = client, own

    def run(self) -> None:
        self._client.wait()
        deadline = time.monotonic() + END_SECONDS
        while left := children() - self._own:
            if time.monotonic() > deadline:
                return
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.done = True


def children() -> set[int]:
    """Return the children of this process, those that were not waited for included."""
    found = set()
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it is gone
            stat = Path(entry.path, "stat").read_text(errors="replace")
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(entry.name))
    return found


# ---- what an installer leaves ------------------------------------------------------


def host(url: str) -> str:
    """Return the host and port of a URL, as a sandbox's network has them."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    if ":" in name:
        name = f"[{name}]"
    return f"{name}:{parts.port or PORTS.get(parts.scheme, 443)}"


def reach(urls: Iterable[str]) -> None:
    """Return when one of the hosts takes connections; raise Unreachable where none does.

    Much sooner than a client would, which tries again and again.
    """
    wanted = sorted({host(url) for url in urls if urlsplit(url).hostname})
    if wanted and not any(_answers(place) for place in wanted):
        raise Unreachable("the package registry cannot be reached")


def _answers(place: str) -> bool:
    name, _, port = place.rpartition(":")
    proxy = urlsplit(os.environ.get("HTTPS_PROXY", ""))
    through = (proxy.hostname, proxy.port or PORTS["http"]) if proxy.hostname else None
    try:
        with socket.create_connection(
            through or (name.strip("[]"), int(port)), timeout=REACH_SECONDS
        ) as door:
            if not through:
                return True
            door.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            return door.recv(64).split()[1:2] == [b"200"]
    except OSError:
        return False


def leave_hosts(urls: Iterable[str]) -> None:
    """Say which hosts the client will connect to."""
    hosts = sorted({host(url) for url in urls if urlsplit(url).hostname})
    Path(DATA, "hosts.json").write_text(json.dumps({"hosts": hosts}) + "\n")


def leave_packages(packages: Iterable[tuple[str, str]]) -> None:
    """Say what the layer has: names and versions. Raises Unresolvable if one is malformed."""
    packages = sorted(set(packages))
    for name, version in packages:
        if not (NAME.fullmatch(name) and VERSION.fullmatch(version)):
            raise Unresolvable(f"{name[:250]} {version[:250]} is not a package's name and version")
    listed = [{"name": name, "version": version} for name, version in packages]
    Path(DATA, "resolved.json").write_text(json.dumps({"packages": listed}) + "\n")


def leave_layer(folder: str, max_bytes: int) -> None:
    """Make layer.tar of a folder, whose files are moved into it. Raises TooLarge."""
    write_layer(folder, os.path.join(DATA, "layer.tar"), max_bytes)
