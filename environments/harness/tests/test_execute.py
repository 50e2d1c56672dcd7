"""Outputs as they come from the kernel: counted, capped, kept and passed on.

There is no kernel: its messages (jupyter_client, "Messaging in Jupyter") are made
here. Numbers as B9 are of adversarial.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from wire import Recorder

from harness.job import execute
from harness.stream import frames

OVERHEAD = execute.OUTPUT_OVERHEAD
OUTPUT_LIMIT = "output_limit"


class Clock:
    """A clock that only remembers."""

    def __init__(self, reason: str = "", kernel_ended: bool = False) -> None:
        self.reason, self.kernel_ended = reason, kernel_ended

    def stop(self, reason: str, grace: float = 0.0) -> None:
        assert not grace
        self.reason = self.reason or reason


class Bench:
    """An executor in the middle of the only cell of a notebook."""

    def __init__(self, budget: int = 1 << 30, clock: Clock | None = None) -> None:
        self.sent, self.clock = Recorder(), clock or Clock()
        self.nb = new_notebook(cells=[new_code_cell("", metadata={"execution": {}})])
        self.executor = execute.Executor.of(SimpleNamespace(), self.sent, False, budget)
        # What nbclient sets when it begins with a notebook, and with a cell.
        self.executor.nb, self.executor.clear_before_next_output = self.nb, False
        self.executor._clock = self.clock

    def take(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.executor.process_message(message, self.nb.cells[0], 0)

    @property
    def outputs(self) -> list[dict[str, Any]]:
        return self.nb.cells[0].outputs

    def text(self) -> str:
        """Return the text of the streams, which is the same in the notebook and the events."""
        kept = "".join(o["text"] for o in self.outputs if o["output_type"] == "stream")
        events = (e["output"] for e in self.events() if e["kind"] == "output")
        assert kept == "".join(o["text"] for o in events if o["output_type"] == "stream")
        return kept

    def events(self) -> list[dict[str, Any]]:
        return self.sent.of(frames.EVENT)


def message(kind: str, **content: Any) -> dict[str, Any]:
    header = {"msg_type": kind, "msg_id": "2", "date": "2026-01-01T00:00:00Z"}
    return {
        "header": header,
        "msg_type": kind,
        "parent_header": {"msg_id": "1"},
        "metadata": {},
        "content": content,
        "buffers": [],
    }


def stdout(text: str) -> dict[str, Any]:
    return message("stream", name="stdout", text=text)


def display(text: Any = "", mime: str = "text/plain", **more: Any) -> dict[str, Any]:
    return message("display_data", data={mime: text}, metadata={}, **more)


def update(text: str, display_id: str = "1") -> dict[str, Any]:
    return message(
        "update_display_data", data={"text/plain": text}, metadata={},
        transient={"display_id": display_id},
    )  # fmt: skip


def error(name: str, *traceback: str) -> dict[str, Any]:
    return message("error", ename=name, evalue="value", traceback=list(traceback))


def clear(wait: bool = False) -> dict[str, Any]:
    return message("clear_output", wait=wait)


SIZES = [
    ("ASCII", stdout("hello"), 5),
    ("no text", stdout(""), 0),
    ("two bytes a character", stdout("üü"), 4),
    ("four bytes a character", stdout("😀"), 4),
    ("a lone surrogate", stdout("a\ud800"), 2),
    ("a display", display("1234"), len('{"data": {"text/plain": "1234"}, "metadata": {}}')),
    ("JSON", message("display_data", data={"a": [1, "ü"]}), len('{"data": {"a": [1, "ü_"]}}')),
    (
        "a lone surrogate in data",
        message("display_data", data={"a": "\ud800"}),
        len('{"data": {"a": "?"}}'),
    ),
    ("an error", error("E", "12"), len('{"ename": "E", "evalue": "value", "traceback": ["12"]}')),
    ("nothing at all", message("display_data"), len("{}")),
]


@pytest.mark.parametrize(("desc", "sent", "size"), SIZES, ids=[desc for desc, *_ in SIZES])
def test_size(desc: str, sent: dict[str, Any], size: int) -> None:
    assert execute._size(sent["content"], sent["msg_type"]) == size


BIG = "x" * 1000


@pytest.mark.parametrize(
    ("desc", "sent"),
    [
        ("text", stdout(BIG)),
        ("data", display(BIG)),
        ("data that is no text", display([BIG])),
        ("metadata", message("display_data", data={}, metadata={"a": BIG})),
        ("a traceback", error("E", BIG)),
        ("a type's name", display(mime=BIG)),
        ("a display's id", update("", BIG)),
        ("an exception's name", error(BIG)),
    ],
)
def test_everything_that_is_kept_or_passed_on_is_counted(desc: str, sent: dict[str, Any]) -> None:
    bench = Bench(budget=500)
    bench.take(sent)
    assert bench.clock.reason == OUTPUT_LIMIT
    passed_on = [len(payload) for _, payload in bench.sent.frames]
    assert sum(passed_on) < len(BIG)


@dataclass(frozen=True)
class Cut:
    desc: str
    budget: int
    texts: list[str]
    kept: str
    limit: bool = True


CUTS = [
    Cut("far below", 10_000, ["one ", "two"], "one two", False),
    Cut("exactly at the cap", OVERHEAD + 5, ["hello"], "hello", False),
    Cut("exactly at the cap, in two", 2 * OVERHEAD + 5, ["he", "llo"], "hello", False),
    Cut("nothing for free", OVERHEAD, [""], "", False),
    Cut("the next one's overhead", OVERHEAD + 5, ["hello", ""], "hello"),
    Cut("the next one", OVERHEAD + 6, ["hello", "!?"], "hello!"),
    Cut("one byte too many", OVERHEAD + 200, ["x" * 300], "x" * (OVERHEAD + 200)),
    Cut("no budget at all", 0, ["x"], ""),
    Cut("between two characters", 100, ["ü" * 99], "ü" * 50),
    Cut("in a character of two bytes", 101, ["ü" * 99], "ü" * 50),
    Cut("in one of three", 101, ["€" * 99], "€" * 33),
    Cut("after one of its bytes", 101, ["😀" * 99], "😀" * 25),
    Cut("after two", 102, ["😀" * 99], "😀" * 25),
    Cut("after three", 103, ["😀" * 99], "😀" * 25),
    Cut("nothing comes after it", 100, ["x" * 99, "y", "z" * 99, ""], "x" * 99),
]


@pytest.mark.parametrize("case", CUTS, ids=lambda case: case.desc)
def test_cap(case: Cut) -> None:
    bench = Bench(case.budget)
    for text in case.texts:
        bench.take(stdout(text))
    assert bench.text() == case.kept
    assert bench.clock.reason == (OUTPUT_LIMIT if case.limit else "")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(texts=st.lists(TEXT, max_size=6), budget=st.integers(0, 600))
def test_cap_keeps_a_beginning(texts: list[str], budget: int) -> None:
    bench = Bench(budget)
    for text in texts:
        bench.take(stdout(text))
    whole = "".join(texts)
    assert whole.startswith(bench.text())
    assert len(bench.text().encode()) <= budget
    fits = sum(len(text.encode()) + OVERHEAD for text in texts) <= budget
    assert (bench.clock.reason == "") is fits
    if fits:
        assert bench.text() == whole


@pytest.mark.parametrize(
    "sent",
    [display("x" * 99), error("E", "x" * 99), update("x" * 99)],
    ids=lambda sent: sent["msg_type"],
)
def test_output_that_cannot_be_cut_is_left_out(sent: dict[str, Any]) -> None:
    bench = Bench(budget=OVERHEAD + 70)
    bench.take(stdout("before"), sent, stdout("after"))
    assert bench.text() == "before"
    assert [event["kind"] for event in bench.events()] == ["output"]
    assert bench.clock.reason == OUTPUT_LIMIT


def test_updates_and_what_is_cleared_count() -> None:
    sent = [display("1", transient={"display_id": "1"}), clear(), update("2"), display("3")]
    bench = Bench(budget=sum(execute._size(m["content"], m["msg_type"]) + OVERHEAD for m in sent))
    bench.take(*sent)
    assert bench.clock.reason == ""
    bench.take(display())
    assert bench.clock.reason == OUTPUT_LIMIT


def test_clearing_without_end() -> None:
    bench = Bench(budget=100 * OVERHEAD)
    bench.take(*[clear() for _ in range(1000)])
    assert bench.clock.reason == OUTPUT_LIMIT


def test_state_of_widgets_counts() -> None:
    bench = Bench(budget=1000)
    for i in range(100):
        state = {"_model_name": "a", "_model_module": "b", "value": BIG}
        data = {"target_name": "t", "comm_id": str(i), "data": {"state": state}}
        bench.take(message("comm_open", **data))
    bench.executor.set_widgets_metadata()
    assert len(nbformat.writes(bench.nb)) < 10_000


@pytest.mark.parametrize(
    "reason",
    [
        OUTPUT_LIMIT,
        "timeout",
        "cancelled",
    ],
)
def test_flood_while_the_run_is_ended_for_another_reason(reason: str) -> None:
    bench = Bench(budget=500, clock=Clock(reason))
    bench.take(*[stdout("x" * 100) for _ in range(1000)])
    assert len(bench.text()) <= 500
    assert len(bench.events()) <= 500 // OVERHEAD


def test_events() -> None:
    """Each change of the outputs is passed on as it is kept."""
    bench = Bench()
    bench.take(
        message("status", execution_state="busy"),
        message("execute_input", code="", execution_count=1),
        stdout("a\n"),
        display("1", transient={"display_id": "1"}),
        update("2"),
        error("ValueError", "line"),
    )
    assert [(e["kind"], e["cell"]) for e in bench.events()] == [
        ("output", 0),
        ("output", 0),
        ("update", 0),
        ("output", 0),
    ]
    out = [e["output"] for e in bench.events()]
    assert out[0] == {"output_type": "stream", "name": "stdout", "text": "a\n"}
    assert out[1] == {
        "output_type": "display_data",
        "data": {"text/plain": "1"},
        "metadata": {},
        "transient": {"display_id": "1"},
    }
    assert "transient" not in bench.outputs[1], "a notebook has no such thing"
    assert out[2]["data"] == {"text/plain": "2"}
    assert out[2]["transient"] == {"display_id": "1"}, "which outputs it is about"
    assert [o["output_type"] for o in bench.outputs] == ["stream", "display_data", "error"]
    assert bench.outputs[1]["data"] == {"text/plain": "2"}
    bench.take(clear())
    assert bench.events()[-1] == {"kind": "clear", "cell": 0}
    assert bench.outputs == []


def test_clear_that_waits_for_the_next_output() -> None:
    bench = Bench()
    bench.take(stdout("a\n"), clear(wait=True))
    assert [e["kind"] for e in bench.events()] == ["output"]
    bench.take(stdout("b\n"))
    assert [e["kind"] for e in bench.events()] == ["output", "clear", "output"]
    assert [o["text"] for o in bench.outputs] == ["b\n"]


def test_events_of_one_s_own_kinds_are_no_outputs() -> None:
    bench = Bench()
    bench.take(message("shutdown_reply"), message("execute_input", code="x"), message("nonsense"))
    assert (bench.events(), bench.outputs) == ([], [])


ODD = [
    ("text/plain as lines", display(["a\n", "b"])),
    ("JSON", display({"a": [1.5, None]}, "application/json")),
    ("an image that is no base64", display("!!", "image/png")),
    ("NUL, ANSI, carriage returns", stdout("\0\x1b[31m\r\b")),
    ("an image that is a number", display(5, "image/png")),
    ("an image that is a list", display([1], "image/png")),
    ("text that is None", display(None)),
    ("JSON in JSON in JSON", display([], "application/json")),
    ("data that is None", message("display_data", data=None)),
    ("data that is text", message("display_data", data="x")),
    ("a stream without a name", message("stream", text="x")),
    ("a stream without text", message("stream", name="stdout")),
    ("a stream of numbers", message("stream", name="x", text=5)),
    ("a stream of lists", message("stream", name=[], text=[])),
    ("a stream of truth values", message("stream", name=False, text=False)),
    ("a content that is a list", {**message("stream"), "content": []}),
    ("a kind that is a list", {**message("stream"), "msg_type": []}),
    ("an error without anything", message("error")),
    ("an update without data", message("update_display_data")),
    ("a state without a state", message("status")),
    ("a comm without data", message("comm_msg", comm_id="1")),
]


@pytest.mark.parametrize(
    "sent",
    [pytest.param(sent, id=desc) for desc, sent in ODD],
)
def test_whatever_a_kernel_sends_the_run_goes_on(sent: dict[str, Any]) -> None:  # B8, B9, C9
    bench = Bench()
    bench.take(stdout("before\n"), sent, message("stream", name="stderr", text="after\n"))
    assert bench.events()[0]["output"]["text"] == "before\n"
    assert bench.events()[-1]["output"]["text"] == "after\n"
    assert nbformat.reads(nbformat.writes(bench.nb), as_version=4).cells


@pytest.mark.parametrize("depth", [100, 600])
def test_nested_json_can_be_written(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    bench = Bench()
    bench.take(display(nested, "application/json"))
    assert nbformat.writes(bench.nb)


@dataclass(frozen=True)
class Failure:
    desc: str
    content: dict[str, Any]
    errors: list[str]
    tags: list[str] = field(default_factory=list)


FAILURES = [
    Failure("an exception", {"ename": "ValueError"}, ["ValueError"]),
    Failure("one that was expected", {"ename": "ValueError"}, [], ["raises-exception"]),
    Failure("other tags", {"ename": "ValueError"}, ["ValueError"], ["hide"]),
    Failure("no name", {}, [""]),
    Failure("a name that is none", {"ename": 5}, ["5"]),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.desc)
def test_errors_are_noted(case: Failure) -> None:
    executor = Bench().executor
    cell = new_code_cell("", metadata={"tags": case.tags} if case.tags else {})
    executor.on_cell_error(cell=cell, cell_index=0, execute_reply={"content": case.content})
    assert executor.errors == case.errors


@pytest.mark.parametrize("reason", ["timeout", "cancelled", OUTPUT_LIMIT])
def test_no_cell_after_the_end(reason: str) -> None:
    bench = Bench(clock=Clock(reason))
    cell = bench.nb.cells[0]
    assert bench.executor.preprocess_cell(cell, {}, 0) == (cell, {})
    assert bench.outputs == []


@pytest.mark.parametrize(
    ("desc", "reply", "ended"),
    [
        ("an exit with code 0", {"status": "ok", "ended": True}, True),
        ("an end of a cell", {"status": "ok"}, False),
        ("no truth value", {"status": "ok", "ended": 1}, False),
    ],
)
def test_no_cell_after_an_exit(desc: str, reply: dict[str, Any], ended: bool) -> None:
    executor = Bench().executor
    executor.on_cell_executed(cell=None, cell_index=0, execute_reply={"content": reply})
    assert executor.ended is ended
    if ended:
        cell = new_code_cell("1")
        assert executor.preprocess_cell(cell, {}, 1) == (cell, {})


def test_errors_that_are_shown() -> None:
    shown = [new_output("error", ename=name, evalue="", traceback=[]) for name in ("A", "B")]
    text = new_output("stream", text="x")
    nb = new_notebook(
        cells=[
            new_markdown_cell("x"),
            new_code_cell("", outputs=[text, *shown]),
            new_code_cell("", outputs=shown, metadata={"tags": ["raises-exception"]}),
            new_code_cell("", outputs=[text]),
        ]
    )
    assert execute.errors_shown(nb) == ["A", "B"]


def test_no_cell_for_a_kernel_that_has_ended() -> None:
    bench = Bench(clock=Clock(kernel_ended=True))
    with pytest.raises(DeadKernelError):
        bench.executor.preprocess_cell(bench.nb.cells[0], {}, 0)


@pytest.mark.parametrize("waiting", [0, 3])
def test_abort_takes_in_what_was_sent_before(waiting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "DRAIN_SECONDS", 0.0)
    done: list[str] = []
    ready = [1] * waiting + [0]

    async def poll(_: int) -> int:
        done.append("poll")
        return ready.pop(0)

    executor, loop = Bench().executor, ensure_event_loop()
    socket = SimpleNamespace(poll=poll)
    executor._kernel.client = SimpleNamespace(iopub_channel=SimpleNamespace(socket=socket))
    executor.task_poll_for_reply = SimpleNamespace(cancel=lambda: done.append("cancel"))
    executor.abort()
    assert done == [], "only the loop's own thread acts"
    for _ in range(20):
        loop.run_until_complete(asyncio.sleep(0))
    assert done == ["poll"] * (waiting + 1) + ["cancel"]


def test_an_update_counts_for_each_output_that_it_changes() -> None:
    bench = Bench(budget=20_000)
    bench.take(*[display("x", transient={"display_id": "a"}) for _ in range(10)])
    assert bench.clock.reason == ""
    bench.take(update("y" * 5_000, "a"))
    assert bench.clock.reason == OUTPUT_LIMIT
