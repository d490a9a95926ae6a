"""Finding Pythons and making environments; the summary of `tools/test`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import environments, pinned
from tools.environments import Interpreter
from tools.run_tests import Session, main


def test_the_running_python_is_found():
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = environments.find(minor)
    assert found
    assert found.minor == minor
    assert environments.supported().minor == minor


@pytest.mark.parametrize("command", [["no-such-python"], [sys.executable, "-c", "import sys; sys.exit(1)"], ["true"]])
def test_what_is_no_python_is_none(command):
    assert environments.ask(command) is None


def test_a_shim_without_a_version_is_passed_over(tmp_path, monkeypatch):
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert environments.find("3.99") is None


@pytest.fixture
def base(monkeypatch) -> Interpreter:
    calls: list[list[str]] = []
    monkeypatch.setattr(environments, "run", lambda arguments, python, problem: calls.append([python, *arguments]))
    found = environments.ask([sys.executable])
    assert found
    found_calls[:] = [calls]
    return found


found_calls: list[list[list[str]]] = []


def _pretend(folder: Path) -> None:
    """What `venv` would make."""
    python = environments.python_of(folder)
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)


def test_an_environment_is_made_once_and_completed_when_unfinished(base, tmp_path):
    folder = tmp_path / "env"
    _pretend(folder)
    (folder / "afd-patchkit-stamp").write_text(f"{base.minor} unfinished\n", encoding="utf-8")
    assert environments.make(folder, base, ["one"]) == environments.python_of(folder)
    (calls,) = found_calls
    assert [c[-1] for c in calls] == ["one"]
    environments.make(folder, base, ["one"])
    assert len(calls) == 1
    environments.make(folder, base, ["one", "two"])
    assert [c[-1] for c in calls] == ["one", "two"]
    environments.make(folder, base, ["one", "two"], depends=["changed"])
    assert len(calls) == 3


def test_a_folder_of_somebody_else_is_left_alone(base, tmp_path):
    folder = tmp_path / "env"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit, match="move it away"):
        environments.make(folder, base, ["one"])
    assert (folder / "thesis.txt").is_file()


def test_a_broken_environment_of_ours_is_made_anew(base, tmp_path):
    folder = tmp_path / "env"
    folder.mkdir()
    (folder / "afd-patchkit-stamp").write_text(f"{base.minor} unfinished\n", encoding="utf-8")
    (folder / "rest").write_text("", encoding="utf-8")
    environments.make(folder, base, ["one"])
    assert not (folder / "rest").exists()
    assert [c[1] for c in found_calls[0]] == ["-m", "-m"]


def test_steps_and_summary(capfdbinary):
    session = Session(Path(sys.executable))
    assert session.step("good", [sys.executable, "-c", "print('= 3 passed, 1 skipped in 0.1s =')"])
    assert not session.step("bad", [sys.executable, "-c", "raise SystemExit(5)"])
    session.skip("later", "nothing generated")
    assert session.summary() == 1
    said = capfdbinary.readouterr().out.decode()
    good, bad, later = said.splitlines()[-3:]
    assert good.startswith("ok")
    assert good.endswith("3 passed, 1 skipped in 0.1s")
    assert bad.startswith("FAILED")
    assert later.startswith("FAILED")
    assert later.endswith("nothing generated")


def test_no_step_is_a_failure():
    assert Session(Path(sys.executable)).summary() == 1


def test_lint_stands_alone(capsys):
    assert main(["--lint", "tests"]) == 2
    assert main(["--help"]) == 0
    assert "usage: tools/test" in capsys.readouterr().out


def test_versions_are_those_of_the_pins():
    for name, pin in pinned.pins().items():
        assert environments.pinned_version(name) == pin.version
    with pytest.raises(SystemExit, match="no version of a pin acme"):
        environments.pinned_version("acme")


def test_a_command_runs_in_the_project_s_environment_where_packages_are_missing(root, tmp_path, monkeypatch, capfd):
    script = tmp_path / "tool"
    script.write_text("import sys; print('in the environment', *sys.argv[1:]); sys.exit(7)\n", encoding="utf-8")
    module = tmp_path / "lacking.py"
    module.write_text("import no_such_package\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(script), "--sample", "2"])
    monkeypatch.setattr(environments, "project", lambda: Path(sys.executable))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert environments.command("lacking") == 7
    assert "in the environment --sample 2" in capfd.readouterr().out
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    with pytest.raises(ModuleNotFoundError):
        environments.command("lacking")


def test_a_module_of_ours_that_is_missing_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "project", lambda: pytest.fail("no environment is to be made"))
    with pytest.raises(ModuleNotFoundError):
        environments.command("tools.no_such_module")
