"""Golden folders under testdata/cgroup: what kernels show at /sys/fs/cgroup.

Their formats are those of the kernel's Documentation/admin-guide/cgroup-v2.rst and
cgroup-v1/{memory,cpuacct}.rst; the versions in their names are where these changed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.system import cgroup
from harness.system.cgroup import Usage

GOLDEN = Path(__file__).parent / "testdata" / "cgroup"

NOTHING = Usage(cpu_ns=0, peak_memory=0, oom_kills=0)

FOLDERS = [
    ("v1", "memory and cpuacct apart", Usage(2_773_759_346_701, 5_626_331_136, 3)),
    ("v1-cpu,cpuacct", "mounted together, no link", Usage(1_350_204_817, 2_147_483_648, 1)),
    ("v1-before-4.13", "no oom_kill counter yet", Usage(0, 167_772_160, 0)),
    ("v1-garbage", "negative, empty, a longer name", NOTHING),
    ("v2", "with memory.peak", Usage(1_287_839_931_000, 2_147_483_648, 2)),
    ("v2-before-5.19", "memory.current instead of the peak", Usage(748_213_000, 167_936_000, 0)),
    ("v2-root", "no memory controller", Usage(3_624_948_712_000, 0, 0)),
    ("v2-bare", "none of the files", NOTHING),
    ("v2-garbage", "words, signs, fractions, two numbers", NOTHING),
    ("nothing", "neither version", NOTHING),
    ("not-there", "no such folder", NOTHING),
]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [pytest.param(folder, usage, id=f"{folder}: {desc}") for folder, desc, usage in FOLDERS],
)
def test_counters(folder: str, expected: Usage) -> None:
    assert cgroup.read(str(GOLDEN / folder)) == expected


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_held_counters_go_on(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_held", {})
    monkeypatch.setattr(cgroup, "ROOT", str(tmp_path / "elsewhere"))
    shutil.copytree(GOLDEN / version, tmp_path / "group")
    descriptors = cgroup.hold(lambda controller: str(tmp_path / "group" / controller))
    (tmp_path / "elsewhere").mkdir()
    if version == "v2":
        (tmp_path / "elsewhere" / "cgroup.controllers").touch()
    root = str(tmp_path / "elsewhere")
    assert cgroup.read(root) == cgroup.read(str(GOLDEN / version))
    cpu = {"v1": "cpuacct/cpuacct.usage", "v2": "cpu.stat"}[version]
    (tmp_path / "group" / cpu).write_text({"v1": "7000\n", "v2": "usage_usec 7\n"}[version])
    assert cgroup.cpu_ns(root) == 7000
    for descriptor in descriptors:
        os.close(descriptor)
    monkeypatch.setattr(cgroup, "_held", {})
    with pytest.raises(RuntimeError, match="CPU"):
        cgroup.hold(lambda controller: str(tmp_path / "nowhere" / controller))


def test_unreadable(tmp_path: Path) -> None:
    # A folder in a file's place fails to be read like a file without permission.
    for name in ("cgroup.controllers", "cpu.stat", "memory.events", "memory.peak"):
        (tmp_path / name).mkdir()
    assert cgroup.read(str(tmp_path)) == NOTHING


def test_this_host() -> None:
    usage = cgroup.read()
    assert min(usage.cpu_ns, usage.peak_memory, usage.oom_kills) >= 0
