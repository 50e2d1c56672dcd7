"""What the relay reads of Deno's kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import denorelay


@pytest.fixture
def pipe(tmp_path: Path) -> denorelay.RecordPipe:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return denorelay.RecordPipe(str(path))


def test_records(pipe: denorelay.RecordPipe) -> None:
    assert pipe.read() is None
    message = b'{"msg_type":"display_data","content":{"data":{}},"metadata":{}}'
    os.write(pipe.fd, b"stdout 2\na\nstdout 2\nb\nstderr 1\nc")
    os.write(pipe.fd, b"message %d\n%sstdout 0\nstdout 1\nd" % (len(message), message))
    assert pipe.read() == [
        ("stream", {"name": "stdout", "text": "a\nb\n"}),
        ("stream", {"name": "stderr", "text": "c"}),
        ("display_data", {"data": {}}),
        ("stream", {"name": "stdout", "text": "d"}),
    ]
    assert pipe.read() is None


def test_a_record_in_pieces(pipe: denorelay.RecordPipe) -> None:
    text = "".join(
        content["text"]
        for byte in b"stdout 6\n\xc3\xa4\xe2\x82\xac!"
        if os.write(pipe.fd, bytes([byte]))
        for _, content in pipe.read() or []
    )
    assert text == "ä€!"


@pytest.mark.parametrize(
    ("desc", "code", "said", "line", "shown"),
    [
        (
            "on the guard's line",
            "let a = ;",
            "SyntaxError: Expression expected\n  |\n    at data:text/plain;base64,a=:1:47",
            1,
            ["1 | let a = ;", "  |         ^"],
        ),
        (
            "further down",
            "let a = 1;\nlet a = 2",
            "Identifier 'a' has already been declared at data:application/typescript;base64,bG:2:5",
            2,
            ["2 | let a = 2", "  |     ^"],
        ),
    ],
)
def test_load_error(desc: str, code: str, said: str, line: int, shown: list[str]) -> None:
    error = denorelay.load_error(code, said, "SyntaxError", 7)
    assert error is not None
    assert error["ename"] == "SyntaxError"
    assert "data:" not in error["evalue"]
    assert error["traceback"] == [
        f"Cell In[7], line {line}",
        *shown,
        f"SyntaxError: {error['evalue']}",
    ]


def test_what_is_no_load_error() -> None:
    assert denorelay.load_error("1", "0", "Error", 1) is None
