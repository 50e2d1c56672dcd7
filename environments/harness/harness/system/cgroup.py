"""What the sandbox has used, read from its control group, version 1 or 2.

Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,cpuacct}.rst
of the Linux kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Usage:
    """Counters of the control group; 0 where this host does not tell."""

    cpu_ns: int  # of all processes since the sandbox started
    peak_memory: int  # bytes, tmpfs included, since the sandbox started
    oom_kills: int  # processes ended because the memory limit was reached


def read(root: Path = ROOT) -> Usage:
    """Return the counters as they stand."""
    if (root / "cgroup.controllers").exists():
        return Usage(
            cpu_ns=_field(root / "cpu.stat", "usage_usec") * 1000,
            peak_memory=_number(root / "memory.peak") or _number(root / "memory.current"),
            oom_kills=_field(root / "memory.events", "oom_kill"),
        )
    cpuacct = root / "cpuacct"
    if not cpuacct.exists():
        cpuacct = root / "cpu,cpuacct"
    return Usage(
        cpu_ns=_number(cpuacct / "cpuacct.usage"),
        peak_memory=_number(root / "memory" / "memory.max_usage_in_bytes"),
        oom_kills=_field(root / "memory" / "memory.oom_control", "oom_kill"),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else 0


def _field(path: Path, name: str) -> int:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdecimal():
            return int(value)
    return 0
