"""What the installers of dependencies share, in every image at /opt/installers.

An installer is a program that runs in a sandbox of its own (environments/environment.go):
it reads a request from /mnt/data, has the client of its registry do the work, and leaves a
layer. What goes wrong for a user is Unresolvable, Unreachable or layer.TooLarge, with words
that a user may read.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from layer import write_layer
from masked import Masked

DATA = "/mnt/data"
MAX_TAIL = 400  # lines of a client's output that are looked at when it fails
MAX_WORDS = 2000  # characters of them that a user is told as the reason
REACH_SECONDS = 3  # for a registry to take a connection: who waits is told within 5
PORTS = {"https": 443, "http": 80}


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


def mask_of_settings(addresses: Iterable[str] = ()) -> Masked:
    """Return what hides the operator's credentials, and these addresses."""
    folder = Path(DATA, "settings")
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    texts = (file.read_text(errors="replace") for file in files if file.is_file())
    return Masked(*texts, addresses=addresses)


@dataclass(frozen=True)
class Ended:
    """How a client ended."""

    code: int
    lines: list[str]  # the last of its output, masked
    heard: list[str] = field(default_factory=list, compare=False, repr=False)  # and as it was

    def words(self, wanted: Sequence[str] = ()) -> str:
        """Return what it said last, or the lines that have one of these in them."""
        lines = [line for line in self.lines if line.strip()]
        chosen = [line for line in lines if any(part in line for part in wanted)] or lines[-10:]
        return "\n".join(dict.fromkeys(chosen))[-MAX_WORDS:].strip()

    def says(self, *parts: str) -> bool:
        """Report whether one of these is in its output."""
        return any(part in line for line in self.heard or self.lines for part in parts)


def run(
    arguments: Sequence[str],
    env: Mapping[str, str],
    mask: Masked,
    *,
    tell: bool = True,
    folder: str = "",
    needless: Sequence[str] = (),
) -> Ended:
    """Run a client and print what it says while it goes on, masked.

    folder is where it runs, DATA unless said. Lines with a part in needless are left out.
    """
    tail: deque[tuple[str, str]] = deque(maxlen=MAX_TAIL)
    with subprocess.Popen(
        arguments,
        env=dict(env),
        cwd=folder or DATA,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as client:
        assert client.stdout is not None
        for line in client.stdout:
            said = line.rstrip("\r\n")
            if any(part in said for part in needless):
                continue
            told = mask(said)
            tail.append((told, said))
            if tell:
                print(told, flush=True)
    return Ended(client.returncode, [told for told, _ in tail], [said for _, said in tail])


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
    """Say what the layer has: names and versions."""
    listed = [{"name": name, "version": version} for name, version in sorted(set(packages))]
    Path(DATA, "resolved.json").write_text(json.dumps({"packages": listed}) + "\n")


def leave_layer(folder: str, max_bytes: int) -> None:
    """Make layer.tar of a folder, whose files are moved into it. Raises TooLarge."""
    write_layer(folder, os.path.join(DATA, "layer.tar"), max_bytes)
