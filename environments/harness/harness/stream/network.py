"""The sandbox's network: a proxy on its loopback, whose other end is the service."""

from __future__ import annotations

import contextlib
import os
import socket

from harness.system.places import HARNESS

PORT = 3128  # what proxies have; no kernel's connection is below 32768
BACKLOG = 512  # connections that wait

_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
# What OpenSSL, and with it most programs, requests, pip, curl, git and Node look at.
_TRUST = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)


class Proxy:
    """What programs find. Its listener takes connections from the start."""

    def __init__(self, ca: str = "") -> None:
        self._ca = ca
        self.listener = socket.create_server(("127.0.0.1", PORT), backlog=BACKLOG)

    def environment(self) -> dict[str, str]:
        """Return the variables by which programs find the proxy."""
        proxy = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        names = ("http_proxy", "https_proxy", "all_proxy")
        env = {n: proxy for name in names for n in (name, name.upper())}
        env |= dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
        if self._ca:
            env |= dict.fromkeys(_TRUST, self._write_bundle())
        return env

    def _write_bundle(self) -> str:
        """Write the image's certificates and the service's into one file; return its name."""
        path = f"{HARNESS}/ca.pem"
        with open(path, "wb") as out:
            with contextlib.suppress(FileNotFoundError), open(_BUNDLE, "rb") as own:
                out.write(own.read())
            out.write(b"\n" + self._ca.encode())  # comments are any text
        os.chmod(path, 0o644)
        return path
