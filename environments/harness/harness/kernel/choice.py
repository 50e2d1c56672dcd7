"""Which kernel a sandbox has, as the service says before all else."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass, field

from harness.kernel import warm

PYTHON = "python3"  # the kernel that the harness forks from itself
# The variable that names the folder of a request's packages: environments/jupyter/packages.pth
# puts it between the standard library and the image's own.
PACKAGES = "NOTEBOX_PACKAGES"
# Variables that are lists of folders, beside those named …PATH.
_LISTS = ("R_LIBS", "PERL5LIB", "XDG_DATA_DIRS")


@dataclass(frozen=True)
class Choice:
    """One. The JSON names are those of the Go side."""

    kernel: str = PYTHON  # the name of its kernelspec
    modules: list[str] = field(default_factory=list)  # that PYTHON imports before there is a job
    cells: list[str] = field(default_factory=list)  # that another one runs
    interrupts: bool = True  # a cell can be interrupted
    finishes: bool = True  # its end does what a user can notice
    env: dict[str, str] = field(default_factory=dict)  # of the kernel and of commands
    packages: bool = False  # the image has some that a caller has chosen

    @classmethod
    def read(cls, payload: bytes) -> Choice:
        return cls(**json.loads(payload))

    @property
    def is_python(self) -> bool:
        return self.kernel == PYTHON

    def environment(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        """Return the variables of the kernel, with these.

        Lists of folders have both, these first.
        """
        all_of_them = self.env | (extra or {})
        for name in self.env.keys() & (extra or {}).keys():
            if name.endswith("PATH") or name in _LISTS:
                all_of_them[name] = f"{all_of_them[name]}:{self.env[name]}".strip(":")
        return warm.environment(all_of_them)

    def hides_imported(self) -> bool:
        """Report whether modules that this process has imported come after others of the name."""
        libraries = self.libraries()
        # In this order: to go through all names copies their pages, after a fork.
        return bool(libraries) and not libraries.isdisjoint(
            name.partition(".")[0] for name in sys.modules
        )

    def libraries(self) -> set[str]:
        """Return the top-level names of modules that come before those of the image."""
        if not (folder := self.env.get(PACKAGES)):
            return set()
        # Python takes no notice of one that is not there.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            names = [entry.name for entry in entries if not entry.name.endswith(".dist-info")]
            found = {name.partition(".")[0] for name in names if name != "__pycache__"}
            return found - sys.stdlib_module_names
        return set()
