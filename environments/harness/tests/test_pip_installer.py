"""What the installers of dependencies share, and the parts of pip's that need no index."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import installing
from installing import Ended, Unreachable, Unresolvable
from layer import TooLarge

HARNESS = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pip() -> ModuleType:
    # By its path: it has the name of pip itself.
    spec = importlib.util.spec_from_file_location("pip_installer", HARNESS / "../jupyter/pip.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(installing, "DATA", str(tmp_path))
    return tmp_path


def tree(root: Path) -> Path:
    (root / "python/b").mkdir(parents=True)
    (root / "python/b/z.py").write_text("z = 1\n")
    (root / "python/b.py").write_text("b = 1\n")
    (root / "python/bin").mkdir()
    (root / "python/bin/run").write_text("#!/bin/sh\n")
    (root / "python/bin/run").chmod(0o4750)
    (root / "python/inside").symlink_to("b/z.py")
    (root / "python/absolute").symlink_to("/python/b.py")
    (root / "python/outside").symlink_to("../../../etc/passwd")
    (root / "python/b/around").symlink_to("../../../x")
    os.mkfifo(root / "python/pipe")
    return root


def test_a_layer(mnt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers = []
    for name in ("one", "other"):
        root = tree(mnt / name)
        os.utime(root / "python/b.py", (len(name), len(name)))
        installing.leave_layer(str(root), 1 << 20)
        layers.append((mnt / "layer.tar").read_bytes())
        assert not (root / "python/b.py").exists()
    assert layers[0] == layers[1]
    with tarfile.open(mnt / "layer.tar") as tar:
        found = [(m.name, m.type, m.mode, m.linkname, m.uid, m.gid, m.mtime) for m in tar]
    folder, file, link = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE
    assert found == [
        ("python", folder, 0o755, "", 0, 0, 0),
        ("python/absolute", link, 0o777, "b.py", 0, 0, 0),
        ("python/b", folder, 0o755, "", 0, 0, 0),
        ("python/b/z.py", file, 0o644, "", 0, 0, 0),
        ("python/b.py", file, 0o644, "", 0, 0, 0),
        ("python/bin", folder, 0o755, "", 0, 0, 0),
        ("python/bin/run", file, 0o755, "", 0, 0, 0),
        ("python/inside", link, 0o777, "b/z.py", 0, 0, 0),
    ]
    told = capsys.readouterr().out
    for name in ("python/outside", "python/b/around", "python/pipe"):
        assert f"{name} is left out" in told


def test_a_link_that_leads_out_by_another_link(mnt: Path) -> None:
    (mnt / "root/deep/er").mkdir(parents=True)
    (mnt / "root/deep/er/up").symlink_to("../..")
    (mnt / "root/out").symlink_to("deep/er/up/../secret")
    installing.leave_layer(str(mnt / "root"), 1 << 20)
    with tarfile.open(mnt / "layer.tar") as tar:
        assert "out" not in tar.getnames()


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("b/../c", "c"),
        ("./b//c/", "b/c"),
        ("../a/b/../c", "c"),
        ("../d", "../d"),
        ("..", ".."),
        (".", "."),
        ("to/../c", "../x/c"),  # to is x/y
        ("nowhere/../c", "c"),
    ],
)
def test_links_go_up_and_then_down(mnt: Path, target: str, written: str) -> None:
    for folder in ("a/b/c", "x/y", "x/c"):
        (mnt / "root" / folder).mkdir(parents=True)
    for file in ("a/c", "d"):
        (mnt / "root" / file).touch()
    (mnt / "root/a/to").symlink_to("../x/y")
    (mnt / "root/a/link").symlink_to(target)
    installing.leave_layer(str(mnt / "root"), 1 << 20)
    with tarfile.open(mnt / "layer.tar") as tar:
        assert tar.getmember("a/link").linkname == written


def test_names_that_the_service_refuses(mnt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = mnt / "root"
    for folder in ("a/" * 62, "b/" * 70, ".wh.x", "good"):
        (root / folder).mkdir(parents=True)
    for file in (".wh.x/in", "new\nline", "good/.wh..wh..opq", "del\x7f", "c1\x85", "ä"):
        (root / file).touch()
    (root / "to").symlink_to("new\nline")
    os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    (root / "/".join(["d" * 200] * 5)).mkdir(parents=True)
    (root / "/".join(["d" * 200] * 5) / ("d" * 100)).touch()
    installing.leave_layer(str(root), 1 << 20)
    with tarfile.open(mnt / "layer.tar") as tar:
        names = tar.getnames()
    assert {name for name in names if name[0] not in "abd"} == {"good", "ä"}
    # Of a folder, tar and the service count a slash at its end.
    assert max(name.count("/") for name in names) == 62
    assert max(map(len, names)) == 1004
    told = capsys.readouterr().out
    for name in (".wh.x", ".wh.x/in", "'new\\nline'", "'c1\\x85'", "'\\udcff'", "to"):
        assert f"{name} is left out" in told


def test_a_layer_that_is_too_large(mnt: Path) -> None:
    (mnt / "root").mkdir()
    (mnt / "root/file").write_bytes(bytes(2 << 20))
    with pytest.raises(TooLarge, match="more than 1 MiB"):
        installing.leave_layer(str(mnt / "root"), 1 << 20)
    assert not (mnt / "layer.tar").exists()


def test_a_disk_that_is_full(mnt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (mnt / "root/folder").mkdir(parents=True)
    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(TooLarge, match="more than 1 MiB"):
        installing.leave_layer(str(mnt / "root"), 1 << 20)
    assert not (mnt / "layer.tar").exists()


def test_what_a_client_says(mnt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('a'); sys.stdout.flush(); sys.stderr.write('b'); exit(3)"
    ended = installing.run([sys.executable, "-c", code], os.environ)
    assert ended == Ended(3, ["a", "b"])
    assert capsys.readouterr().out == "a\nb\n"


@pytest.mark.parametrize("how", ["sh $0 &", "setsid sh $0 &", "(setsid sh $0 & exit) &"])
def test_what_a_client_leaves_ends_with_it(mnt: Path, how: str) -> None:
    # It has the client's output, and would write on.
    (mnt / "left").write_text(f"echo begun >{mnt}/begun; while :; do echo x >>{mnt}/report; done")
    wait = f"while [ ! -e {mnt}/begun ]; do sleep .01; done"
    command = ["sh", "-c", f"{how} {wait}; echo done", str(mnt / "left")]
    ended = installing.run(command, os.environ, tell=False)
    assert ended == Ended(0, ["done"])
    (mnt / "report").unlink(missing_ok=True)
    time.sleep(0.1)
    assert not (mnt / "report").exists()


def test_what_is_this_process_s_own_goes_on(mnt: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as own:
        installing.run(["true"], os.environ)
        assert own.poll() is None
        own.kill()


def test_hosts(mnt: Path) -> None:
    urls = ["https://b.example/simple/", "http://u:p@a.example", "https://b.example:8443", "/opt"]
    installing.leave_hosts(urls)
    assert json.loads((mnt / "hosts.json").read_text()) == {
        "hosts": ["a.example:80", "b.example:443", "b.example:8443"]
    }


def test_packages(mnt: Path) -> None:
    installing.leave_packages([("b", "1"), ("a", "2"), ("b", "1")])
    assert json.loads((mnt / "resolved.json").read_text()) == {
        "packages": [{"name": "a", "version": "2"}, {"name": "b", "version": "1"}]
    }


@pytest.mark.parametrize(("answer", "reached"), [("200 OK", True), ("502 Bad Gateway", False)])
def test_reaching(answer: str, reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def serve() -> None:
            client, _ = proxy.accept()
            with client:
                asked.append(client.recv(4096).decode().splitlines()[0])
                client.sendall(f"HTTP/1.1 {answer}\r\n\r\n".encode())

        thread = threading.Thread(target=serve)
        thread.start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        if reached:
            installing.reach(["https://index.example/simple"])
        else:
            with pytest.raises(Unreachable):
                installing.reach(["https://index.example/simple"])
        thread.join()
    assert asked == ["CONNECT index.example:443 HTTP/1.1"]
    if not reached:  # nobody listens any more
        with pytest.raises(Unreachable):
            installing.reach(["https://index.example/simple"])


def test_what_is_missing(pip: ModuleType) -> None:
    def item(name: str, **info: object) -> dict[str, object]:
        return {
            "metadata": {"name": name, "version": "1.0"},
            "download_info": {"url": "u", **info},
            "is_direct": False,
        }

    hashes = {"hashes": {"sha256": "abc"}}
    packages = pip.missing({"install": [item("B", archive_info=hashes), item("a")]})
    assert packages == [("B", "1.0", ["sha256:abc"]), ("a", "1.0", [])]
    assert pip.requirements(packages) == "B==1.0 --hash=sha256:abc\na==1.0\n"
    assert pip.missing({"install": []}) == []
    with pytest.raises(Unresolvable, match=r"^b is not from the package index"):
        pip.missing({"install": [item("a"), item("b") | {"is_direct": True}]})


def test_variables_of_pip(pip: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://elsewhere.example")
    monkeypatch.setenv("PIP_CERT", "/ca.pem")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    env = pip.environment()
    assert "PIP_INDEX_URL" not in env
    assert env["PIP_CERT"] == "/ca.pem"
    assert env["PIP_PROXY"] == "http://127.0.0.1:3128"
    assert env["PIP_CONFIG_FILE"] == os.devnull


@pytest.mark.parametrize(
    ("desc", "lines", "code", "builds", "kind", "message"),
    [
        (
            "there is none",
            ["Collecting a", "ERROR: No matching distribution found for a"],
            1,
            False,
            Unresolvable,
            "No matching distribution found for a\n(Only prebuilt packages, wheels, can",
        ),
        (
            "many versions",
            [f"ERROR: none for a (from versions: {', '.join(f'1.{i}' for i in range(40))})"],
            1,
            True,
            Unresolvable,
            f"none for a (among them {', '.join(f'1.{i}' for i in range(30, 40))})",
        ),
        (
            "a conflict",
            [
                "x",
                "ERROR: Cannot install",
                "",
                "The conflict:",
                "To fix this you could try to:",
                "1",
            ],
            1,
            True,
            Unresolvable,
            "Cannot install\nThe conflict:",
        ),
        (
            "not prebuilt",
            [
                "Collecting a",
                "Collecting b@ http://h/b.tar.gz (from a)",
                "  ERROR: Error why while executing",
                "ERROR: Could not install packages due to an OSError: why",
            ],
            1,
            False,
            Unresolvable,
            "b@ http://h/b.tar.gz (from a): why",
        ),
        (
            "away",
            ["WARNING: Retrying (…) after connection broken by 'E'", "ERROR: x"],
            1,
            True,
            Unreachable,
            "cannot be reached",
        ),
        (
            "full",
            ["ERROR: [Errno 28] No space left on device"],
            1,
            True,
            TooLarge,
            "more than 5 MiB",
        ),
        ("killed", ["Collecting"], -9, True, TooLarge, "memory"),
        ("something else", ["what is this"], 2, True, Unresolvable, "what is this"),
        (
            "a stack",
            [
                "ERROR: Exception:",
                "Traceback (most recent call last):",
                '  File "/opt/x"',
                "E: why",
            ],
            2,
            False,
            Unresolvable,
            "Exception:\nE: why",
        ),
        (
            "a stack alone",
            ["Collecting a", "Traceback (most recent call last):", '  File "/opt/x"', "E: why"],
            2,
            False,
            Unresolvable,
            "Collecting a\nE: why",
        ),
    ],
)
def test_failures(
    pip: ModuleType,
    desc: str,
    *,
    lines: list[str],
    code: int,
    builds: bool,
    kind: type[Exception],
    message: str,
) -> None:
    request = installing.Request("install", ["a"], builds, 5 << 20)
    failure = pip.failure(Ended(code, lines), request)
    assert type(failure) is kind
    assert message in str(failure)


@pytest.mark.parametrize("name", ["../out", "{folder}/out", ".."])
def test_the_name_of_a_program_is_no_path(tmp_path: Path, name: str) -> None:
    name = name.format(folder=tmp_path)
    wheel, info = tmp_path / "odd-1-py3-none-any.whl", "odd-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("odd.py", "")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
        file.writestr(
            f"{info}/entry_points.txt", f"[console_scripts]\nfine = odd:a\n{name} = odd:a\n"
        )
    command = [sys.executable, "-I", HARNESS / "../jupyter/prebuilt.py", "install", "--no-index"]
    done = subprocess.run(
        [*command, "--no-deps", "--target", tmp_path / "place", wheel],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert f"{name}: not a program's name" in done.stderr
    assert not list(tmp_path.glob("**/out*"))
