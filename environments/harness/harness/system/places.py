"""The folders of a sandbox, and its display."""

from __future__ import annotations

from pathlib import Path

DATA = "/mnt/data"  # the files of requests
TMP = "/tmp"
HOME = "/tmp/home"  # the user's
# The harness's own, on a file system that is root's. Nothing of root's is below a folder that
# the user may write to, as code can be there first.
HARNESS = "/run/notebox"
DISPLAY = ":99"
PROGRAMS: str = str(Path(__file__).parents[2])  # the folder of launch.py, and of the package
