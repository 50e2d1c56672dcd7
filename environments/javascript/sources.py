"""The lines of cells, as Deno prints a cell's code anew before it runs it.

1. A comment gives each cell a name, which Deno keeps in the stack of an error (prelude.js).
2. For an error, Deno prints the cell's code once more, now with a source map.
3. With it the stack gets the cell's own lines, and the line at which the error left the
   cell comes first: notebook/traceback.go reads it there.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

MAX_KEPT = 8 << 20  # characters of all cells; the earliest go first
MAX_FRAMES = 50  # whose lines are looked for; Deno has ten if code does not ask for more
PRINT_SECONDS = 10.0  # for Deno to print a cell; a busy host needs a tenth of a second
_FRAME = re.compile(r"(?<=[ (])cell_(\d{1,9}):(\d{1,9}):(\d{1,9})(?=\)?$)")
_NAME = re.compile(r"^//# sourceURL=cell_\d+\n|(?<=\{)\n//# sourceURL=cell_\d+\n")
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# What Deno tries, in this order.
_TYPES = ("ts", "tsx")
# Deno's kernel keeps imports that nothing uses.
_CONFIG = '{"compilerOptions": {"verbatimModuleSyntax": true}}'


class Sources:
    """The cells of one kernel."""

    def __init__(self, deno: str) -> None:
        self._deno = deno
        self._cells: dict[int, _Cell] = {}  # by their execution count

    def name(self, count: int, code: str) -> str:
        """Return a cell's code with its name in it."""
        cell = self._cells[count] = _Cell(count, code)
        kept = sum(len(c.code) for c in self._cells.values())
        while kept > MAX_KEPT:
            kept -= len(self._cells.pop(next(iter(self._cells))).code)
        return cell.named

    def place(self, error: dict[str, Any], count: int) -> dict[str, Any]:
        """Return the error of a cell with the lines of cells in its traceback."""
        head: list[str] = []

        def own(frame: re.Match[str]) -> str:
            number, line, column = map(int, frame.groups())
            cell = self._cells.get(number)
            if cell is None or (found := cell.own(self._deno, line, column)) is None:
                return frame[0]
            line, column = found
            if number == count and not head:
                head.extend((f"Cell In[{count}], line {line}", f"{line} | {cell.line(line)}"))
            return f"Cell In[{number}]:{line}:{column}"

        traceback = error.get("traceback")
        if not isinstance(traceback, list):
            return error
        frames = 0
        for i, text in enumerate(traceback):
            if isinstance(text, str) and text.startswith("    at ") and frames < MAX_FRAMES:
                frames += 1
                traceback[i] = _FRAME.sub(own, text)
        return error | {"traceback": [*head, *traceback]}


def unnamed(code: str) -> str:
    """Return the code of a cell without the name that it was given."""
    return _NAME.sub("", code, count=1)


class _Cell:
    """A cell's code, and where what is printed of it comes from."""

    def __init__(self, count: int, code: str) -> None:
        self.code = code
        # Deno takes code that begins with { for an object if it can, and keeps no comment
        # that comes last.
        opening = re.match(r"\s*\{", code)
        self._at = opening.end() if opening else 0
        self._name = ("\n" if opening else "") + f"//# sourceURL=cell_{count}\n"
        self.named = code[: self._at] + self._name + code[self._at :]
        self._map: list[list[tuple[int, int, int]]] | None = None

    def line(self, number: int) -> str:
        return self.code.split("\n")[number - 1]

    def own(self, deno: str, line: int, column: int) -> tuple[int, int] | None:
        """Return the line and column of the cell that these of what is printed come from."""
        if self._map is None:
            self._map = _map(deno, self.named)
        if not 0 < line <= len(self._map) or not (parts := self._map[line - 1]):
            return None
        at = bisect.bisect_right(parts, column - 1, key=lambda part: part[0])
        _, line, column = parts[max(0, at - 1)]
        # In the code without the name.
        lines = self.named.split("\n")
        offset = sum(len(text) + 1 for text in lines[:line]) + min(column, len(lines[line]))
        if offset >= self._at + len(self._name):
            offset -= len(self._name)
        begin = self.code.rfind("\n", 0, offset) + 1
        return self.code.count("\n", 0, offset) + 1, offset - begin + 1


def _map(deno: str, code: str) -> list[list[tuple[int, int, int]]]:
    """Return, for each line of what Deno prints, the columns at which something of the
    code begins, each with the line and column of the code; nothing if Deno says no.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        for kind in _TYPES:
            with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, KeyError):
                Path(folder, "deno.json").write_text(_CONFIG)
                source = Path(folder, f"cell.{kind}")
                source.write_text(code, encoding="utf-8", errors="replace")
                subprocess.run(
                    [deno, "transpile", "--source-map=separate", "--output=cell.js", source.name],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=PRINT_SECONDS,
                    check=True,
                )
                return decode(json.loads(Path(folder, "cell.js.map").read_bytes())["mappings"])
    return []


def decode(mappings: str) -> list[list[tuple[int, int, int]]]:
    """Decode the mappings of a source map with one source. Source: ECMA-426."""
    lines = []
    line = column = 0  # of the code; they go on from line to line
    for group in mappings.split(";"):
        parts = []
        printed = 0
        for segment in filter(None, group.split(",")):
            forward, *source = _vlq(segment)
            printed += forward
            if source:
                line += source[1]
                column += source[2]
                parts.append((printed, line, column))
        lines.append(parts)
    return lines


def _vlq(text: str) -> list[int]:
    """Decode base64 digits of six bits: one goes on, the lowest of a number is its sign."""
    numbers = []
    value = shift = 0
    for digit in map(_DIGITS.index, text):
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return numbers
