"""A grace is time that could be used: on a busy machine it is longer on the wall."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from harness.system import grace

STEP = grace.LOOK_SECONDS


def asked(seconds: float, most: float, *, share: float, can_run: bool) -> float:
    """Return when a grace is over, on the wall, where the sandbox gets this share of a core."""
    now = 1000.0
    g = grace.Grace(
        seconds,
        most,
        wall=lambda: now,
        cpu_ns=lambda: int(now * share * 1e9),
        can_run=lambda: can_run,
    )
    while not g.over():
        now += STEP
    return now - 1000.0


@pytest.mark.parametrize(
    ("desc", "share", "can_run", "took"),
    [
        ("an idle machine", 1.0, True, 1.0),
        ("a busy machine", 0.2, True, 5.0),
        ("a machine that is busier than anybody waits for", 0.01, True, 10.0),
        ("several cores are no reason to wait less", 4.0, True, 1.0),
        ("code that sleeps", 0.0001, False, 1.0),
        ("a host that tells no CPU time", 0.0, True, 1.0),
    ],
)
def test_how_long_it_is(desc: str, share: float, can_run: bool, took: float) -> None:
    got = asked(1.0, 10.0, share=share, can_run=can_run)
    assert took - STEP / 2 <= got <= took + 2 * STEP, desc


def test_waiting_ends_with_what_is_waited_for() -> None:
    ended = threading.Event()
    threading.Timer(0.1, ended.set).start()
    begun = time.monotonic()
    grace.Grace(60.0, 60.0).wait(ended)
    assert time.monotonic() - begun < 30.0


LOOKS = """
import subprocess, sys, time
from harness.system import grace
print(grace.can_run())
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
time.sleep(1)
print(grace.can_run())
busy.kill()
busy.wait()
print(grace.can_run())
"""


def test_what_is_busy_is_seen() -> None:
    alone = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", LOOKS]
    out = subprocess.run(alone, check=True, capture_output=True, text=True, timeout=60)
    assert out.stdout.split() == ["False", "True", "False"]
