"""What the process that cells are forked from may have."""

from __future__ import annotations

import mmap
import sys
import threading

import pytest

if sys.version_info < (3, 12):
    pytest.skip("the images' Python has functions for namespaces", allow_module_level=True)

from harness.cell import zygote


def test_memory_is_shared_with_no_fork() -> None:
    zygote.require_alone()
    with mmap.mmap(-1, mmap.PAGESIZE), pytest.raises(RuntimeError, match="share memory"):
        zygote.require_alone()
    with mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE):
        zygote.require_alone()


def test_no_thread_is_missing_in_a_fork() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="2 threads"):
            zygote.require_alone()
    finally:
        over.set()
        thread.join()
