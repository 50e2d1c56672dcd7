"""Programs of kernelspecs that can be forked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec

from harness.kernel import program


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def spec(folder: Path, name: str, metadata: dict[str, Any]) -> KernelSpec:
    (folder / f"{name}.py").write_text("import notebox_beside\ndef main(): ...\n")
    (folder / "notebox_beside.py").write_text("")
    return KernelSpec(
        argv=["/opt/venv/bin/python3", "-Es", f"{folder}/{name}.py", "{connection_file}"],
        metadata=metadata,
    )


def test_what_says_so_is_imported(tmp_path: Path) -> None:
    kernel = spec(tmp_path, "notebox_program", {program.FORK: True})
    assert not program.is_imported(kernel)
    program.import_ahead(kernel)
    assert program.is_imported(kernel)
    assert callable(sys.modules["notebox_program"].main)


def test_another_is_not(tmp_path: Path) -> None:
    kernel = spec(tmp_path, "notebox_other", {})
    program.import_ahead(kernel)
    assert "notebox_other" not in sys.modules
    sys.modules["notebox_other"] = sys.modules[__name__]
    try:
        assert not program.is_imported(kernel), "a module that has its name by chance"
    finally:
        del sys.modules["notebox_other"]
