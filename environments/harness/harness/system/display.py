"""A virtual display that costs nothing until a program connects to it.

The harness listens where an X server would. At the first connection it starts
Xvfb as the user and hands it the socket, by systemd's protocol for that
(sd_listen_fds(3)), which Xvfb speaks.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess

from harness.system.places import DISPLAY
from harness.system.privileges import as_user, become_user

_SOCKET = "/tmp/.X11-unix/X99"
# bash, since dash knows descriptors of one digit only. The shell keeps its process id
# when it becomes Xvfb, which checks LISTEN_PID.
_START = (
    "exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1"
    " exec Xvfb {name} -screen 0 1280x1024x24 -nolisten tcp -noreset"
)


class Display:
    """The socket of a display that is not there yet."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._listen()

    def _listen(self) -> None:
        """Listen, with the user's rights alone: what is below /tmp can be a link of the user's."""
        self._listener: socket.socket | None = None
        listener = socket.socket(socket.AF_UNIX)
        try:
            with as_user():
                os.makedirs(os.path.dirname(_SOCKET), exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(_SOCKET)
                listener.bind(_SOCKET)
        except OSError:  # something else is in its place: there is no display
            listener.close()
            return
        listener.listen()
        self._listener = listener  # now, as others poll it

    def fileno(self) -> int:
        """Return the descriptor that is readable when a program connects, or -1."""
        return self._listener.fileno() if self._listener else -1

    def renew(self) -> None:
        """Listen again, where the X server was started and is no more."""
        if self._listener is None and (self._server is None or self._server.poll() is not None):
            self._listen()

    def start(self) -> None:
        """Start the X server, which answers whoever has connected."""
        if self._listener is None:
            return
        # No process may be left for it, by the user's own doing: the client is refused.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self._server = subprocess.Popen(
                ["/bin/bash", "-c", _START.format(fd=self.fileno(), name=DISPLAY)],
                pass_fds=(self.fileno(),),
                preexec_fn=become_user,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"]},
            )
        self._listener.close()
        self._listener = None
