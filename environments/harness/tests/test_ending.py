"""What a kernel has to do at its end, told from what there was before."""

from __future__ import annotations

import atexit
import subprocess
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.kernel.ending import MAX_BLOCKS, Ending


class Saved:
    """An object that a user wants to be finalized."""

    def __del__(self) -> None:
        pass


Saved.__module__ = "analysis"


@pytest.fixture
def ending() -> Ending:
    ending = Ending()
    ending.begin()
    assert ending.is_quiet()
    return ending


def open_file(tmp_path: Path) -> Iterator[None]:
    with (tmp_path / "a").open("w") as f:
        f.write("buffered")
        yield


def exit_handler(_: Path) -> Iterator[None]:
    atexit.register(print)
    yield
    atexit.unregister(print)


def finalizer(_: Path) -> Iterator[None]:
    kept = threading.Event()
    undo = weakref.finalize(kept, print)
    yield
    undo.detach()


def thread(_: Path) -> Iterator[None]:
    end = threading.Event()
    worker = threading.Thread(target=end.wait)
    worker.start()
    yield
    end.set()
    worker.join()


def child(_: Path) -> Iterator[None]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield
        process.kill()


def object_with_del(_: Path) -> Iterator[None]:
    kept = [Saved()]
    yield
    kept.clear()


def object_without_fields(_: Path) -> Iterator[None]:
    class Small(Saved):
        __slots__ = ()

    Small.__module__ = "analysis"
    kept = [Small()]
    yield
    kept.clear()


def suspended(_: Path) -> Iterator[None]:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec("def g():\n try: yield\n finally: pass\nx = g(); next(x)", space)
    yield
    space.clear()


def many_objects(_: Path) -> Iterator[None]:
    kept = [[i] for i in range(MAX_BLOCKS)]
    yield
    kept.clear()


@pytest.mark.parametrize(
    "leave",
    [
        open_file,
        exit_handler,
        finalizer,
        thread,
        child,
        object_with_del,
        object_without_fields,
        suspended,
        many_objects,
    ],
)
def test_what_is_left_to_do(leave: Any, ending: Ending, tmp_path: Path) -> None:
    left = leave(tmp_path)
    next(left)
    assert not ending.is_quiet()
    next(left, None)


def test_what_leaves_nothing(ending: Ending, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("closed")
    read = (tmp_path / "a").open()
    subprocess.run(["true"], check=True)
    daemon = threading.Thread(target=threading.Event().wait, daemon=True)
    daemon.start()
    assert ending.is_quiet()
    read.close()


class Eager(type):  # noqa: PLW1641 - on purpose
    """A class that has a say wherever it is looked at as people do."""

    def __getattr__(cls, name: str) -> Any:
        raise AssertionError(f"asked for {name}")

    def __eq__(cls, other: object) -> bool:  # and so it has no hash
        raise AssertionError("compared")


def test_code_of_the_user_is_not_asked(ending: Ending) -> None:
    class Watched(metaclass=Eager):
        pass

    kept = Watched()
    dead = weakref.proxy(Watched())
    assert ending.is_quiet()
    assert kept is not dead
