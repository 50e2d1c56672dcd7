"""A notebook's kernel, run as the user: launch.py CONNECTION_FILE.

It is ipykernel's own, changed in how it publishes output and in nothing else.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys


def main() -> None:
    connection_file = sys.argv[1]
    del sys.path[0]  # the harness's modules are not there for the user
    # Like a new user's: the image keeps caches there that take long to make.
    shutil.copytree("/etc/skel", os.environ["HOME"], dirs_exist_ok=True)

    launcher = importlib.util.find_spec("ipykernel_launcher")
    assert launcher is not None
    assert launcher.origin is not None
    # As nbclient starts it, which keeps the history of cells out of the user's home.
    history = "--HistoryManager.hist_file=:memory:"
    sys.argv = [launcher.origin, "-f", connection_file, history]
    run_kernel()


def run_kernel() -> None:
    """Run ipykernel with output that is neither dropped nor held back."""
    import zmq
    from ipykernel import iostream, kernelapp
    from jupyter_client.jsonutil import json_default
    from jupyter_client.session import json_packer

    max_message = 1 << 20  # characters of one stream message: a cap can act in between

    class OutStream(iostream.OutStream):
        flush_interval = 0.02  # seconds, instead of 0.2: a reader sees lines as they come

        def flush(self) -> None:
            super().flush()
            # What was flushed is with ZeroMQ's thread, which shall have its turn
            # before a crash in the next line.
            os.sched_yield()

        def write(self, string: str) -> int | None:  # type: ignore[override]
            if not isinstance(string, str) or len(string) <= max_message:
                return super().write(string)
            for start in range(0, len(string), max_message):
                super().write(string[start : start + max_message])
                self.flush()
            return len(string)

    OutStream.__module__, OutStream.__qualname__ = iostream.__name__, "OutStream"
    setattr(iostream, "OutStream", OutStream)  # noqa: B010 - the name that the kernel looks up

    def pack(message: object) -> bytes:
        # Lone surrogates, which UTF-8 has no place for, travel as escapes: otherwise the
        # whole message is lost.
        try:
            return json_packer(message)
        except UnicodeEncodeError:
            return json.dumps(message, default=json_default, allow_nan=False).encode()

    # The name is what configuration is stored under.
    class IPKernelApp(kernelapp.IPKernelApp):
        def init_iopub(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
            # A publisher drops what its reader has not taken yet, unless told to wait.
            context.setsockopt(zmq.XPUB_NODROP, 1)
            super().init_iopub(context)
            self.session.pack = pack

    IPKernelApp.launch_instance()


if __name__ == "__main__":
    main()
