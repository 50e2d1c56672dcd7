"""Makes a process cheap to fork: a fork copies the table of all pages, and in the end takes it
down, so fewer pages are better, and larger ones are fewer."""

from __future__ import annotations

import ctypes

_HUGE = 1 << 21  # bytes
_MADV_COLLAPSE = 25  # asm-generic/mman-common.h


def collapse() -> None:
    """Have large pages in memory of no file, as far as the kernel of the host makes them."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps") as f:
        lines = [line.split() for line in f]
    for span, rights, _, _, inode in (line[:5] for line in lines):
        start, end = (int(address, 16) for address in span.split("-"))
        first, last = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
        if rights == "rw-p" and inode == "0" and last > first:
            madvise(first, last - first, _MADV_COLLAPSE)
