"""What the installers of dependencies share, in every image at /opt/installers.

An installer is a program that runs in a sandbox of its own (environments/environment.go):
it reads a request from /mnt/data, has the client of its registry do the work, and leaves a
layer. What goes wrong for a user is one of the three exceptions here, with words that a
user may read.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import json
import os
import re
import socket
import stat
import subprocess
import tarfile
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

DATA = "/mnt/data"
MAX_ENTRIES = 200_000  # of a layer; the largest sets of packages have a tenth of that
MAX_NAME_BYTES, MAX_DEPTH = 1024, 64  # of a path; as dependencies/archive.go has them
WHITEOUT = ".wh."  # begins a name that a layer of an image has for what it takes away
MAX_TAIL = 400  # lines of a client's output that are looked at when it fails
MAX_WORDS = 2000  # characters of them that a user is told as the reason
REACH_SECONDS = 3  # for a registry to take a connection: who waits is told within 5
WHY_NOT = "it is no file, leads out of the layer, or has a name that is not taken"
PORTS = {"https": 443, "http": 80}


class Unresolvable(Exception):
    """The set cannot be had; the message is the client's own words."""


class Unreachable(Exception):
    """The registry could not be reached."""


class TooLarge(Exception):
    """What belongs to the set is more than a layer may have."""


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


# ---- what a client says ------------------------------------------------------------

_IN_URL = re.compile(r"(?<=://)[^\s/@'\"<>]+(?:/[^\s/@'\"<>:]+)*@(?=[\w.\[-])")
_QUERY = re.compile(r"(https?://[^\s?'\"<>]+)\?[^\s'\"<>]+")
# Of npmrc and of apt's auth.conf: the names of what nobody else may know.
_SECRET = re.compile(
    r"(?:_?auth(?:token)?|_?password|token|login|username|key|cert)\s*[=:\s]\s*[\"']?([^\s\"']+)",
    re.IGNORECASE,
)
MASK = "***"
ADDRESS = "(registry)"  # stands for an address of the settings
MIN_SECRET = 4  # characters; less would be found in any word
PLAIN = ("true", "false", "null")  # such values are in any text


class Masked:
    """Takes the credentials of the operator's settings out of what is told."""

    def __init__(self, *texts: str, addresses: Iterable[str] = ()) -> None:
        """Take the texts of the settings, from which the credentials are known.

        What of addresses is told is ADDRESS.
        """
        found: set[str] = set()
        for text in texts:
            for url in re.findall(r"\w+://\S+", text):
                found.update(_credentials(url))
            found.update(secret for secret in _SECRET.findall(text) if secret not in PLAIN)
        found |= {unquote(secret) for secret in found}
        found |= {form for secret in found for form in _decoded(secret)}
        instead = dict.fromkeys(addresses, ADDRESS) | dict.fromkeys(found, MASK)
        self._instead = sorted(
            (pair for pair in instead.items() if len(pair[0]) >= MIN_SECRET),
            key=lambda pair: (-len(pair[0]), pair),
        )

    @classmethod
    def of_settings(cls, addresses: Iterable[str] = ()) -> Masked:
        folder = Path(DATA, "settings")
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        texts = (file.read_text(errors="replace") for file in files if file.is_file())
        return cls(*texts, addresses=addresses)

    def __call__(self, text: str) -> str:
        for part, instead in self._instead:
            text = text.replace(part, instead)
        return _QUERY.sub(r"\1", _IN_URL.sub(MASK + "@", text))


def _credentials(url: str) -> Iterator[str]:
    place = url.partition("://")[2].partition("/")[0]
    if "@" in place:
        user, _, password = place.rpartition("@")[0].partition(":")
        yield from filter(None, (user, password))
    query = url.partition("?")[2].partition("#")[0]
    yield from (value for part in query.split("&") if (value := part.partition("=")[2]))


def _decoded(secret: str) -> Iterator[str]:
    """Yield what npm's _auth and _password are with their base64 taken off."""
    try:
        text = base64.b64decode(secret, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield text
    yield text.partition(":")[2]


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
    """Make layer.tar of a folder, file by file instead of it, so that nothing is there twice.

    The same files give the same bytes. Raises TooLarge.
    """
    layer = os.path.join(DATA, "layer.tar")
    left = max_bytes
    with (
        full_is_too_large(max_bytes),
        no_rest(layer),
        tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for count, name in enumerate(_names(folder)):
            info = _entry(folder, name)
            if info is None:
                print(f"{_shown(name)} is left out: {WHY_NOT}")
                continue
            left -= tarfile.BLOCKSIZE + info.size
            if left < 0 or count >= MAX_ENTRIES:
                raise too_large(max_bytes)
            path = os.path.join(folder, name)
            if info.isreg():
                with open(path, "rb") as content:
                    tar.addfile(info, content)
                os.unlink(path)
            else:
                tar.addfile(info)


@contextlib.contextmanager
def no_rest(path: str) -> Iterator[None]:
    """Remove a file that was not finished."""
    try:
        yield
    except BaseException:
        os.unlink(path)
        raise


def too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the packages take more than {max_bytes >> 20} MiB, with all that they need")


@contextlib.contextmanager
def full_is_too_large(max_bytes: int) -> Iterator[None]:
    """Take a disk that is full for a set that is too large."""
    try:
        yield
    except OSError as e:
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise too_large(max_bytes) from None
        raise


def _names(folder: str) -> list[str]:
    names = []
    for path, folders, files in os.walk(folder):
        names += [os.path.relpath(os.path.join(path, name), folder) for name in folders + files]
    # A folder before what is in it.
    return sorted(names, key=lambda name: name.split("/"))


def _entry(folder: str, name: str) -> tarfile.TarInfo | None:
    """Return one entry, without what would tell of this machine; None for what has no place."""
    path = os.path.join(folder, name)
    mode = os.lstat(path).st_mode
    if not _is_plain(name):
        return None
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    if stat.S_ISDIR(mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    elif stat.S_ISLNK(mode):
        target = _target(folder, name)
        if target is None or not _is_plain(target):
            return None
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, target
    elif stat.S_ISREG(mode):
        info.size = os.lstat(path).st_size
        if mode & stat.S_IXUSR:
            info.mode = 0o755
    else:
        return None
    return info


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _is_plain(path: str) -> bool:
    """Report whether the service takes such a path (plainPath in dependencies/archive.go)."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return False
    return (
        size <= MAX_NAME_BYTES
        and path.count("/") < MAX_DEPTH
        and not any(unicodedata.category(c) == "Cc" for c in path)
        and not any(part.startswith(WHITEOUT) for part in path.split("/"))
    )


def _target(folder: str, name: str) -> str | None:
    """Return where a link leads, None where that is not in the folder.

    An absolute one is taken as from the folder, which is the root for who made it. The
    result goes up first and then down.
    """
    path = os.path.join(folder, name)
    target, root = os.readlink(path), os.path.realpath(folder)
    if os.path.isabs(target):
        inside = target.removeprefix(folder).lstrip("/")
        target = os.path.relpath(os.path.join(folder, inside), os.path.dirname(path))
    end = os.path.realpath(os.path.join(os.path.dirname(path), target))
    lexical = os.path.normpath(os.path.join(os.path.dirname(name), target))
    if os.path.commonpath((root, end)) != root or lexical.split("/")[0] == "..":
        return None
    if os.path.realpath(os.path.join(folder, lexical)) != end:  # it goes up from another link
        lexical = os.path.relpath(end, root)
    return os.path.relpath(lexical, os.path.dirname(name) or ".")
