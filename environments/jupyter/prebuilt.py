"""pip as a process that starts no other. It takes the arguments of pip.

What is not prebuilt runs in processes of its own, whatever a package names it by: the build
of a source distribution, git for a repository, and pip for what a build needs. So none of it
runs here, whichever way pip came to it. Nor is a program written elsewhere than where it
belongs: pip takes the name of a wheel's program for a path.
"""

from __future__ import annotations

import resource
import sys
from typing import Any

from pip._internal.cli.main import main
from pip._internal.operations.install import wheel
from pip._vendor.distlib.scripts import ScriptMaker
from pip._vendor.distlib.util import get_export_entry

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


class NamedOnly(ScriptMaker):
    """Writes no program whose name is a path."""

    def make(self, specification: str, options: Any = None) -> Any:
        """Take "name = module:function"."""
        names = [specification.partition("=")[0].strip()]
        # distlib may find another one: behind the first "=", where a second one follows.
        if entry := get_export_entry(specification):  # type: ignore[no-untyped-call]
            names.append(entry.name)
        for name in names:
            if "/" in name or name in (".", ".."):
                raise OSError(f"{name}: not a program's name")
        return super().make(specification, options)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.addaudithook(refuse)
    wheel.PipScriptMaker.__bases__ = (NamedOnly,)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))  # the kernel holds it too
    sys.exit(main())
