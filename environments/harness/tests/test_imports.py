"""The harness's modules import each other in one direction, as harness/__init__.py says."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in [*ROOT.glob("*.py"), *ROOT.glob("harness/**/*.py")]
}


def imported(path: Path) -> set[str]:
    """Return the modules of the harness that one imports, also later or for its types alone."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
            names.add(str(node.module))
    return names & MODULES.keys()


IMPORTS = {name: imported(path) for name, path in MODULES.items()}


def test_no_circle() -> None:
    TopologicalSorter(IMPORTS).prepare()  # raises CycleError, which names the circle


def test_folders_import_from_those_before_them() -> None:
    text = MODULES["harness.__init__"].read_text()
    order = re.findall(r"^    (\w+) {2,}", text, re.M)
    assert set(order) == {path.parent.name for path in ROOT.glob("harness/*/__init__.py")}
    place = {folder: i for i, folder in enumerate(order)}

    def rank(name: str) -> int:
        parts = name.split(".")
        return place[parts[1]] if len(parts) > 2 else len(order)

    assert [
        (name, other)
        for name, others in IMPORTS.items()
        for other in others
        if rank(other) > rank(name)
    ] == []
