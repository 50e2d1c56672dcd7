"""Who is on the way out."""

from __future__ import annotations

import os
import subprocess

from harness.system.privileges import is_ending


def test_who_was_killed_is_ending() -> None:
    child = subprocess.Popen(["/bin/sleep", "1000"])
    assert not is_ending(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_ending(child.pid), "it has ended, and nobody has asked how"
    child.wait()
    assert is_ending(child.pid), "it is no more"
