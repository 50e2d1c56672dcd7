"""What all tests share: the harness without its hands.

The harness kills every process of a user and gives up root. Outside a container
that would be somebody's processes, so that these functions are taken away here,
before any module can have imported them.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import hypothesis
import hypothesis.configuration
import pytest
from wire import Recorder

from harness.system import privileges

# Nothing is written beside the tests.
_home = Path(sys.prefix, "hypothesis")  # the virtual environment's
hypothesis.configuration.set_hypothesis_home_dir(_home)
# An ordinary run tries the same examples each time, so that a change is judged by itself;
# scripts/fuzz.sh tries others.
hypothesis.settings.register_profile(
    "same", database=None, deadline=None, max_examples=60, derandomize=True
)
hypothesis.settings.register_profile(
    "random", database=None, deadline=None, max_examples=300, print_blob=True
)
hypothesis.settings.load_profile(os.environ.get("NOTEBOX_HYPOTHESIS", "same"))


# A shell starts what is in its background with interrupts ignored, and so would be all that
# a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _not_here(*_: object, **__: object) -> NoReturn:
    raise AssertionError("this would act on the processes of this host")


for _name in (
    "become_clerk",
    "become_user",
    "fork_clerk",
    "kill_clerk",
    "kill_user",
    "pipe",
    "reap",
    "run_as_user",
    "signal_group",
    "spawn",
):
    assert hasattr(privileges, _name), f"{_name} has got another name"
    setattr(privileges, _name, _not_here)

try:
    importlib.import_module("harness.kernel.process")
except SyntaxError:
    # This Python is older than the image's. What is tested here needs no kernel.
    _kernel = ModuleType("harness.kernel.process")
    vars(_kernel).update(DATA="/mnt/data", SERVICE=0, Kernel=object, SilentKernelError=RuntimeError)
    sys.modules["harness.kernel.process"] = _kernel


_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@pytest.fixture(autouse=True)
def orphans_are_nobodys() -> Iterator[None]:
    """Have no test leave its orphans to this process: installers make theirs their own."""
    yield
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def sent() -> Recorder:
    """Return a Writer that keeps what is written."""
    return Recorder()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that the harness takes for /mnt/data."""
    from harness.files import collector, folder, inputs, marks

    path = tmp_path / "data"
    path.mkdir()
    for module in (collector, folder, inputs, marks):
        monkeypatch.setattr(module, "DATA", str(path))
    return path
