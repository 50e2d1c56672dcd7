"""Programs of tests that need a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def outcome(program: str) -> str:
    """Run a program that can import the harness, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout
