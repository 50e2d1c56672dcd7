"""The files that a job comes with, on their way to /mnt/data, with the user's rights."""

from __future__ import annotations

import json
import os

from harness.stream import frames
from harness.system.places import DATA


def place(reader: frames.Reader) -> None:
    """Write the files that come in until the service says go.

    Runs before any code of the user, in a child of its own. Raises OSError where
    a file cannot be written, after it took everything off the stream.
    """
    failure: OSError | None = None
    fd = -1
    while True:
        kind, payload = reader.read()
        try:
            if kind in (frames.INPUT, frames.GO) and fd >= 0:
                os.close(fd)
                fd = -1
            if kind == frames.GO:
                break
            if failure is None and kind == frames.INPUT:
                fd = _create(json.loads(payload)["path"])
            elif failure is None and kind == frames.INPUT_DATA:
                frames.write_all(fd, payload)
        except OSError as e:
            failure = e
    if failure is not None:
        raise failure


def _create(path: str) -> int:
    target = os.path.join(DATA, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
