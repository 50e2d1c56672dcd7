#!/usr/bin/env python3
"""Prints a pip.conf for an image's build: where this host's pip finds its packages.

Read as pip reads it (https://pip.pypa.io/en/stable/topics/configuration/), but without
pip, which the host may lack. What names this host's own files (find-links, cert,
cache-dir) is not for a build, and nothing is printed when nothing is set.
"""

import configparser
import os
import sys
from pathlib import Path

KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy")
SECTIONS = ("global", "install")  # the later wins, and a later file over both


def files() -> list[Path]:
    """pip's configuration files, the weakest first."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    site = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    found = [Path(directory) / "pip/pip.conf" for directory in site.split(":")]
    found += [
        Path("/etc/pip.conf"),
        Path("/Library/Application Support/pip/pip.conf"),
        home / ".pip/pip.conf",
        home / "Library/Application Support/pip/pip.conf",
        config / "pip/pip.conf",
        Path(sys.prefix) / "pip.conf",
    ]
    return found


def settings() -> dict[str, str]:
    """The effective value of each of KEYS that has one."""
    override = os.environ.get("PIP_CONFIG_FILE")
    paths = [] if override == os.devnull else files()
    if override:
        paths.append(Path(override))
    values: dict[str, str] = {}
    for path in paths:
        parser = configparser.RawConfigParser()
        parser.read(path)  # a file that is not there is no error
        for section in SECTIONS:
            for key in KEYS:
                if parser.has_option(section, key):
                    values[key] = parser.get(section, key)
    for key in KEYS:
        if value := os.environ.get("PIP_" + key.upper().replace("-", "_")):
            values[key] = value
    return values


def main() -> None:
    values = settings()
    if values:
        print("[global]")
    for key, value in values.items():
        print(key, "=", "\n    ".join(value.split()))


if __name__ == "__main__":
    main()
