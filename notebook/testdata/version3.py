"""Writes version3.golden.ipynb: what nbformat itself makes of version3.ipynb, without the
outputs and with the ids that Adopt gives.

    ../../.venv/bin/python version3.py
"""

import json
from pathlib import Path

import nbformat

HERE = Path(__file__).parent

book = nbformat.convert(nbformat.read(HERE / "version3.ipynb", as_version=nbformat.NO_CONVERT), 4)
for number, cell in enumerate(book.cells):
    cell.id = f"cell-{number}"
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
book.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
(HERE / "version3.golden.ipynb").write_text(json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
