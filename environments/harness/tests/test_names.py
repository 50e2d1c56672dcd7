from __future__ import annotations

from pathlib import Path

import pytest

from harness.system import names


def test_both_files_have_the_sandboxs_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image, own = tmp_path / "image", tmp_path / "own"
    for folder in (image, own):
        folder.mkdir()
    (image / "passwd.image").write_text(
        "root:x:0:0:root:/root:/bin/bash\nsandbox:x:64000:64000:sandbox:/tmp/home:/bin/bash\n"
    )
    (image / "group.image").write_text("root:x:0:\nsandbox:x:64000:\n")
    monkeypatch.setattr(names, "IMAGE", str(image))
    monkeypatch.setattr(names, "HARNESS", str(own))
    monkeypatch.setattr(names.privileges, "USER", 99114)
    names.write()
    assert (own / "passwd").read_text() == (
        "root:x:0:0:root:/root:/bin/bash\nsandbox:x:99114:99114:sandbox:/tmp/home:/bin/bash\n"
    )
    assert (own / "group").read_text() == "root:x:0:\nsandbox:x:99114:\n"
