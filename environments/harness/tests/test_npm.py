"""The installer of npm packages, with a program in npm's place."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import installing
import npm
from installing import Unreachable, Unresolvable
from layer import TooLarge

NPM = """#!/bin/sh
if [ "$1" = config ]; then
  echo '{"registry": "https://packages.example/npm/", "@a:registry": "http://other.example:81/"}'
  exit
fi
%s
"""
GOOD = r"""mkdir -p node_modules/a/node_modules/b node_modules/.bin
echo '{}' >node_modules/a/package.json
ln -s ../a/package.json node_modules/.bin/a
ln -s ../../../etc/passwd node_modules/.bin/outside
echo '{"packages": {"node_modules/a": {"version": "1.2.3"},
  "node_modules/a/node_modules/b": {"version": "2.0.0"},
  "node_modules/other-platform": {"version": "1.0.0"}}}' >node_modules/.package-lock.json
echo added 2 packages"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(npm, "NPM", str(tmp_path / "npm"))
    monkeypatch.setattr(npm, "reach", lambda urls: None)
    monkeypatch.setattr(installing, "DATA", str(tmp_path))
    return tmp_path


def ask(data: Path, program: str, **request: object) -> None:
    (data / "npm").write_text(NPM % program)
    (data / "npm").chmod(0o755)
    given = {"phase": "install", "dependencies": ["a@^1"], "builds": False, "max_bytes": 10**6}
    (data / "request.json").write_text(json.dumps(given | request))
    npm.main()


def test_hosts(data: Path) -> None:
    ask(data, "", phase="hosts")
    hosts = json.loads((data / "hosts.json").read_text())["hosts"]
    assert hosts == ["other.example:81", "packages.example:443"]


def test_install(data: Path) -> None:
    ask(data, GOOD)
    assert json.loads((data / "resolved.json").read_text()) == {
        "packages": [{"name": "a", "version": "1.2.3"}, {"name": "b", "version": "2.0.0"}]
    }
    with tarfile.open(data / "layer.tar") as tar:
        names = tar.getnames()
        package = tar.extractfile("package.json")
        assert package is not None
        assert json.load(package)["dependencies"] == {"a": "1.2.3"}
    assert "node_modules/.bin/a" in names
    assert "node_modules/.bin/outside" not in names
    assert not (data / "work/node_modules/a/package.json").exists()  # it is in the layer
    assert "node_modules/.package-lock.json" not in names
    assert names == sorted(names, key=Path)


@pytest.mark.parametrize(
    ("desc", "said", "kind"),
    [
        ("unknown", "npm error code E404", Unresolvable),
        ("no such version", "npm error code ETARGET", Unresolvable),
        ("no registry", "npm error code ECONNREFUSED", Unreachable),
        ("no room", "npm error code ENOSPC", TooLarge),
        ("a process", "npm error code ERR_ACCESS_DENIED", Unresolvable),
    ],
)
def test_failures(data: Path, desc: str, said: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        ask(data, f"echo '{said}' >&2; exit 1")


@pytest.mark.parametrize(
    ("desc", "wanted", "asked"),
    [
        ("two", ["a@^1", "b@2"], {"a": "^1", "b": "2"}),
        ("one, told twice", ["a", "a@latest"], {"a": "latest"}),
    ],
)
def test_wanted(desc: str, wanted: list[str], asked: dict[str, str]) -> None:
    assert npm.wanted(wanted) == asked


def test_one_package_in_two_versions(data: Path) -> None:
    with pytest.raises(Unresolvable, match=r"^lodash is asked for twice: as \^3 and as \^4$"):
        ask(data, GOOD, dependencies=["lodash@^3", "a", "lodash@^4"])


@pytest.mark.parametrize(
    ("builds", "options", "alone"),
    [
        (False, "--ignore-scripts=true --allow-git=none --allow-file=none ", True),
        (True, "--ignore-scripts=false ", False),
    ],
)
def test_scripts(data: Path, builds: bool, options: str, alone: bool) -> None:
    with pytest.raises(Unresolvable, match=f"^install {options}") as raised:
        ask(data, 'echo "npm error $*" $NODE_OPTIONS; exit 1', builds=builds)
    assert ("--experimental-permission" in str(raised.value)) is alone


MALFORMED = """mkdir -p node_modules/a
echo '{"packages": {"node_modules/a": {%s}}}' >node_modules/.package-lock.json"""


@pytest.mark.parametrize(
    "given",
    [
        '"resolved": "https://packages.example/npm/a/-/a-2.0.0.tgz"',
        '"version": 2',
        '"version": "2.0.0/../x"',
        f'"version": "{"1" * 129}"',
        '"version": "2.0.0", "dependencies": ["a"]',
        '"version": "2.0.0", "dependencies": {"a": 1}',
    ],
)
def test_what_is_no_package(data: Path, given: str) -> None:
    with pytest.raises(Unresolvable):
        ask(data, MALFORMED % given)


WANTS = """mkdir -p node_modules/a
echo '{"packages": {"node_modules/a": {"version": "1.0.0", "%s": {"b": "%s"}},
  "node_modules/a/node_modules/b": {"version": "1.0.0"}}}' >node_modules/.package-lock.json"""


@pytest.mark.parametrize("kind", ["dependencies", "optionalDependencies", "peerDependencies"])
@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        ("^1 || 2.x", True),
        ("latest", True),
        ("", True),
        ("npm:@scope/c@^2", True),
        ("http://packages.example/b.tgz", False),
        ("https:packages.example", False),
        ("git+ssh://h/b.git", False),
        ("owner/repository", False),
        ("file:../b", False),
        ("../b", False),
        ("npm:c@file:../b", False),
    ],
)
def test_what_is_not_of_the_registry(data: Path, kind: str, spec: str, taken: bool) -> None:
    if taken:
        ask(data, WANTS % (kind, spec))
        return
    with pytest.raises(Unresolvable, match=rf"^b@.*: {npm.NOT_OF_REGISTRY}"):
        ask(data, WANTS % (kind, spec))
    (data / "work").rename(data / "before")
    ask(data, WANTS % (kind, spec), builds=True)


def test_optional_peer_that_is_not_installed(data: Path) -> None:
    ask(data, WANTS.replace("node_modules/b", "node_modules/c") % ("peerDependencies", "file:../b"))


def test_what_is_not_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(data, "echo 'npm notice A complete log of this run can be found'\n" + GOOD)
    assert "log" not in capsys.readouterr().out


def test_too_large(data: Path) -> None:
    with pytest.raises(TooLarge):
        ask(data, GOOD, max_bytes=2)


def test_no_registry(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reach(urls: list[str]) -> None:
        assert urls == ["http://other.example:81/", "https://packages.example/npm/"]
        raise Unreachable

    monkeypatch.setattr(npm, "reach", reach)
    with pytest.raises(Unreachable):
        ask(data, GOOD)


@pytest.mark.parametrize(
    ("entry", "name", "wanted"),
    [
        ("lodash", "lodash", "latest"),
        ("lodash@^4.17", "lodash", "^4.17"),
        ("@types/node@>=20 <22", "@types/node", ">=20 <22"),
    ],
)
def test_parsed(entry: str, name: str, wanted: str) -> None:
    assert npm.parsed(entry) == (name, wanted)


@pytest.mark.parametrize("entry", ["--foo", "a@npm:b", "a@file:../x", "../a", "a@git://x/y"])
def test_not_a_package(entry: str) -> None:
    with pytest.raises(Unresolvable):
        npm.parsed(entry)
