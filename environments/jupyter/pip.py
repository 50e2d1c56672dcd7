"""Installs Python's packages into a layer: the installer of the languages that have pip's notation.

1. pip resolves the set against the packages that the image has, and says in a report what
   is missing. Unless there are builds, pip is a process that can start no other, and so
   runs no code of a package (prebuilt.py).
2. Exactly that, by version and hash, is installed into a folder of its own, which comes
   before the image's on the path of a kernel.
3. It is compiled, as nothing can be written in a run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = "/opt/installers"
sys.path.append(FOLDER)  # after pip itself, which has the name of this file

from installing import (  # noqa: E402
    DATA,
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
    without_traces,
)
from layer import TooLarge, too_large  # noqa: E402

WORK = os.path.join(DATA, "pip")
ROOT = os.path.join(WORK, "root")  # of the layer
# By this name IPython knows what the folder of the code comes before.
PLACE = os.path.join(ROOT, "site-packages")
PREBUILT = os.path.join(FOLDER, "prebuilt.py")
ONLY_WHEELS = ("--only-binary", ":all:")  # of the index; it does not hold for a URL
LIST = os.path.join(WORK, "requirements.txt")

# What pip says where it could not ask, or was not let in.
UNREACHABLE = (
    "connection broken by",
    "Max retries exceeded",
    "ReadTimeoutError",
    "Connection aborted",
    "credentials were not correct",
    "Credentials not correct",
)
DIRECT = "a package wants it by a URL, which cannot be installed"
REFUSED = "Could not install packages due to an OSError: "  # stands before prebuilt.py's words
PREPARING = ("Collecting ", "Processing ")  # stand before what pip is about to prepare
ADVICE = "To fix this you could"  # ends what is about the set
NEEDLESS = ("for help visit", "Ignored the following")
VERSIONS = re.compile(r"\(from versions: (?:[^)]*, )?((?:[^,)]*, ){9}[^,)]*)\)")  # the last of many


def environment() -> dict[str, str]:
    """Return the variables of pip: what it would be told elsewhere is not for it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env["PIP_CONFIG_FILE"] = settings("pip.conf") or os.devnull
    # Stronger than a file of settings, which is of another machine.
    if cert := os.environ.get("PIP_CERT"):
        env["PIP_CERT"] = cert
    if proxy := os.environ.get("HTTPS_PROXY"):
        env["PIP_PROXY"] = proxy
    env |= {
        "PIP_CACHE_DIR": os.path.join(WORK, "cache"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COLOR": "1",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_RETRIES": "1",  # by which pip says why
        "PIP_ROOT_USER_ACTION": "ignore",
        "PIP_TIMEOUT": "15",
        "PIP_USER": "0",
        "TMPDIR": os.path.join(WORK, "tmp"),
    }
    return env


def indexes(env: dict[str, str]) -> list[str]:
    """Return where pip looks for packages with these variables, as pip itself takes them."""
    os.environ.update(env)
    from pip._internal.commands import create_command

    options: Any = create_command("install").parse_args([])[0]
    urls = [] if options.no_index else [options.index_url, *options.extra_index_urls]
    return [url for url in (*urls, *options.find_links) if "://" in url]


def places(urls: list[str]) -> list[str]:
    """Return these, and where their files are, as far as pip knows that of them."""
    from pip._internal.models.index import PyPI, TestPyPI

    known = {index.netloc: f"https://{index.file_storage_domain}" for index in (PyPI, TestPyPI)}
    found = list(urls)
    for url in urls:
        netloc = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        found += [known[netloc]] if netloc in known else []
    return found


def pip(
    arguments: list[str], env: dict[str, str], request: Request, descriptors: Sequence[int] = ()
) -> None:
    """Run pip install, which has these descriptors. Raises why it came to nothing."""
    how = ["-m", "pip", "install"] if request.builds else [PREBUILT, "install", *ONLY_WHEELS]
    ended = run([sys.executable, "-I", *how, *arguments], env, descriptors=descriptors)
    if ended.code:
        raise failure(ended, request)


def failure(ended: Ended, request: Request) -> Exception:
    """Return what the words of pip come to."""
    if ended.says("No space left on device", "Disk quota exceeded"):
        return too_large(request.max_bytes)
    if ended.says(*UNREACHABLE):
        return Unreachable("the package index cannot be reached")
    if ended.code < 0:
        return TooLarge("the packages take more memory than there is")
    words = reason(ended)
    if not request.builds and "No matching distribution" in words:
        words += "\n(Only prebuilt packages, wheels, can be installed.)"
    return Unresolvable(words)


def reason(ended: Ended) -> str:
    """Return pip's words from its first error on."""
    told: list[str] = []
    preparing = ""
    for line in without_traces(ended.lines):
        if line.startswith(PREPARING):
            preparing = line.partition(" ")[2]
        if line.startswith(ADVICE):
            break
        if (told or line.startswith("ERROR")) and not any(part in line for part in NEEDLESS):
            words = line.removeprefix("ERROR: ")
            if words.startswith(REFUSED):
                words = f"{preparing}: {words.removeprefix(REFUSED)}"
            told.append(VERSIONS.sub(r"(among them \1)", words))
    return Ended(ended.code, told).words(told) or ended.words()


def resolve(request: Request, env: dict[str, str]) -> dict[str, Any]:
    """Return pip's report. It has no name by which another could write it."""
    with tempfile.TemporaryFile("w+", dir=WORK) as file:
        path = f"/dev/fd/{file.fileno()}"
        arguments = ["--dry-run", "--report", path, "--", *request.dependencies]
        pip(arguments, env, request, (file.fileno(),))
        report: dict[str, Any] = json.load(file)
    return report


def missing(report: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Return the name, version and hashes of what is to be installed.

    Raises Unresolvable for what is not the index's.
    """
    found = []
    for item in report["install"]:
        if item["is_direct"]:
            raise Unresolvable(
                f"{item['metadata']['name']} is not from the package index: {DIRECT}"
            )
        archive = item["download_info"].get("archive_info", {})
        hashes = [f"{kind}:{value}" for kind, value in sorted(archive.get("hashes", {}).items())]
        found.append((item["metadata"]["name"], item["metadata"]["version"], hashes))
    return sorted(found)


def requirements(packages: list[tuple[str, str, list[str]]]) -> str:
    """Return a file of requirements that stands for exactly these."""
    return "".join(
        f"{name}=={version}" + "".join(f" --hash={value}" for value in hashes) + "\n"
        for name, version, hashes in packages
    )


def compile_all() -> None:
    """Compile, with the paths that the files have in a run."""
    paths = ["-s", ROOT, "-p", "/opt/dependencies"]
    how = ["-q", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", *paths, PLACE]
    # What does not compile is no module: templates, and tests of what is no Python.
    subprocess.run([sys.executable, "-I", "-m", "compileall", *how], check=False)


def install(request: Request, env: dict[str, str]) -> None:
    for folder in (env["TMPDIR"], PLACE):
        os.makedirs(folder)
    reach(indexes(env))
    packages = missing(resolve(request, env))
    if packages:
        Path(LIST).write_text(requirements(packages))
        # What a package is built from has hashes of its own.
        pip(["--no-deps", "--no-compile", "--target", PLACE, "-r", LIST], env, request)
        shutil.rmtree(env["PIP_CACHE_DIR"], ignore_errors=True)
        compile_all()
        leave_layer(ROOT, request.max_bytes)
    leave_packages((name, version) for name, version, _ in packages)


def main() -> None:
    request = Request.read()
    env = environment()
    if request.phase == "hosts":
        leave_hosts(places(indexes(env)))
    else:
        install(request, env)


if __name__ == "__main__":
    main()
