from __future__ import annotations

import os
import threading
import time
from dataclasses import fields
from pathlib import Path
from re import findall, search

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wire import Recorder, frame, stream

from harness.job.job import Job
from harness.job.listener import GENTLY
from harness.stream import frames

GO_SIDE = Path(__file__).parents[3] / "runner" / "internal" / "frame" / "frame.go"

PING = frame(frames.PING)

any_frame = st.tuples(
    st.integers(0, 255).map(lambda kind: bytes((kind,))), st.binary(max_size=2000)
)


def read_all(reader: frames.Reader) -> list[tuple[bytes, bytes]]:
    """Read until the service has closed the stream."""
    out = []
    while True:
        try:
            out.append(reader.read())
        except frames.StreamClosed:
            return out


@given(sent=st.lists(any_frame, max_size=8), step=st.integers(1, 9))
def test_round_trip_in_small_reads_and_writes(sent: list[tuple[bytes, bytes]], step: int) -> None:
    read, write = os.read, os.write
    with pytest.MonkeyPatch.context() as patch, stream() as (reader, service):
        patch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:step])))
        patch.setattr(os, "read", lambda fd, size: read(fd, min(size, step)))
        writer = frames.Writer(service)
        for kind, payload in sent:
            writer.write(kind, payload)
        os.close(service)
        assert read_all(reader) == sent


@pytest.mark.parametrize(
    "size", [0, 1, frames.CHUNK, frames.CHUNK + 1, frames.MAX_PAYLOAD - 1, frames.MAX_PAYLOAD]
)
def test_large_frames_wait_for_the_reader(size: int) -> None:
    payload = os.urandom(size)
    with stream() as (reader, service):
        sending = threading.Thread(
            target=lambda: frames.Writer(service).write(frames.EVENT, payload)
        )
        sending.start()
        assert reader.read() == (frames.EVENT, payload)
        sending.join()


def test_nothing_is_read_beyond_a_frame() -> None:
    with stream() as (reader, service):
        os.write(service, frame(frames.JOB, b"job") + PING)
        assert reader.read() == (frames.JOB, b"job")
        assert os.read(reader.fd, 100) == PING


@pytest.mark.parametrize(
    ("desc", "data", "message"),
    [
        ("version 0", b"\x00P\0\0\0\0", "version 0, not 1"),
        ("a later version", b"\x02P\0\0\0\0", "version 2, not 1"),
        ("text", b"GET / HTTP/1.1", "version 71, not 1"),
        ("one byte too many", b"\x01N\x00\x40\x00\x01", "a frame of 4194305 bytes"),
        ("4 GiB", b"\x01N\xff\xff\xff\xff", "a frame of 4294967295 bytes"),
    ],
)
def test_what_no_service_sends(desc: str, data: bytes, message: str) -> None:
    with stream() as (reader, service):
        os.write(service, data)  # and stays: nothing more is waited for
        with pytest.raises(frames.ProtocolError, match=message):
            reader.read()


@pytest.mark.parametrize("cut", range(len(frame(frames.CANCEL, b"why"))))
def test_closed_within_a_frame(cut: int) -> None:
    with stream(PING + frame(frames.CANCEL, b"why")[:cut]) as (reader, _):
        assert reader.read() == (frames.PING, b"")
        with pytest.raises(frames.StreamClosed):
            reader.read()


@given(data=st.binary(max_size=300), valid=st.lists(any_frame, max_size=3))
@example(data=b"\x01P\x00\x3f\xff\xff", valid=[])
def test_any_bytes_end_in_one_of_two_errors(data: bytes, valid: list[tuple[bytes, bytes]]) -> None:
    sent = b"".join(frame(kind, payload) for kind, payload in valid)
    with stream() as (reader, service):
        os.write(service, sent + data)
        os.close(service)
        assert [reader.read() for _ in valid] == valid
        with pytest.raises((frames.ProtocolError, frames.StreamClosed)):  # noqa: PT012
            for _ in range(len(data) + 1):
                reader.read()


@pytest.mark.parametrize(
    ("desc", "data"),
    [("nothing", b""), ("half a header", PING[:3]), ("half a payload", frame(b"J", b"{}")[:-1])],
)
def test_silence(desc: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "IDLE_SECONDS", 0.1)
    with stream() as (reader, service):
        os.write(service, data)
        start = time.monotonic()
        with pytest.raises(frames.StreamClosed):
            reader.read()
        assert 0.1 <= time.monotonic() - start < 5


def test_a_slow_service_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "IDLE_SECONDS", 0.5)
    data = frame(frames.JOB, b"slow")

    def drip(fd: int) -> None:
        for byte in data:
            time.sleep(0.08)
            os.write(fd, bytes((byte,)))

    with stream() as (reader, service):
        dripping = threading.Thread(target=drip, args=(service,))
        dripping.start()
        assert reader.read() == (frames.JOB, b"slow")
        dripping.join()


@pytest.mark.parametrize(
    ("desc", "value", "written"),
    [
        ("compact", {"a": [1, None, True]}, b'{"a":[1,null,true]}'),
        ("not ASCII", {"a": "ü😀"}, rb'{"a":"\u00fc\ud83d\ude00"}'),
        ("a lone surrogate", {"a": "\ud800"}, rb'{"a":"\ud800"}'),
        ("control characters", {"a": "\0\n\x1b\u202e"}, rb'{"a":"\u0000\n\u001b\u202e"}'),
    ],
)
def test_json(desc: str, value: object, written: bytes, sent: Recorder) -> None:
    sent.write_json(frames.EVENT, value)
    assert sent.frames == [(frames.EVENT, written)]


@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json_round_trip(value: object) -> None:
    sent = Recorder()
    sent.write_json(frames.EVENT, value)
    assert sent.of(frames.EVENT) == [value]
    assert sent.frames[0][1].isascii()


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (0, []),
        (1, [1]),
        (frames.CHUNK, [frames.CHUNK]),
        (frames.CHUNK + 1, [frames.CHUNK, 1]),
        (2 * frames.CHUNK + 5, [frames.CHUNK, frames.CHUNK, 5]),
    ],
)
def test_chunks(size: int, parts: list[int], sent: Recorder) -> None:
    content = os.urandom(size)
    sent.write_chunks(frames.NOTEBOOK_OUT, content)
    assert [len(payload) for _, payload in sent.frames] == parts
    assert b"".join(payload for _, payload in sent.frames) == content


def test_service_that_is_gone_when_written_to() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        frames.Writer(writing).write(frames.READY)
    os.close(writing)


def test_both_sides_speak_one_protocol() -> None:
    go = GO_SIDE.read_text()

    def number(name: str) -> int:
        found = search(rf"{name}\s+= (\d+)(?: << (\d+))?", go)
        assert found is not None, name
        return int(found[1]) << int(found[2] or 0)

    kinds = dict(findall(r"Kind(\w+)\s+Kind = '(.)'", go))
    assert {name: kind.encode() for name, kind in kinds.items()} == {
        "".join(part.capitalize() for part in name.split("_")): value
        for name, value in vars(frames).items()
        if name.isupper() and isinstance(value, bytes)
    }
    assert findall(r'Gently = "(.)"', go) == [GENTLY.decode()]
    assert number("Version") == frames.VERSION
    assert number("headerSize") == frames.HEADER.size
    assert number("ChunkSize") == frames.CHUNK <= number("MaxControl") <= frames.MAX_PAYLOAD
    job = go[go.index("type Job struct") : go.index("// Session makes")]
    assert findall(r'`json:"(\w+)"`', job) == [f.name for f in fields(Job)]
