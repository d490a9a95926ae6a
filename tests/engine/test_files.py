"""Files and git, each with one way to write or run them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from afd_patchkit import files
from afd_patchkit.files import replace_file
from afd_patchkit.git import GitError, complaint, run_git
from tests.engine.sample import Sample


def test_a_reader_of_the_old_file_keeps_it_and_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with path.open("rb") as reader:
        replace_file(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["file"]


def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"x", private=True)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_what_cannot_be_written_leaves_nothing_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        replace_file(tmp_path / "file", b"x")
    assert caught.value.filename == str(tmp_path / "file")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("manifests/acme_set/parts/own.py", "PK012"),
        ("manifests/pins.yaml", "PK024"),
        ("generated/patchkit.lock", "PK105"),
        ("generated/.upgrade.json", "PK116"),
        ("generated/generated_acme/acme_set/runner.py", "PK115"),
    ],
)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(sample: Sample, name: str, code: str) -> None:
    sample.manifest(
        "schema: 1\nmodule: acme_set/own.py\nsummary: O.\npin: acme\nentries:\n"
        "  - {kind: owned, name: own, part: parts/own.py, reason: r}\n",
        "own",
    )
    sample.write("manifests/acme_set/parts/own.py", "def own():\n    pass\n")
    assert sample.regen().exit_code == 0
    path = sample.root / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    report = sample.regen()
    assert code in {f.code for f in report.findings}
    assert sample.check().exit_code in (1, 2)


def test_a_file_that_is_absurdly_long(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1234")
    assert files.read_regular(tmp_path / "x", 4) == b"1234"
    with pytest.raises(OSError, match="absurdly long"):
        files.read_regular(tmp_path / "x", 3)


def test_git_sees_no_variable_of_the_caller_but_those_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run_git(["init", "-q"], tmp_path).returncode == 0
    assert (tmp_path / ".git").is_dir()
    done = run_git(["status"], tmp_path, kept=lambda name: name == "GIT_DIR")
    assert done.returncode == 128
    assert complaint(done)[0].startswith("fatal: not a git repository")


def test_no_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="there is no git command"):
        run_git(["status"], tmp_path)
