"""The bash kernel and its shell, with a real bash."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

import shell as shells
from shell import Ended, Report, Shell
from streams import Streams

GUARD_SECONDS = 20  # for one cell, on a busy host
KERNEL = Path(shells.__file__).parent


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + GUARD_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.0005)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Nobody:
    """Stands in for what shows outputs."""

    def __init__(self) -> None:
        self.ends = os.pipe()

    def fileno(self) -> int:
        return self.ends[0]

    def serve(self) -> None:
        raise AssertionError


class Cells:
    """Runs cells as the kernel does."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.streams = Streams()
        self.parts: list[tuple[str, str, float]] = []
        self.side = Nobody()
        self.ran = 0
        self.start()

    def start(self) -> None:
        self.shell = Shell(self.streams, dict(os.environ), self.folder)

    def run(self, code: str) -> Ended:
        self.parts = []
        self.streams.begin(lambda n, t: self.parts.append((n, t, time.monotonic())))
        guard = threading.Timer(GUARD_SECONDS, self.kill)
        guard.start()
        try:
            ended = self.shell.run(code, self.side)
        finally:
            self.ran += 1
            guard.cancel()
            guard.join()
        self.streams.end()
        return ended

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGKILL)

    def text(self, name: str) -> str:
        return "".join(text for stream, text, _ in self.parts if stream == name)

    @property
    def out(self) -> str:
        return self.text("stdout")

    @property
    def err(self) -> str:
        return self.text("stderr")

    def interrupt_after(self, seconds: float, sign: Path | None = None) -> threading.Thread:
        """Interrupt the next cell, so long after it runs, or after it has made a file."""
        before = self.ran

        def is_time() -> bool:
            runs = self.shell._running and (sign is None or sign.exists())
            return runs or self.ran > before

        def interrupt() -> None:
            wait_until(is_time)
            time.sleep(seconds)
            self.shell.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        return thread


@pytest.fixture(autouse=True)
def _no_folder_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of the kernel in its own process too


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cells]:
    driver = tmp_path / "driver"
    driver.mkdir()
    shutil.copy(Path(shells.__file__).with_name("driver.sh"), driver / "bash")
    monkeypatch.setattr(shells, "DRIVER", driver / "bash")
    data = tmp_path / "data"
    data.mkdir()
    cells = Cells(data)
    try:
        yield cells
    finally:
        cells.shell.finish()
        streams = cells.streams
        for fd in (*cells.side.ends, *streams.ends, streams.stdout, streams.stderr):
            os.close(fd)


@pytest.mark.parametrize(
    ("desc", "code", "status", "out", "err"),
    [
        ("nothing", "", 0, "", ""),
        ("a comment", "# nothing", 0, "", ""),
        ("a line", "echo hi", 0, "hi\n", ""),
        ("both streams", "echo a; echo b >&2", 0, "a\n", "b\n"),
        ("no newline", "printf a", 0, "a", ""),
        ("a failure", "echo a; false", 1, "a\n", ""),
        ("a failure before the end", "false; echo a", 0, "a\n", ""),
        ("the line of a failure", "\n\nfoo", 127, "", "bash: line 3: foo: command not found\n"),
        (
            "the line in a function",
            "f() {\n foo\n}\nf",
            127,
            "",
            "bash: line 2: foo: command not found\n",
        ),
        (
            "no syntax",
            "echo a\nif then",
            2,
            "a\n",
            "bash: eval: line 2: syntax error near unexpected token `then'\n"
            "bash: eval: line 2: `if then'\n",
        ),
        (
            "an open quote",
            "echo 'a",
            2,
            "",
            "bash: eval: line 1: unexpected EOF while looking for matching `''\n",
        ),
        ("a document", "cat <<E\n$((1+1)) ' \"]}\nE", 0, "2 ' \"]}\n", ""),
        ("quotes and brackets", """echo '"]}' "'" \\" ${x:-{}}""", 0, '"]} \' " {}\n', ""),
        ("what is no UTF-8", r"printf 'a\xffb'", 0, "a\ufffdb", ""),
        ("NUL in the output", r"printf 'a\0b'", 0, "a\0b", ""),
        ("other letters", "echo 'żółć 🦊'", 0, "żółć 🦊\n", ""),
        ("standard input", "cat; read x; echo $?", 0, "1\n", ""),
        ("LINENO", "echo $LINENO\necho $LINENO", 0, "1\n2\n", ""),
        ("a script's own name", '[ "${BASH_SOURCE[0]}" = "$0" ] && echo main', 0, "main\n", ""),
        ("break", "break 2>/dev/null; echo a; for i in 1 2; do break; done", 0, "", ""),
        ("descriptors of the driver's", "ls /proc/self/fd | grep -c ^22", 1, "0\n", ""),
        ("arguments", "echo $# $@", 0, "0\n", ""),
        ("SIGPIPE", "yes | head -1; echo ${PIPESTATUS[0]}", 0, "y\n141\n", ""),
        ("parameters that must be set", "set -u; echo a", 0, "a\n", ""),
        ("a pipeline's failure", "set -o pipefail; false | true", 1, "", ""),
    ],
)
def test_a_cell(cells: Cells, desc: str, *, code: str, status: int, out: str, err: str) -> None:
    assert cells.run(code) == Ended(status)
    assert (cells.out, cells.err) == (out, err)
    assert cells.run("echo on") == Ended(0)
    assert cells.out == "on\n"


@pytest.mark.parametrize(
    ("desc", "first", "second", "out"),
    [
        ("a variable", "x=' a  b'", 'echo "$x"', " a  b\n"),
        ("an array", "a=(1 '2 3')", 'echo "${a[1]}"', "2 3\n"),
        ("a function", "f() { echo f $1; }", "f 1", "f 1\n"),
        ("an alias", "alias hi='echo hello'", "hi", "hello\n"),
        ("a folder", "mkdir d; cd d", "basename $PWD", "d\n"),
        ("the environment", "export Y=1", "bash -c 'echo $Y'", "1\n"),
        ("a descriptor", "exec 3>f; echo a >&3", "exec 3>&-; cat f", "a\n"),
        ("a lock's descriptor", "exec 200>f; flock -n 200", "echo a >&200; cat f", "a\n"),
        ("a status", "(exit 7)", "echo $?", "7\n"),
        ("arguments", "set -- a b", "echo $2", "b\n"),
        ("an option", "set -o pipefail", "false | true; echo $?", "1\n"),
        ("what was read last", "read <<<' a b '", 'echo "$REPLY."', " a b .\n"),
        ("words split elsewhere", "IFS=:; x=a:b", "echo $x", "a b\n"),
        ("a trap", "trap 'echo err' ERR", "false; true", "err\n"),
        ("a trap of each command", "trap 'echo t' DEBUG", "true", "t\n"),
        ("functions named as builtins", "read() { :; }; printf() { :; }", "echo a", "a\n"),
        ("a syntax error", "x=1; if then", "echo ${x-none}", "none\n"),
        ("redirected output", "exec 4>&1 >/dev/null", "exec >&4; echo a", "a\n"),
    ],
)
def test_state_stays(cells: Cells, desc: str, first: str, second: str, out: str) -> None:
    cells.run(first)
    cells.run(second)
    assert cells.out == out


def test_tracing_shows_the_cells_alone(cells: Cells) -> None:
    cells.run("set -x")
    assert cells.err == ""
    cells.run("true a")
    assert cells.err == "++ true a\n"  # an eval is a level more


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("exit", 0),
        ("exit 3", 3),
        ("set -e; false; echo no", 1),
        ("exec true", 0),
        ("kill -9 $$", -9),
    ],
)
def test_the_shell_ends(cells: Cells, code: str, status: int) -> None:
    assert cells.run(f"echo a; {code}") == Ended(status, of_shell=True)
    assert cells.out == "a\n"
    assert cells.shell.has_ended()
    cells.start()
    assert cells.run("echo b") == Ended(0)


@pytest.mark.parametrize(
    "code",
    [
        "sleep 5; echo no",
        "while :; do :; done; echo no",
        "while true; do sleep 1 || echo no; done || echo no",
        "until false; do sleep 0.05; done\necho no\necho no",
        "f() { while :; do sleep 1; done; echo no; }; f; echo no",
        "for i in 1 2; do g() { sleep 3; echo no; }; g; echo no; done; echo no",
        "for i in 1 2; do for j in 1 2; do sleep 2; done; echo no; done",
        "echo no$(sleep 3) >/dev/null; echo no",
        "sleep 3 | cat; echo no",
        "(sleep 3; echo no); echo no",
        "sleep 3 & wait; echo no",
        "if sleep 3; then echo no; else echo no; fi",
        "read z < <(sleep 3); echo no; [[ a = a ]] && echo no; case a in a) echo no; esac",
        "python3 -c 'import time; time.sleep(4)' 2>/dev/null; echo no",
        "set -e; sleep 5; echo no",
    ],
)
def test_an_interrupt_ends_the_cell(cells: Cells, tmp_path: Path, code: str) -> None:
    cells.run("x=1; cd /; f0() { echo f0; }")
    sign = tmp_path / "sign"
    thread = cells.interrupt_after(0.1, sign)
    begun = time.monotonic()
    ended = cells.run(f"y=2; : >'{sign}'\n{code}")
    thread.join()
    assert time.monotonic() - begun < 1.5
    assert ended.status == 130
    assert "no" not in cells.out
    if not ended.of_shell:
        assert cells.run("echo $x $y $PWD; f0") == Ended(0)
        assert cells.out == "1 2 /\nf0\n"
        assert cells.err == ""


def test_a_trap_of_the_users_is_run_instead(cells: Cells, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    cells.interrupt_after(0.1, sign)
    assert cells.run(f"trap 'echo mine' INT; : >'{sign}'; sleep 2; echo on") == Ended(0)
    assert cells.out == "mine\non\n"


def test_interrupts_at_any_time(cells: Cells) -> None:
    """What runs ends, or has ended; nothing hangs, and no cell is run twice."""
    assert cells.run("true") == Ended(0)  # the shell is there: before that, an interrupt ends it
    interrupted = 0
    for i in range(60):
        thread = cells.interrupt_after(i * 0.0001)
        ended = cells.run(f"sleep 0.003; n={i}; echo {i}")
        thread.join()
        assert ended in (Ended(0), Ended(130)), i
        assert cells.out == (f"{i}\n" if ended.status == 0 else cells.out)
        interrupted += ended == Ended(130)
    assert interrupted
    assert cells.run("echo on") == Ended(0)
    assert cells.out == "on\n"


def test_interrupts_while_the_shell_starts(cells: Cells) -> None:
    for i in range(20):
        cells.shell.finish()
        cells.start()
        thread = cells.interrupt_after(i * 0.0002)
        assert cells.run("sleep 5") == Ended(130), i
        thread.join()
        assert cells.run("echo on") == Ended(0)
        assert cells.out == "on\n"


def test_a_shell_without_its_descriptors_is_an_error(cells: Cells) -> None:
    assert cells.run("ulimit -n 100; echo a") == Ended(1, of_shell=True)
    assert cells.out == "a\n"


def test_two_streams_keep_their_order(cells: Cells) -> None:
    """Nearly always, also where the reader comes late: one fifth was wrong without care."""
    wrong = 0
    for code in ("echo a >&2; echo b", "echo a; echo b >&2") * 50:
        cells.run(code)
        wrong += [text for _, text, _ in cells.parts] != ["a\n", "b\n"]
    assert wrong <= 12


def test_ten_thousand_lines_are_all_there(cells: Cells) -> None:
    assert cells.run("for ((i = 0; i < 10000; i++)); do echo $i; done; echo hi") == Ended(0)
    assert cells.out.split() == [*map(str, range(10000)), "hi"]


def test_output_comes_as_it_is_written(cells: Cells) -> None:
    cells.run("for i in 1 2 3; do echo $i; sleep 0.2; done")
    assert [text for _, text, _ in cells.parts] == ["1\n", "2\n", "3\n"]
    times = [at for _, _, at in cells.parts]
    assert times[1] - times[0] > 0.15
    assert times[2] - times[1] > 0.15


def test_messages_are_bounded(cells: Cells) -> None:
    assert cells.run("head -c 5000000 /dev/zero | tr '\\0' ż") == Ended(0)
    assert len("".join(text for _, text, _ in cells.parts).encode()) >= 5_000_000
    assert max(len(text) for _, text, _ in cells.parts) <= 1 << 20


def test_a_line_of_a_megabyte(cells: Cells) -> None:
    begun = time.monotonic()
    assert cells.run("x='" + "ab" * (1 << 19) + "'; echo ${#x}") == Ended(0)
    assert cells.out == f"{1 << 20}\n"
    assert time.monotonic() - begun < 1


def test_the_background_goes_on(cells: Cells) -> None:
    begun = time.monotonic()
    assert cells.run("(sleep 0.3; echo late) & echo now") == Ended(0)
    assert time.monotonic() - begun < 0.25
    assert cells.out == "now\n"
    cells.run("wait; echo then")
    assert cells.out == "late\nthen\n"


def test_what_comes_between_cells_is_kept_up_to_a_bound(cells: Cells) -> None:
    cells.run("(sleep 0.1; head -c 3000000 /dev/zero | tr '\\0' x; touch done) & :")
    until = time.monotonic() + 5
    while not Path(cells.folder, "done").exists():
        assert time.monotonic() < until
        cells.streams.take()
    cells.streams.take()
    cells.run("echo next")
    assert 1 << 19 < len(cells.out) <= (1 << 20) + 10
    assert cells.out.endswith("next\n")
    assert "characters of output between cells were dropped" in cells.err


def test_a_flood_in_the_background_does_not_hold_a_cell(cells: Cells) -> None:
    cells.run("yes & echo $! >pid")
    begun = time.monotonic()
    for _ in range(3):
        assert cells.run("echo x >&2") == Ended(0)
        assert cells.err == "x\n"
    assert time.monotonic() - begun < 2
    cells.run("kill $(cat pid)")


def test_an_exit_trap_is_run_at_the_end(cells: Cells) -> None:
    assert cells.shell.quiet
    cells.run("trap 'echo a >ended; seq 100000' EXIT")
    assert not cells.shell.quiet
    cells.shell.finish()
    assert Path(cells.folder, "ended").read_text() == "a\n"


def test_an_end_that_takes_too_long(cells: Cells) -> None:
    cells.run("trap 'sleep 9' EXIT")
    begun = time.monotonic()
    cells.shell.finish()
    assert time.monotonic() - begun < 1


def test_a_shell_that_was_killed_between_cells(cells: Cells) -> None:
    os.kill(cells.shell.pid, signal.SIGKILL)
    assert cells.run("echo a") == Ended(-9, of_shell=True)


def test_the_background_ends_with_the_shell(cells: Cells) -> None:
    cells.run("sleep 300 & echo $!")
    pid = int(cells.out)
    assert lives(pid)
    cells.shell.finish()
    wait_until(lambda: not lives(pid))


def test_the_shell_ends_with_its_kernel(cells: Cells, tmp_path: Path) -> None:
    code = """
        import os, sys, time
        from pathlib import Path
        import shell
        from streams import Streams
        shell.DRIVER = Path(sys.argv[1])
        print(shell.Shell(Streams(), dict(os.environ), "/").pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), shells.DRIVER],
        env=os.environ | {"PYTHONPATH": str(KERNEL)}, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert lives(pid)
        process.kill()
    wait_until(lambda: not lives(pid))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1\x000\0hB\0",
        b"1\x00x\0hB\0\0",
        b"1\x00-1\0hB\0\0",
        b"1\x00256\0hB\0\0",
        b"1\x00" + b"9" * 5000 + b"\0hB\0\0",
        b"1\x000\0hB\0\0more",
        b"1\x000\0hB\0\0\0",
    ],
)
def test_a_forged_report_is_none(data: bytes) -> None:
    assert Report.parse(data) is None


def test_a_report() -> None:
    assert Report.parse(b"3\x00130\0hB\0trap -- 'a' SIGINT\n\0") == Report(
        "3", 130, "hB", {"INT": "'a'"}
    )


def test_a_forged_report_changes_nothing(cells: Cells) -> None:
    with Path(f"/proc/{cells.shell.pid}/fd/{shells.REPORT}").open("wb") as file:
        file.write(b"\1\1x\0y\0z\0\0\1\1\xff\0\0")
    assert cells.run("echo a; (exit 3)") == Ended(3)
    assert cells.out == "a\n"


# ---- the kernel --------------------------------------------------------------------


@pytest.fixture
def kernel(cells: Cells, tmp_path: Path) -> Iterator[Any]:
    """Yield a client of the kernel in its own process, whose cell "fail" fails in it."""
    program = tmp_path / "kernel.py"
    program.write_text(
        textwrap.dedent("""
        import sys
        from pathlib import Path
        import shell, bashkernel
        shell.DRIVER = Path(sys.argv[2])
        run = shell.Shell.run
        def fail_or_run(self, code, side):
            if code == "fail":
                raise RuntimeError("for no reason")
            return run(self, code, side)
        shell.Shell.run = fail_or_run
        bashkernel.main()
    """)
    )
    file, _ = write_connection_file(str(tmp_path / "connection.json"))
    home = {k: v for k, v in os.environ.items() if k != "HOME"}
    process = subprocess.Popen(
        [sys.executable, program, file, shells.DRIVER],
        env=home | {"PYTHONPATH": str(KERNEL), "IPYTHONDIR": str(tmp_path)},
    )
    client: Any = BlockingKernelClient()
    client.load_connection_file(file)
    client.start_channels(stdin=False, hb=False)
    try:
        client.wait_for_ready(timeout=GUARD_SECONDS)
        yield client
    finally:
        client.stop_channels()
        process.kill()
        process.wait()


def execute(kernel: Any, code: str) -> tuple[str, str]:
    """Return the text that a cell writes, and its error."""
    said: list[str] = []

    def hear(message: Any) -> None:
        if message["msg_type"] == "stream":
            said.append(message["content"]["text"])

    reply = kernel.execute_interactive(code, timeout=GUARD_SECONDS, output_hook=hear)
    return "".join(said), reply["content"].get("evalue", "")


def test_json_that_is_too_deep(kernel: Any) -> None:
    show = f"python3 {KERNEL / 'showfile.py'} -t application/json -"
    begun = time.monotonic()
    said, error = execute(kernel, f"printf '[%.0s' $(seq 100000) | {show}")
    assert time.monotonic() - begun < 5
    assert "not valid: maximum recursion depth" in said
    assert error == "the command ended with exit code 1"
    assert execute(kernel, "echo on") == ("on\n", "")


@pytest.mark.parametrize("size", [32 << 20, (32 << 20) + 1, 40 << 20])
def test_an_output_that_is_too_large(kernel: Any, tmp_path: Path, size: int) -> None:
    file = tmp_path / "large"
    show = f"python3 {KERNEL / 'showfile.py'} -t text/plain"
    said, error = execute(kernel, f"head -c {size} /dev/zero | tr '\\0' x >{file}; {show} {file}")
    assert said == f"display: {file}: more than 32 MiB cannot be shown\n"
    assert error == "the command ended with exit code 1"
    said, _ = execute(kernel, f"{show} - <{file}")
    assert said == "display: -: more than 32 MiB cannot be shown\n"


def test_a_failure_of_the_kernels_own(kernel: Any) -> None:
    pid = int(execute(kernel, "sleep 300 & echo $!")[0])
    assert execute(kernel, "fail") == ("", "the kernel failed: for no reason")
    wait_until(lambda: not lives(pid))
    said, error = execute(kernel, "echo on")
    assert said.endswith("on\n")
    assert "the shell of the earlier cells has ended" in said
    assert error == ""


def test_a_signal_without_a_name(kernel: Any) -> None:
    assert execute(kernel, "kill -40 $$")[1] == "the shell was killed by signal 40, exit code 168"
