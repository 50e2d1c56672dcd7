#!/usr/bin/python3 -IS
"""Shows files as outputs of the cell: display [-t MEDIA_TYPE] FILE…, or - for what is piped in."""

import os
import socket
import stat
import sys

USAGE = "usage: display [-t MEDIA_TYPE] FILE..., or - for standard input"
MAX_BYTES = 32 << 20  # as in shows.py
KINDS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".htm": "text/html",
    ".md": "text/markdown",
    ".tex": "text/latex",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".txt": "text/plain",
}


def show(name: str, kind: str) -> None:
    """Send one file to the kernel."""
    kind = kind or KINDS.get(os.path.splitext(name)[1].lower(), "")
    if not kind:
        raise ValueError("give its media type by -t")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as kernel:
        if name == "-":
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            if not stat.S_ISREG(os.stat(name).st_mode):
                raise ValueError("not a file")
            with open(name, "rb") as file:
                content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES >> 20} MiB cannot be shown")
        kernel.connect(os.environ.get("BASH_KERNEL_DISPLAY", ""))
        kernel.sendall(kind.encode() + b"\n" + content)
        kernel.shutdown(socket.SHUT_WR)
        answer = kernel.makefile().readline().strip()
    if answer != "ok":
        raise ValueError(answer or "the kernel does not take it")


def main() -> int:
    names, kind = sys.argv[1:], ""
    if names[:1] == ["-t"] and len(names) > 1:
        kind, names = names[1], names[2:]
    if not names:
        print(USAGE, file=sys.stderr)
        return 2
    failed = 0
    for name in names:
        try:
            show(name, kind)
        except (OSError, ValueError) as e:
            print(f"display: {name}: {e}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
