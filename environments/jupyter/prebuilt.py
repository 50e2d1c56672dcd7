"""pip as a process that starts no other. It takes the arguments of pip.

What is not prebuilt runs in processes of its own, whatever a package names it by: the build
of a source distribution, git for a repository, and pip for what a build needs. So none of it
runs here, whichever way pip came to it.
"""

from __future__ import annotations

import resource
import sys

from pip._internal.cli.main import main

# What Python tells of (its documentation, "Audit events table").
STARTS = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)


def refuse(event: str, _: tuple[object, ...]) -> None:
    if event in STARTS:
        raise OSError("only prebuilt packages, wheels, of the package index can be installed")


if __name__ == "__main__":
    sys.addaudithook(refuse)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # the kernel holds it too
    sys.exit(main())
