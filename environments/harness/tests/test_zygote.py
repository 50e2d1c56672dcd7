"""What the process that cells are forked from may have."""

from __future__ import annotations

import json
import mmap
import os
import threading

import pytest

if not hasattr(os, "unshare"):
    pytest.skip("the images' Python has functions for namespaces", allow_module_level=True)

from harness.cell import walls, zygote


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


def test_setup_is_what_the_supervisor_says() -> None:
    """As environments/supervisor/zygote.go writes it."""
    told = {
        "kernel": "python3",
        "modules": None,
        "filter": "AAE=",
        "cells_filter": "AA==",
        "masked": ["/proc/keys"],
        "read_only": [],
        "sysctls": None,
        "groups": {"cpu": "/run"},
    }
    setup = walls.Setup.read(json.dumps(told).encode())
    assert setup == walls.Setup(
        "python3", b"\x00\x01", b"\x00", masked=["/proc/keys"], groups={"cpu": "/run"}
    )
