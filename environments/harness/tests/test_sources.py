"""Lines of cells in errors of Deno's."""

from __future__ import annotations

from typing import Any

import pytest

import sources

DENO = "/usr/local/bin/deno"
CODE = "let x: number = 1;\n\n\nfunction fail() {\n\n  throw new RangeError('far');\n}\n"
# What Deno 2.9 says of CODE with its name in it, which it prints in five lines.
MAPPINGS = "AAAA,oBAAoB;AACpB,IAAI,IAAY;AAGhB,SAAS;EAEP,MAAM,IAAI,WAAW;AACvB"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the code that Deno is asked about; it says MAPPINGS of each."""
    asked: list[str] = []

    def told(_: str, code: str) -> list[list[tuple[int, int, int]]]:
        asked.append(code)
        return sources.decode(MAPPINGS)

    monkeypatch.setattr(sources, "_map", told)
    return asked


def error(*frames: str) -> dict[str, Any]:
    return {"ename": "E", "evalue": "m", "traceback": ["E: m", *(f"    at {f}" for f in frames)]}


def test_the_line_of_the_cell_comes_first(asked: list[str]) -> None:
    cells = sources.Sources(DENO)
    named = cells.name(1, CODE)
    assert named == "//# sourceURL=cell_1\n" + CODE
    assert sources.unnamed(named) == CODE
    placed = cells.place(error("fail (cell_1:4:9)", "cell_1:6:1", "x (ext:core/1.js:4:9)"), 1)
    assert placed["traceback"] == [
        "Cell In[1], line 6",
        "6 |   throw new RangeError('far');",
        "E: m",
        "    at fail (Cell In[1]:6:9)",
        "    at cell_1:6:1",  # no line of what Deno printed
        "    at x (ext:core/1.js:4:9)",
    ]
    assert asked == [named]  # once for all frames


def test_an_earlier_cell_is_not_the_errors(asked: list[str]) -> None:
    cells = sources.Sources(DENO)
    cells.name(1, CODE)
    cells.name(2, "fail()")
    placed = cells.place(error("fail (cell_1:4:9)"), 2)
    assert placed["traceback"] == ["E: m", "    at fail (Cell In[1]:6:9)"]
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("desc", "code", "named"),
    [
        ("an object or a block", "\n {a: 1}", "\n {\n//# sourceURL=cell_3\na: 1}"),
        ("nothing", "", "//# sourceURL=cell_3\n"),
        ("a name of its own", "//# sourceURL=me\n1", "//# sourceURL=cell_3\n//# sourceURL=me\n1"),
    ],
)
def test_names(desc: str, code: str, named: str) -> None:
    assert sources.Sources(DENO).name(3, code) == named
    assert sources.unnamed(named) == code


def test_code_without_a_name_stays() -> None:
    code = "let a = 1\n//# sourceURL=cell_1\n"
    assert sources.unnamed(code) == code


@pytest.mark.parametrize(
    ("desc", "wrong"),
    [
        ("no traceback", {"ename": "E", "evalue": "m"}),
        ("a traceback that is none", {"traceback": "    at cell_1:4:9"}),
        ("frames that are none", {"traceback": [None, 1, "cell_1:4:9", "    at cell_1"]}),
        ("a cell that is not there", {"traceback": ["    at cell_7:4:9"]}),
        ("too long a number", {"traceback": [f"    at cell_1:{'9' * 5000}:1"]}),
        ("a line that is not there", {"traceback": ["    at cell_1:999999999:1"]}),
        ("a line of nothing", {"traceback": ["    at cell_1:0:0"]}),
    ],
)
def test_what_has_no_line_stays(asked: list[str], desc: str, wrong: dict[str, Any]) -> None:
    cells = sources.Sources(DENO)
    cells.name(1, CODE)
    assert cells.place(dict(wrong), 1) == wrong


def test_only_so_much_code_is_kept(asked: list[str]) -> None:
    cells = sources.Sources(DENO)
    cells.name(1, CODE)
    cells.name(2, "x" * sources.MAX_KEPT)
    placed = cells.place(error("fail (cell_1:4:9)"), 1)
    assert placed["traceback"] == ["E: m", "    at fail (cell_1:4:9)"]


def test_no_deno_is_no_line() -> None:
    cells = sources.Sources("/no/deno")
    cells.name(1, CODE)
    assert cells.place(error("cell_1:4:9"), 1)["traceback"] == ["E: m", "    at cell_1:4:9"]


def test_decode() -> None:
    # Two lines, the first with columns that go back, as a large VLQ; a part without a source.
    assert sources.decode("AAAA,gCAgBhB;;AACA,C") == [
        [(0, 0, 0), (32, 16, -16)],
        [],
        [(0, 17, -16)],
    ]
