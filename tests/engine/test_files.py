"""Files and git, each with one way to write or run them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from afd_patchkit.files import replace_file
from afd_patchkit.git import GitError, complaint, run_git


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
