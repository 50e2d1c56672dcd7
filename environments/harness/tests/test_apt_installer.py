"""apt's installer, without a network."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import installing
from installing import Unresolvable

HARNESS = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def apt() -> ModuleType:
    # By its path: python3-apt has its name.
    spec = importlib.util.spec_from_file_location("apt_installer", HARNESS / "../base/apt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KNOWN = {"jq", "g++", "libstdc++6", "python3.13", "bash"}


@pytest.mark.parametrize("entry", ["jq", "g++", "libstdc++6", "python3.13", "jq=1.7.1-6"])
def test_exact_names(apt: ModuleType, entry: str) -> None:
    apt.must_be_known(["bash", entry], KNOWN)


@pytest.mark.parametrize(
    "entry", ["jq+", "lib.+", "python3.+", "python3.1.", "jq+=1.7", "g+", "none"]
)
def test_what_apt_would_understand_otherwise(apt: ModuleType, entry: str) -> None:
    with pytest.raises(Unresolvable, match="Unable to locate package"):
        apt.must_be_known(["bash", entry], KNOWN)


def test_a_version_is_whole(apt: ModuleType) -> None:
    with pytest.raises(Unresolvable, match=r"jq=1\.\*: not a version"):
        apt.wanted(["jq=1.*"])


# ---- with apt, an image and a registry of a few packages ------------------------------

IMAGE = {"libc6": "2.41-1", "libtool6": "1.0-1", "awk": "1.0-1"}
REGISTRY = """
Package: libc6
Version: 2.42-1

Package: libtool6
Version: 1.1-1
Depends: libc6 (>= 2.42)

Package: fine
Version: 1-1
Depends: libtool6 (>= 1.0), libc6

Package: libtool-dev
Version: 1.1-1
Depends: libtool6 (= 1.1-1)

Package: newer
Version: 1-1
Depends: libc6 (>= 2.42)

Package: other
Version: 1-1
Conflicts: awk

Package: awk
Version: 1.0-1

Package: awk
Version: 2.0-1
"""


@pytest.fixture
def image(apt: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (shutil.which("apt-get") and shutil.which("dpkg-query")):
        pytest.skip("this is not Debian")
    registry, work = tmp_path / "registry", tmp_path / "work"
    registry.mkdir()
    stanzas = [
        f"{stanza.strip()}\nArchitecture: all\nFilename: ./{i}.deb\nSize: 1\nSHA256: {i:064}\n"
        for i, stanza in enumerate(REGISTRY.split("\n\n"))
    ]
    Path(registry, "Packages").write_text("\n".join(stanzas))
    Path(tmp_path, "sources.list").write_text(f"deb [trusted=yes] file:{registry} ./\n")
    Path(tmp_path, "status").write_text(
        "\n".join(
            f"Package: {name}\nStatus: install ok installed\nMaintainer: nobody\n"
            f"Architecture: all\nVersion: {version}\nDescription: none\n"
            for name, version in IMAGE.items()
        )
        + "\nPackage: gone\nStatus: deinstall ok config-files\nMaintainer: nobody\n"
        "Architecture: all\nVersion: 1\nDescription: none\n"
    )
    monkeypatch.setattr(apt, "WORK", str(work))
    monkeypatch.setattr(apt, "ARCHIVES", str(work / "cache" / "archives"))
    monkeypatch.setattr(apt, "STATUS", str(tmp_path / "status"))
    monkeypatch.setattr(apt, "settings", lambda name: str(tmp_path / name))
    monkeypatch.setattr(installing, "DATA", str(tmp_path))
    return apt


def test_what_the_image_has(image: ModuleType) -> None:
    assert image.installed() == IMAGE


def resolved(apt: ModuleType, *entries: str) -> list[str]:
    """Return what apt would fetch."""
    apt.prepare(list(entries))
    ended = apt.apt(*apt.CHOICE, "--print-uris", "--", *entries, tell=False)
    if ended.code:
        raise apt.failure(ended)
    return [line.split()[1] for line in ended.lines if line.startswith("'")]


@pytest.mark.parametrize("entry", ["awk", "awk=1.0-1", "libc6", "libtool6"])
def test_what_is_there_stays(image: ModuleType, entry: str) -> None:
    assert resolved(image, entry) == []


def test_what_needs_no_other_version_is_fetched(image: ModuleType) -> None:
    assert resolved(image, "fine") == ["fine_1-1_all.deb"]


@pytest.mark.parametrize("entry", ["awk=2.0-1", "awk=1.0", "libc6=2.42-1"])
def test_another_version_of_what_is_there(image: ModuleType, entry: str) -> None:
    name = entry.partition("=")[0]
    words = rf"^{entry}: the image has {name} {IMAGE[name]}, which stays"
    with pytest.raises(Unresolvable, match=words):
        resolved(image, entry)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("newer", r"Depends: libc6 \(>= 2.42\)"),
        ("libtool-dev", r"Depends: libtool6 \(= 1.1-1\)"),
        ("other", "remove is disabled"),
    ],
)
def test_what_would_replace_a_package_of_the_image(
    image: ModuleType, entry: str, words: str
) -> None:
    with pytest.raises(Unresolvable, match=words) as raised:
        resolved(image, entry)
    assert image.STAYS in str(raised.value)


@pytest.fixture
def root(image: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(image, "ROOT", str(tmp_path / "root"))
    Path(image.WORK).mkdir(exist_ok=True)
    return tmp_path / "root"


def build(folder: Path, name: str, **content: str) -> str:
    """Build a package of files and links ("-> target"); a part of its paths is "/" for "__"."""
    package = folder / name
    (package / "DEBIAN").mkdir(parents=True)
    Path(package, "DEBIAN", "control").write_text(
        f"Package: {name}\nVersion: 1-1\nArchitecture: all\nMaintainer: nobody\nDescription: none\n"
    )
    for key, text in content.items():
        path = package / key.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            path.write_text(text)
    archive = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--build", package, archive], check=True)
    return str(archive)


def test_packages_become_one_tree(image: ModuleType, tmp_path: Path, root: Path) -> None:
    first = build(tmp_path, "first", usr__a="1", usr__lib__b="-> ../a", usr__share__doc__c="")
    second = build(tmp_path, "second", usr__lib__d="2", usr__a="3")
    (tmp_path / "second" / "usr").chmod(0o555)
    subprocess.run(["dpkg-deb", "--build", tmp_path / "second", second], check=True)
    assert image.unpack(first, 1 << 30) == ("first", "1-1")
    assert image.unpack(second, 1 << 30) == ("second", "1-1")
    assert (root / "usr" / "lib" / "b").read_text() == "3"
    assert (root / "usr" / "lib" / "d").read_text() == "2"
    assert not (root / "usr" / "share" / "doc").exists()
    assert os.listdir(image.WORK) == []


def test_a_link_leads_no_other_package(image: ModuleType, tmp_path: Path, root: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    image.unpack(build(tmp_path, "first", usr__lib=f"-> {outside}"), 1 << 30)
    words = r"^second 1-1 cannot be unpacked: usr/lib is a folder in one package alone$"
    with pytest.raises(Unresolvable, match=words):
        image.unpack(build(tmp_path, "second", usr__lib__code="evil"), 1 << 30)
    assert os.listdir(outside) == []


@pytest.mark.parametrize("there", ["file", "folder"])
def test_a_file_that_is_a_folder_elsewhere(
    image: ModuleType, tmp_path: Path, root: Path, there: str
) -> None:
    (root / "odd" / "more" if there == "folder" else root).mkdir(parents=True)
    if there == "file":
        (root / "odd").touch()
    package = {"odd": ""} if there == "folder" else {"odd__more": ""}
    with pytest.raises(Unresolvable, match=r"^odd 1-1 cannot be unpacked: odd is a folder in one"):
        image.unpack(build(tmp_path, "odd", **package), 1 << 30)


@pytest.mark.parametrize("version", ["", "1 1", "ü", "1" * 201])
def test_an_archive_without_a_version(
    image: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    shown = tmp_path / "dpkg-deb"
    shown.write_text(f"#!/bin/sh\nprintf 'odd {version}'\n")
    shown.chmod(0o755)
    monkeypatch.setattr(image, "DPKG_DEB", str(shown))
    with pytest.raises(Unresolvable, match=r"^odd\.deb is no package that can be unpacked$"):
        image.unpack(str(tmp_path / "odd.deb"), 1 << 30)


def test_what_is_no_archive(image: ModuleType, tmp_path: Path) -> None:
    archive = tmp_path / "odd.deb"
    archive.write_bytes(b"not an archive")
    with pytest.raises(Unresolvable, match=r"^odd\.deb is no package that can be unpacked$"):
        image.unpack(str(archive), 1 << 30)
