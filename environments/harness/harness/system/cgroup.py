"""What the sandbox has used, read from its control group, version 1 or 2.

Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,cpuacct}.rst
of the Linux kernel.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

ROOT = "/sys/fs/cgroup"

# Below ROOT, of version 2 and 1; the folder of version 1 is that of a controller.
_UNIFIED = ("cpu.stat", "memory.peak", "memory.current", "memory.events")
_MEMORY_PEAK, _MEMORY_OOM = "memory/memory.max_usage_in_bytes", "memory/memory.oom_control"
_CPU = ("cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage")
_held: dict[str, int] = {}  # descriptors, by path


@dataclass(frozen=True)
class Usage:
    """Counters of the control group; 0 where this host does not tell."""

    cpu_ns: int  # of all processes since the sandbox started
    peak_memory: int  # bytes, tmpfs included, since the sandbox started
    oom_kills: int  # processes ended because the memory limit was reached


def read(root: str = ROOT) -> Usage:
    """Return the counters as they stand."""
    if _is_unified(root):
        return Usage(
            cpu_ns=cpu_ns(root),
            peak_memory=_number(f"{root}/memory.peak") or _number(f"{root}/memory.current"),
            oom_kills=_field(f"{root}/memory.events", b"oom_kill"),
        )
    return Usage(
        cpu_ns=cpu_ns(root),
        peak_memory=_number(f"{root}/{_MEMORY_PEAK}"),
        oom_kills=_field(f"{root}/{_MEMORY_OOM}", b"oom_kill"),
    )


def cpu_ns(root: str = ROOT) -> int:
    """Return cpu_ns alone."""
    if _is_unified(root):
        return _field(f"{root}/cpu.stat", b"usage_usec") * 1000
    return next(filter(None, (_number(f"{root}/{name}") for name in _CPU)), 0)


def hold(folder: Callable[[str], str]) -> list[int]:
    """Open the counters for good, as where this process goes they are not at ROOT: below the folder
    of each controller, which is "" on version 2. Returns the descriptors."""
    for name in (*_UNIFIED, _MEMORY_PEAK, _MEMORY_OOM, *_CPU):
        controller, _, file = name.rpartition("/")
        with contextlib.suppress(FileNotFoundError):
            _held[f"{ROOT}/{name}"] = os.open(f"{folder(controller)}/{file}", os.O_RDONLY)
    if not {f"{ROOT}/{name}" for name in (*_CPU, "cpu.stat")} & _held.keys():
        raise RuntimeError("this cell's control group tells no CPU time")
    return list(_held.values())


def _is_unified(root: str) -> bool:
    return os.path.exists(f"{root}/cgroup.controllers")


def _content(path: str) -> bytes:
    if path in _held:
        return os.pread(_held[path], _MAX_CONTENT, 0)
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, _MAX_CONTENT)
    except OSError:  # a folder
        return b""
    finally:
        os.close(fd)


def _number(path: str) -> int:
    text = _content(path).strip()
    return int(text) if text.isdigit() else 0


def _field(path: str, name: bytes) -> int:
    for line in _content(path).splitlines():
        key, _, value = line.partition(b" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0


_MAX_CONTENT = 1 << 16  # bytes; the largest of these files has one or two thousand
