"""Serves a sandbox, from its start to its job or session.

1. The service says what to import beforehand; a kernel is forked, as the user.
2. The harness says ready, and waits.
3. A job comes (single.py), or a session (session.py).

Its own failures are a FAILED frame and exit code 1.
"""

from __future__ import annotations

import json
import os

from harness import single
from harness.job.job import Job
from harness.job.prepare import BadEnvironmentError, BadPackagesError, first_kernel
from harness.kernel.choice import Choice
from harness.kernel.process import SERVICE
from harness.stream import frames
from harness.stream.awaiting import await_frame, next_frame
from harness.system.display import Display
from harness.system.privileges import KILL_SECONDS, kill_user


def main() -> None:
    # Only frames may go out through the stream: prints of libraries go to stderr.
    writer = frames.Writer(os.dup(1))
    os.dup2(2, 1)
    reader = frames.Reader(SERVICE)
    try:
        serve(reader, writer)
    except frames.StreamClosed:
        kill_user(KILL_SECONDS)
    except Exception as e:
        kill_user(KILL_SECONDS)
        report = {
            "message": f"{type(e).__name__}: {e}",
            "env": isinstance(e, BadEnvironmentError),
            "packages": isinstance(e, BadPackagesError),
        }
        writer.write_json(frames.FAILED, report)
        raise


def rehearse() -> None:
    """Do what can be done of a job before the fork that gets it."""
    from harness.job import rehearsal  # for cells alone

    rehearsal.rehearse()


def serve(reader: frames.Reader, writer: frames.Writer) -> None:
    choice = Choice.read(await_frame(reader, frames.WARM))
    kernel, early = first_kernel(choice, reader.fd)
    display = Display()
    writer.write_json(frames.READY, {"version": frames.VERSION})
    kind, payload = next_frame(reader, (frames.JOB, frames.SESSION), kernel.pid)
    if kind == frames.SESSION:
        from harness.session import Session, Terms  # which a run does without

        Session(reader.fd, writer, kernel, display, Terms.read(payload)).run()
    single.run(reader, writer, kernel, display, Job(**json.loads(payload)), early=early)
