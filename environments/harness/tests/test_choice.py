"""Which kernel a sandbox has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.kernel.choice import PACKAGES, Choice


def test_as_the_service_says() -> None:
    sent = {
        "kernel": "ir",
        "modules": [],
        "cells": ["library(ggplot2)"],
        "interrupts": True,
        "finishes": False,
        "env": {"R_LIBS": "/opt/dependencies/r"},
    }
    choice = Choice.read(json.dumps(sent).encode())
    assert (choice.kernel, choice.cells, choice.finishes) == ("ir", ["library(ggplot2)"], False)
    assert not choice.is_python
    assert Choice().is_python, "the harness's own"


def test_what_it_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError):
        Choice.read(b'{"kernel": "ir", "image": "x"}')


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    choice = Choice(env={"PATH": "/opt/dependencies/bin:/usr/bin", "A": "image"})
    env = choice.environment({"A": "request"})
    assert (env["PATH"], env["A"]) == ("/opt/dependencies/bin:/usr/bin", "request")
    assert env["HOME"] == "/tmp/home"
    assert choice.env["A"] == "image", "one request's are not the next one's"
    joined = choice.environment({"PATH": "/mnt/data/bin", "PYTHONPATH": "/mnt/data"})
    assert joined["PATH"] == "/mnt/data/bin:/opt/dependencies/bin:/usr/bin"
    assert joined["PYTHONPATH"] == "/mnt/data"
    assert Choice(env={"R_LIBS": "/a"}).environment({"R_LIBS": ""})["R_LIBS"] == "/a"


def test_modules_of_dependencies(tmp_path: Path) -> None:
    for name in ("polars", "polars-1.0.dist-info", "py_yaml-6.dist-info", "__pycache__"):
        (tmp_path / name).mkdir()
    (tmp_path / "pathlib.py").touch()  # the standard library's comes first
    for name in ("six.py", "_fast.cpython-313-x86_64-linux-gnu.so"):
        (tmp_path / name).touch()
    assert Choice(env={PACKAGES: str(tmp_path)}).libraries() == {"polars", "six", "_fast"}
    assert Choice(env={PACKAGES: "/not/there"}).libraries() == set()
    assert Choice().libraries() == set()
