"""Makes a process cheap to fork: a fork copies the table of all pages, and in the end takes it
down, so fewer pages are better, and larger ones are fewer. What a fork writes to is copied page
by page, so what is written should be together.

1. A large page is 2 MiB, and memory without a hole. Python takes its memory in pieces of 1 MiB
   (arenas), which the kernel would put between the libraries, wherever there is room.
2. Python has objects of one size in a part of an arena (pool, 16 KiB), and a new one goes where
   an old one was: all over the memory.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import struct
import sys
from collections.abc import Iterator

from harness.cell import immortal
from harness.system.libc import LIBC

RESERVED = 56 << 20  # bytes of objects, a little less than there are when all is imported
_LARGE = (32 << 20) - (8 << 10)  # bytes, the most that mallopt(3) tells of M_MMAP_THRESHOLD

# Of pymalloc, see Objects/obmalloc.c and pycore_obmalloc.h.
_STEP, _LARGEST = 16, 512  # bytes: sizes of objects in pools
_ARENA, _POOL = 1 << 20, 1 << 14

_HUGE = 1 << 21  # bytes
_MADV_COLLAPSE = 25  # asm-generic/mman-common.h
_ENTRY, _PRESENT = struct.Struct("=Q"), 63  # Documentation/admin-guide/mm/pagemap.rst


def reserve() -> list[object]:
    """Reserve one range for the objects that imports make. It stays reserved until the caller
    drops what is returned."""
    LIBC.malloc.restype = ctypes.c_void_p
    # From now on what is larger than an object is on the heap, and not mapped for itself.
    LIBC.free(ctypes.c_void_p(LIBC.malloc(_LARGE)))
    objects = [_object(_LARGEST, i) for i in range(RESERVED // _LARGEST)]
    return objects[:: _ARENA // _LARGEST * 9 // 10]  # one in each arena


def gather() -> None:
    """Have what comes from now on be together, and not in the gaps between what there is. All that
    exists becomes immortal, so nothing of it leaves a gap later."""
    gc.collect()
    sys._clear_internal_caches()  # or names that only these know would end later
    immortal.immortalize()
    gc.collect()  # which drops what is kept of objects that have ended, for new ones
    fill()


def share() -> None:
    """Prepare the objects that there are for being shared with forks."""
    gc.collect()
    immortal.immortalize()
    gc.freeze()
    collapse()
    fill()


_filled: list[object] = []


def fill() -> None:
    """Fill the gaps between objects, so that new ones are in an arena of their own."""
    before = list(_writable())
    # In this order: the largest ones take all that is left of arenas, and the others then what
    # is left of pools.
    for size in range(_LARGEST, 0, -_STEP):
        count = _POOL // size if size < _LARGEST else _ARENA // size
        inside = True
        while inside:
            batch = [_object(size, number) for number in range(count)]
            _filled.extend(batch)
            inside = any(start <= id(thing) < end for thing in batch for start, end in before)


def _object(size: int, number: int) -> object:
    """Return one that takes so many bytes, and that nobody else has."""
    if size <= _STEP:
        return object()
    if size <= 2 * _STEP:
        return (1 << 40) + number
    return bytes(bytearray(size - bytes.__basicsize__))


def collapse() -> None:
    """Have large pages in memory of no file, as far as the kernel of the host makes them."""
    LIBC.malloc_trim(ctypes.c_size_t(0))
    madvise = LIBC.madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        for start, end in list(_writable()):
            for page in range(-(-start // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
                pagemap.seek(page // mmap.PAGESIZE * _ENTRY.size)
                entries = pagemap.read(_HUGE // mmap.PAGESIZE * _ENTRY.size)
                there = sum(entry >> _PRESENT for (entry,) in _ENTRY.iter_unpack(entries))
                if there * mmap.PAGESIZE >= _HUGE // 2:  # what is not there would cost memory
                    madvise(page, _HUGE, _MADV_COLLAPSE)


def _writable() -> Iterator[tuple[int, int]]:
    """Yield where there is memory of no file."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights, _, _, inode = line.split()[:5]
            if rights == "rw-p" and inode == "0":
                start, end = span.split("-")
                yield int(start, 16), int(end, 16)
