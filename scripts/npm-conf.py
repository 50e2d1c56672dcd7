#!/usr/bin/env python3
"""Prints an .npmrc for an image's build: where this host's npm finds its packages.

Read as npm reads it (https://docs.npmjs.com/cli/configuring-npm/npmrc,
https://docs.npmjs.com/cli/using-npm/config), but without npm, which the host may lack:
the global file, the user's, the environment, each over the one before. Taken are
registries, of scopes too, what signs in to them, and proxies; what names this host's own
files (cafile, cache, prefix) is not for a build. Nothing is printed when nothing is set.
"""

import os
import re
import sys
from pathlib import Path

KEYS = ("registry", "proxy", "https-proxy", "noproxy", "strict-ssl")
PREFIX = "npm_config_"


def files() -> list[Path]:
    """npm's configuration files, the weakest first; a project's own is not of the host."""
    system = [
        os.environ.get(name) for name in ("NPM_CONFIG_GLOBALCONFIG", "npm_config_globalconfig")
    ]
    user = [os.environ.get(name) for name in ("NPM_CONFIG_USERCONFIG", "npm_config_userconfig")]
    found = [Path(name) for name in system if name]
    if not found:
        prefix = Path(os.environ.get("PREFIX") or sys.prefix)
        found = [
            Path("/etc/npmrc"),
            Path("/usr/local/etc/npmrc"),
            Path("/usr/etc/npmrc"),
            prefix / "etc/npmrc",
        ]
    return found + ([Path(name) for name in user if name] or [Path.home() / ".npmrc"])


def wanted(key: str) -> bool:
    """Whether a setting says where packages are, or signs in there."""
    return key in KEYS or key.endswith(":registry") or key.startswith("//")


def settings() -> dict[str, str]:
    """The effective settings, with ${NAME} replaced as npm does."""
    values: dict[str, str] = {}
    for path in files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            key, equals, value = (part.strip() for part in line.partition("="))
            if equals and key[0:1] not in ("", "#", ";") and wanted(key):
                values[key] = expanded(value.strip("'\""))
    for name, value in os.environ.items():
        if name.lower().startswith(PREFIX) and value:
            key = name[len(PREFIX) :]
            # The names of registries are kept, all others are as in a file.
            key = key if key.startswith(("//", "@")) else key.lower().replace("_", "-")
            if wanted(key):
                values[key] = value
    return values


def expanded(value: str) -> str:
    return re.sub(r"\$\{([^}?]+)\??\}", lambda m: os.environ.get(m[1], m[0]), value)


def main() -> None:
    for key, value in settings().items():
        print(f"{key}={value}")


if __name__ == "__main__":
    main()
