"""`tools/pin_tree` lays out the Python files of a pin, verified, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import pin_trees

FILES = {"vllm/__init__.py": "VERSION = 1\n", "vllm/deep/part.py": "x = 2\n", "vllm/data.json": "{}\n"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree of an invented release, and a cache of its own."""
    for path, text in FILES.items():
        (tmp_path / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / path).write_text(text, encoding="utf-8")
    monkeypatch.setattr("tools.environments.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "tree"


def laid_out(source: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert pin_trees.main(["vllm-donor", "--source", f"vllm-donor={source}"]) == 0
    return Path(capsys.readouterr().out.splitlines()[-1])


def test_the_python_files_are_laid_out(source, capsys):
    folder = laid_out(source, capsys)
    found = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    assert found == {path: text for path, text in FILES.items() if path.endswith(".py")}
    assert not (folder / "vllm/data.json").exists()


def test_an_intact_folder_is_found_again(source, capsys):
    folder = laid_out(source, capsys)
    before = (folder / pin_trees.LISTING).stat().st_ino
    assert laid_out(source, capsys) == folder
    assert (folder / pin_trees.LISTING).stat().st_ino == before


@pytest.mark.parametrize("damage", ["changed", "removed", "listing"])
def test_a_damaged_folder_is_made_again(source, capsys, damage):
    folder = laid_out(source, capsys)
    file = folder / "vllm/deep/part.py"
    if damage == "changed":
        file.write_text("x = 3\n", encoding="utf-8")
    elif damage == "removed":
        file.unlink()
    else:
        (folder / pin_trees.LISTING).write_text("[]", encoding="utf-8")
    assert laid_out(source, capsys) == folder
    assert file.read_text(encoding="utf-8") == "x = 2\n"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_an_unknown_pin(capsys):
    assert pin_trees.main(["nobody"]) == 2
    assert "there is no pin nobody; there are vllm, vllm-donor" in capsys.readouterr().err


def test_a_source_that_cannot_be_had(tmp_path, capsys):
    assert pin_trees.main(["vllm-donor", "--source", f"vllm-donor={tmp_path / 'nowhere'}"]) == 3
    assert "vllm-donor" in capsys.readouterr().err
