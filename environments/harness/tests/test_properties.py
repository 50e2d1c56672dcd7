"""What holds for anything that user code can make its kernel say, or leave behind.

scripts/fuzz.sh runs the same with other examples each time.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_execute import Bench, message, stdout
from test_place import GO, incoming, place, tree
from wire import Recorder

from harness.files import collector, inputs
from harness.job import prepare
from harness.stream import frames

# Text with lone surrogates, as JSON has them; numbers that JSON lacks, as Python reads them.
TEXT = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
# nbclient's own kinds, with the fields that it reads, and any others.
KINDS = [
    "stream", "display_data", "execute_result", "error", "update_display_data", "clear_output",
    "status", "execute_input", "execute_reply", "comm_open", "comm_msg", "comm_close",
]  # fmt: skip
FIELDS = [
    "name", "text", "data", "metadata", "transient", "execution_count", "ename", "evalue",
    "traceback", "wait", "execution_state", "comm_id", "target_name", "buffers",
]  # fmt: skip
CONTENT = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6) | st.fixed_dictionaries(
    {
        "data": st.dictionaries(TEXT, JSON, max_size=3),
        "metadata": JSON,
        "transient": st.fixed_dictionaries({"display_id": st.sampled_from(["a", "b", 1, None])}),
    }
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Return a message that is well-formed as the wire has it, and no further."""
    sent = message(draw(st.sampled_from(KINDS) | TEXT))
    sent["content"] = draw(CONTENT | JSON)
    sent["buffers"] = draw(st.lists(st.binary(max_size=9), max_size=2))
    return sent


@given(sent=st.lists(messages(), max_size=6))
def test_whatever_is_said_the_run_goes_on(sent: list[dict[str, Any]]) -> None:
    bench = Bench(budget=1 << 20)
    bench.take(stdout("before\n"))
    for one in sent:
        # The end of a cell is an exception of nbclient's own: no message is lost by it.
        if one["msg_type"] != "status":
            bench.take(one)
    bench.take(stdout("after\n"))
    first, *_, last = [e for e in bench.events() if e["kind"] == "output"]
    assert first["output"]["text"] == "before\n"
    assert last["output"]["text"].endswith("after\n")
    assert all(payload.isascii() for _, payload in bench.sent.frames)
    written = nbformat.writes(bench.nb).encode("utf-8", "replace")
    assert len(json.loads(written)["cells"]) == 1
    for report in bench.executor.dropped:
        assert len(report["reason"]) <= 200


@given(sent=st.lists(messages(), max_size=8), budget=st.integers(0, 2000))
def test_what_is_kept_is_within_the_cap(sent: list[dict[str, Any]], budget: int) -> None:
    bench = Bench(budget)
    for one in sent:
        if one["msg_type"] != "status":
            bench.take(one)
    assert bench.executor._budget <= budget
    kept = [o["text"] for o in bench.outputs if o["output_type"] == "stream"]
    assert sum(len(text.encode(errors="replace")) for text in kept) <= budget


NAME = st.binary(min_size=1, max_size=40).filter(
    lambda name: not set(name) & {0, ord("/")} and name not in (b".", b"..")
)


@given(names=st.lists(NAME, max_size=5, unique=True), folder=NAME)
def test_each_name_is_kept_or_reported(names: list[bytes], folder: bytes) -> None:
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector, "DATA", root)
        inside = os.path.join(os.fsencode(root), folder)
        os.mkdir(inside)
        for name in names:
            Path(os.fsdecode(os.path.join(inside, name))).write_bytes(name)
        sent = Recorder()
        collector.Collector(sent, {}, 100, 1 << 20).collect()
        found, skipped = sent.files(), sent.of(frames.SKIPPED)
    if is_utf8(folder):
        assert len(found) + len(skipped) == len(names)
    else:
        assert (found, len(skipped)) == ({}, 1)
    for path, content in found.items():
        assert path.encode() == os.path.join(folder, content)
    for report in skipped:
        report["path"].encode()  # it is UTF-8


def is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


PATH = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1)
    .filter(lambda name: name not in (".", ".."))
    .filter(lambda name: len(name.encode()) < 64),
    min_size=1,
    max_size=3,
).map("/".join)


@given(parts=st.lists(st.binary(max_size=50), max_size=4), path=PATH, other=PATH)
def test_input_files_arrive_exactly(parts: list[bytes], path: str, other: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "DATA", folder)
        sent = incoming("a/" + path, *parts) + incoming("b/" + other)
        place(sent + GO)
        assert tree(Path(folder)) == {"a/" + path: b"".join(parts), "b/" + other: b""}


@given(inputs=st.lists(TEXT, max_size=5), modules=st.lists(TEXT, max_size=5))
def test_shadow_says_yes_to_a_module_s_own_file(inputs: list[str], modules: list[str]) -> None:
    prepare.shadow(inputs, modules)
    for module in modules:
        if module and "/" not in module:
            assert prepare.shadow([*inputs, module + ".py"], modules)
            assert prepare.shadow([*inputs, module + "/__init__.py"], modules)
