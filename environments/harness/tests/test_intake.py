"""What a session takes out of its stream, however that is cut into pieces."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import frame

from harness.stream import frames
from harness.stream.intake import ADOPTED, Intake

TOKEN, NONCE = os.urandom(32), os.urandom(32)
PING, JOB = frame(frames.PING), frame(frames.JOB, {"notebook_bytes": 1})


def taken(data: bytes, size: int) -> list[tuple[bytes, bytes]]:
    """Return what comes of data that arrives in pieces of this size."""
    intake = Intake(TOKEN)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return [found for part in parts for found in intake.take(part)]


@pytest.mark.parametrize("size", [1, 2, 7, 31, 32, 33, 1 << 20])
@pytest.mark.parametrize(
    ("desc", "sent", "found"),
    [
        ("frames", PING + JOB, [PING, JOB]),
        ("attached anew", TOKEN + NONCE, [None]),
        ("after frames", PING + TOKEN + NONCE + JOB, [PING, None, JOB]),
        ("in the middle of a header", JOB[:3] + TOKEN + NONCE + PING, [None, PING]),
        ("in the middle of a frame", JOB[:-2] + TOKEN + NONCE + PING, [None, PING]),
        ("in the middle of a large one", b"\1N\0\1\0\0" + TOKEN + NONCE + PING, [None, PING]),
        ("twice", TOKEN + NONCE + TOKEN + NONCE, [None, None]),
        ("after half a token", TOKEN[:16] + TOKEN + NONCE + PING, [None, PING]),
        ("after what is no frame", b"\7junk" + PING + TOKEN + NONCE + PING, [None, PING]),
        ("what is no frame", b"\1P\xff\xff\xff\xff" + PING, []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_intake(desc: str, sent: bytes, found: list[bytes | None], size: int) -> None:
    got = [
        NONCE if kind == ADOPTED else frame(kind, payload) for kind, payload in taken(sent, size)
    ]
    # What came before the token may be passed over, as nobody waits for it any more.
    want = [NONCE if part is None else part for part in found]
    if NONCE in want:
        got, want = got[got.index(NONCE) :], want[want.index(NONCE) :]
    assert got == want


@given(st.binary(max_size=200), st.lists(st.integers(1, 40), min_size=1, max_size=50))
def test_token_is_found_after_anything(before: bytes, sizes: list[int]) -> None:
    intake, data, got = Intake(TOKEN), before + TOKEN + NONCE + PING, []
    while data:
        size = sizes[len(data) % len(sizes)]
        got += intake.take(data[:size])
        data = data[size:]
    assert got[-2:] == [(ADOPTED, NONCE), (frames.PING, b"")]


def test_token_that_could_be_guessed() -> None:
    with pytest.raises(ValueError, match="5 bytes"):
        Intake(b"short")
