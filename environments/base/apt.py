"""Installs Debian's packages into a layer: the installer of the languages that have apt's notation.

 1. apt itself reads its indexes into folders of this sandbox's own, and resolves the set
    against the packages that the image has: what is there is not fetched again, and each
    stays at its version. A set that needs another one of them, or one of them gone, cannot
    be had: beside the image's own it would be taken by half of the programs, and a libc6
    that is not of the image's loader by none.
 2. It downloads what is missing, and checks the hashes and signatures.
 3. Each package is unpacked into an empty folder, and what is in it is moved to
    /opt/dependencies: a link of one package leads no other package's files anywhere. Their
    maintainer scripts are not run: they would want to be root, and know no other place than /.

An image whose language has packages of one kind says so in /opt/installers/apt.json:
{"prefix": "r-cran-"}; an entry may then leave the prefix out.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = "/opt/installers"
sys.path.append(FOLDER)

from installing import (  # noqa: E402
    DATA,
    Ended,
    Request,
    Unreachable,
    Unresolvable,
    leave_hosts,
    leave_layer,
    leave_packages,
    run,
    settings,
)
from layer import TooLarge, full_is_too_large, too_large  # noqa: E402

WORK = os.path.join(DATA, "apt")
ROOT = os.path.join(WORK, "root")  # of the layer
ARCHIVES = os.path.join(WORK, "cache", "archives")
STATUS = "/var/lib/dpkg/status"
# What debian:trixie-slim has its dpkg leave out as well.
NEEDLESS = ("doc", "info", "lintian", "locale", "man")
DPKG_DEB = "/usr/bin/dpkg-deb"
FOLDER_MODE = 0o755  # all have it in the layer; without it their files could not be moved
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+]")  # a dash at its end would remove it
VERSION = re.compile(r"[A-Za-z0-9.+:~-]{1,200}")
CHOICE = ("install", "--no-remove")
# What apt says where a package that is needed would have to be another version, or be gone.
KEPT = ("is to be installed", "remove is disabled")
STAYS = "Packages of the image stay as they are; an image that is built anew has newer ones."

UNREACHABLE = (
    "Could not resolve",
    "Temporary failure resolving",
    "Could not connect",
    "Cannot initiate the connection",
    "Connection failed",
    "Connection timed out",
    "Invalid response from proxy",
    "Failed to fetch",
)


def options() -> list[str]:
    """Return how apt works here: as an ordinary user, and with the operator's sources."""
    values = {
        "APT::Sandbox::User": "root",  # which is: do not become another one
        "APT::Install-Recommends": "false",
        "APT::Get::Assume-Yes": "true",
        "APT::Update::Error-Mode": "any",  # an index that is missing is no warning
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "15",
        "Acquire::https::Timeout": "15",
        "Debug::NoLocking": "true",
        "Dir::State": f"{WORK}/state",
        "Dir::State::status": STATUS,
        "Dir::Cache": f"{WORK}/cache",
        "Dir::Cache::archives": ARCHIVES,
        "Dir::Etc::preferences": f"{WORK}/preferences",
        "Dir::Log": f"{WORK}/log",
        "Dpkg::Use-Pty": "false",
    }
    if bundle := os.environ.get("SSL_CERT_FILE"):
        values["Acquire::https::CAInfo"] = bundle
    if sources := settings("sources.list"):
        parts = os.path.join(WORK, "sources")
        os.makedirs(parts, exist_ok=True)
        # The name tells apt which of its two formats the file has.
        text = Path(sources).read_text(errors="replace")
        ending = "sources" if re.search(r"^Types:", text, re.MULTILINE) else "list"
        shutil.copy(sources, os.path.join(parts, f"operator.{ending}"))
        values |= {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts}
    return [part for name, value in values.items() for part in ("-o", f"{name}={value}")]


def apt(*arguments: str, tell: bool = True) -> Ended:
    for folder in ("state/lists/partial", "cache/archives/partial", "log"):
        os.makedirs(os.path.join(WORK, folder), exist_ok=True)
    env = os.environ | {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    return run(["apt-get", "-q", *options(), *arguments], env, tell=tell)


def wanted(entries: list[str]) -> list[str]:
    """Return the entries as apt's arguments. Raises Unresolvable."""
    prefix = ""
    with contextlib.suppress(FileNotFoundError):
        prefix = json.loads(Path(FOLDER, "apt.json").read_text())["prefix"]
    found = []
    for entry in entries:
        name, equals, version = entry.partition("=")
        name, version = name.strip().lower(), version.lstrip("=").strip()
        if not name.startswith(prefix):
            name = prefix + name
        if not NAME.fullmatch(name):
            raise Unresolvable(f"{entry}: not a package's name")
        if equals and not VERSION.fullmatch(version):
            raise Unresolvable(f"{entry}: not a version: name=version is, with all of it")
        found.append(name + equals + version)
    return found


def known() -> set[str]:
    """Return the names of all packages in the image and in the indexes that were fetched."""
    listed = subprocess.run(
        ["/usr/bin/apt-cache", *options(), "pkgnames"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return set(listed.stdout.split())


def must_be_known(arguments: list[str], names: set[str]) -> None:
    """Raise Unresolvable unless each argument has exactly a package's name.

    apt takes a name that it does not know for a regular expression or, by a sign at its
    end, for what is to be done; the names of Debian may have those characters too.
    """
    for argument in arguments:
        name = argument.partition("=")[0]
        if name not in names:
            raise Unresolvable(f"Unable to locate package {name}")


def installed() -> dict[str, str]:
    """Return the packages that the image has, and their versions."""
    listed = subprocess.run(
        [
            "/usr/bin/dpkg-query",
            f"--admindir={os.path.dirname(STATUS)}",
            "--show",
            "--showformat=${db:Status-Status} ${Package} ${Version}\n",
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = (line.split() for line in listed.stdout.splitlines())
    return {name: version for status, name, version in lines if status == "installed"}


def hold(versions: dict[str, str]) -> None:
    """Have apt take no other version of these, and none of them away."""
    # More than 1000: also where the registry has newer ones.
    pins = (f"Package: {n}\nPin: version {v}\nPin-Priority: 1001\n" for n, v in versions.items())
    os.makedirs(WORK, exist_ok=True)
    Path(WORK, "preferences").write_text("\n".join(pins))


def must_be_held(arguments: list[str], versions: dict[str, str]) -> None:
    """Raise Unresolvable for a version that is not the one that the image has."""
    for argument in arguments:
        name, equals, version = argument.partition("=")
        if equals and versions.get(name, version) != version:
            raise Unresolvable(
                f"{argument}: the image has {name} {versions[name]}, which stays: "
                "leave the version out, or give that one"
            )


def failure(ended: Ended) -> Exception:
    words = ended.words(("E: ", "Depends: ", "Conflicts: ", "Breaks: "))
    if ended.says(*KEPT):
        words += "\n" + STAYS
    if ended.says(*UNREACHABLE):
        return Unreachable(words)
    if ended.says("You don't have enough free space", "No space left on device"):
        return TooLarge(words)
    return Unresolvable(words)


def hosts() -> None:
    ended = apt("update", "--print-uris", tell=False)
    if ended.code:
        raise failure(ended)
    leave_hosts(line.split("'")[1] for line in ended.lines if line.startswith("'"))


def prepare(names: list[str]) -> None:
    """Read the indexes, and see that the names can be apt's arguments."""
    there = installed()
    hold(there)
    ended = apt("update")
    if ended.code:
        raise Unreachable(ended.words(("E: ", "Err:", "W: ")))
    must_be_known(names, known())
    must_be_held(names, there)


def install(request: Request) -> None:
    names = wanted(request.dependencies)
    prepare(names)
    ended = apt(*CHOICE, "--print-uris", "--", *names, tell=False)
    if ended.code:
        raise failure(ended)
    size = sum(int(line.split()[2]) for line in ended.lines if line.startswith("'"))
    if size > request.max_bytes:
        raise too_large(request.max_bytes)
    ended = apt(*CHOICE, "--download-only", "--", *names)
    if ended.code:
        raise failure(ended)
    packages = [
        unpack(os.path.join(ARCHIVES, name), request.max_bytes)
        for name in sorted(os.listdir(ARCHIVES))
        if name.endswith(".deb")
    ]
    if packages:
        leave_layer(ROOT, request.max_bytes)
    leave_packages(packages)


def unpack(archive: str, max_bytes: int) -> tuple[str, str]:
    """Unpack one package and return its name and version."""
    shown = subprocess.run(
        [DPKG_DEB, "--show", "--showformat=${Package} ${Version}", archive],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    name, _, version = shown.stdout.partition(" ")
    if shown.returncode or not NAME.fullmatch(name) or not VERSION.fullmatch(version):
        raise Unresolvable(f"{os.path.basename(archive)} is no package that can be unpacked")
    print(f"Unpacking {name} ({version})", flush=True)
    with full_is_too_large(max_bytes), tempfile.TemporaryDirectory(dir=WORK) as alone:
        ended = subprocess.run([DPKG_DEB, "--extract", archive, alone], check=False)
        if ended.returncode:
            raise Unresolvable(f"{name} {version} cannot be unpacked")
        os.unlink(archive)
        for folder in NEEDLESS:
            shutil.rmtree(os.path.join(alone, "usr/share", folder), ignore_errors=True)
        try:
            merge(alone, ROOT)
        except (FileExistsError, IsADirectoryError) as e:
            path = os.path.relpath(e.filename2 or e.filename, ROOT)
            why = f"{path} is a folder in one package alone"
            raise Unresolvable(f"{name} {version} cannot be unpacked: {why}") from None
    return name, version


def merge(source: str, target: str) -> None:
    """Move what is in one folder into another, and follow no link of either.

    Of two files the later one stays. Raises OSError, with the path in the target, if the same
    path is a folder on one side alone: through a link, a package would choose where the
    files of another one are written.
    """
    os.chmod(source, FOLDER_MODE)
    for path, folders, files in os.walk(source):
        place = os.path.join(target, os.path.relpath(path, source))
        if os.path.islink(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place)
        os.makedirs(place, exist_ok=True)
        for name in (*folders, *files):
            entry = os.path.join(path, name)
            if name in folders and not os.path.islink(entry):
                os.chmod(entry, FOLDER_MODE)
            else:
                os.rename(entry, os.path.join(place, name))


def main() -> None:
    request = Request.read()
    if request.phase == "hosts":
        hosts()
    else:
        install(request)


if __name__ == "__main__":
    main()
