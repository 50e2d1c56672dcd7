"""Installs npm packages for a layer at /opt/dependencies: node_modules and a package.json, by
which Deno finds them as well as Node.js does.

Run in a sandbox of its own; see docs/environments.md for what an installer takes and leaves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = "/opt/installers"
sys.path.append(FOLDER)

import installing  # noqa: E402
from installing import (  # noqa: E402
    MAX_WORDS,
    Ended,
    Request,
    Unreachable,
    Unresolvable,
    leave_hosts,
    leave_layer,
    leave_packages,
    reach,
    run,
    settings,
)
from layer import full_is_too_large, too_large  # noqa: E402

NPM = "/usr/local/bin/npm"
UNLOCKED = os.path.join(FOLDER, "unlocked.cjs")
# npm's defaults wait 10 s before they try again; a caller waits for the answer.
RETRIES = (
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=1000",
    "--fetch-timeout=15000",
)
QUIET = ("--no-audit", "--no-fund", "--no-update-notifier", "--no-progress")
NEEDLESS = ("A complete log of this run", "Log files were not written")

ENTRY = re.compile(r"((?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)(?:@([^:/\\]+))?", re.I)
ERROR = re.compile(r"^npm (?:error|ERR!) ?")
# Not --allow-remote=none: it refuses a registry whose files are at another host.
ONLY_FILES = (
    "--ignore-scripts=true",
    "--allow-git=none",
    "--allow-file=none",
    "--allow-directory=none",
)
# A version, a range of them or a tag: what else names a package is a URL, a path, or an
# alias of such a name.
OF_REGISTRY = re.compile(r"(?:npm:[^:]*|[^:/]*)")
# What Node.js says where npm would start a process.
ALONE = "ERR_ACCESS_DENIED"
NOT_OF_REGISTRY = (
    "only packages of the registry can be installed, none by a URL or from a repository"
)
# What npm (and Node.js, whose words it uses) says where there is no way to a registry.
UNREACHABLE = re.compile(
    r"\bcode (E(NOTFOUND|CONN\w+|TIMEDOUT|AI_AGAIN|HOSTUNREACH|NETUNREACH|PIPE|5\d\d|429|407)|"
    r"ERR_SOCKET\w*|FETCH_ERROR|UND_ERR\w*|\w*CERT\w*|E?PROTO)\b|tunneling socket|ProxyError"
)
TOO_LARGE = re.compile(r"\bENOSPC\b|\bEDQUOT\b")


def main() -> None:
    request = Request.read()
    if request.phase == "hosts":
        leave_hosts(registries())
    else:
        install(request)


def environment() -> dict[str, str]:
    """Return the variables of npm: the operator's settings, with this sandbox's proxy and CA."""
    return os.environ | {
        "npm_config_userconfig": settings("npmrc") or os.devnull,
        "npm_config_cache": os.path.join(installing.DATA, "cache"),
    }


def here() -> list[str]:
    """Return options over settings that hold for the operator's host and not here."""
    options = []
    for option, name in (("proxy", "HTTP_PROXY"), ("https-proxy", "HTTPS_PROXY")):
        if address := os.environ.get(name):
            options.append(f"--{option}={address}")
    if bundle := os.environ.get("NODE_EXTRA_CA_CERTS"):
        options.append(f"--cafile={bundle}")
    return options


def registries() -> list[str]:
    """Return the URLs that npm would ask, of scopes too."""
    told = subprocess.run(
        [NPM, "config", "list", "--json"],
        env=environment(),
        cwd=installing.DATA,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return sorted({v for k, v in found.items() if k == "registry" or k.endswith(":registry")})


def alone() -> dict[str, str]:
    """Return variables by which npm is a process that starts no other, and runs no native code.

    ONLY_FILES is npm's own word for the same. It does not hold alone: npm has run scripts of
    repositories in spite of --ignore-scripts, by git and by itself. And npm believes a lockfile
    inside a package, which can name any URL: unlocked.cjs has it pass these files over.
    """
    return {
        "NODE_OPTIONS": "--experimental-permission --allow-fs-read=* --allow-fs-write=*"
        f" --disable-warning=ExperimentalWarning --require={UNLOCKED}"
    }


def install(request: Request) -> None:
    work = Path(installing.DATA, "work")
    work.mkdir()
    reach(registries())
    asked = wanted(request.dependencies)
    package = {"private": True, "dependencies": asked}
    (work / "package.json").write_text(json.dumps(package))
    only = ("--ignore-scripts=false",) if request.builds else ONLY_FILES
    options = [*only, *here(), *RETRIES, *QUIET, "--omit=dev", "--no-package-lock"]
    command = [NPM, "install", *options]
    env = environment() | ({} if request.builds else alone())
    ended = run(command, env, folder=str(work), needless=NEEDLESS)
    if ended.code:
        raise failure(ended, request)
    shutil.rmtree(os.path.join(installing.DATA, "cache"), ignore_errors=True)
    found = resolved(work, request.builds)
    # npm's own notes, with the registry's address in them.
    (work / "node_modules/.package-lock.json").unlink(missing_ok=True)
    # What was chosen, so that Deno takes no other for what a program asks for.
    chosen = {name: version for name, version, direct in found if direct}
    package["dependencies"] = {name: chosen.get(name, spec) for name, spec in asked.items()}
    with full_is_too_large(request.max_bytes):
        (work / "package.json").write_text(json.dumps(package, sort_keys=True) + "\n")
    leave_packages((name, version) for name, version, _ in found)
    leave_layer(str(work), request.max_bytes)


def wanted(entries: list[str]) -> dict[str, str]:
    """Return the range of versions of each package. Raises Unresolvable."""
    found: dict[str, str] = {}
    for name, spec in map(parsed, entries):
        if found.setdefault(name, spec) != spec:
            raise Unresolvable(f"{name} is asked for twice: as {found[name]} and as {spec}")
    return found


def parsed(entry: str) -> tuple[str, str]:
    """Return an entry's name and range. In a package.json it cannot be taken for an option."""
    match = ENTRY.fullmatch(entry.strip())
    if match is None:
        raise Unresolvable(f"{entry}: not a package's name and a range of versions")
    return match[1], (match[2] or "latest").strip()


def failure(ended: Ended, request: Request) -> Exception:
    """Return what the words of npm come to."""
    errors = (ERROR.sub("", line) for line in ended.lines if ERROR.match(line))
    words = "\n".join(errors)[:MAX_WORDS].strip() or f"npm ended with {ended.code}"
    heard = "\n".join(ended.lines)
    if TOO_LARGE.search(heard):
        return too_large(request.max_bytes)
    if ALONE in heard:
        return Unresolvable(NOT_OF_REGISTRY)
    return (Unreachable if UNREACHABLE.search(heard) else Unresolvable)(words)


def resolved(work: Path, builds: bool) -> list[tuple[str, str, bool]]:
    """Return the packages of a finished installation.

    Name, version, and whether it is at the top, where imports find it. Raises Unresolvable
    for what is not the registry's, unless there are builds.
    """
    lock = json.loads((work / "node_modules/.package-lock.json").read_text())
    found = []
    installed = {path.rpartition("node_modules/")[2] for path in lock["packages"]}
    for path, package in lock["packages"].items():
        before, _, name = path.rpartition("node_modules/")
        if not builds:
            must_be_of_registry(name, package, installed)
        if (work / path).is_dir():  # not one of another platform
            if not isinstance(version := package.get("version"), str):
                raise Unresolvable(f"{name} has no version")
            found.append((name, version, not before))
    return found


def must_be_of_registry(owner: str, package: dict[str, Any], installed: set[str]) -> None:
    """Raise Unresolvable for a package that has another one installed by a URL or a path."""
    for kind in ("dependencies", "optionalDependencies", "peerDependencies"):
        wanted = package.get(kind, {})
        if not isinstance(wanted, dict):
            raise Unresolvable(f"{owner}: its {kind} are not a list of names with versions")
        for name, spec in wanted.items():
            if name in installed and not (isinstance(spec, str) and OF_REGISTRY.fullmatch(spec)):
                raise Unresolvable(f"{name}@{spec}: {NOT_OF_REGISTRY}")


if __name__ == "__main__":
    main()
