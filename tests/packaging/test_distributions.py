"""Wheel and sdist of a clone: with generated modules, without, with a package that lost its `__init__.py`."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import build_dist, environments, hygiene_check

VLLM_PYTHON = "AFD_PATCHKIT_VLLM_PYTHON"
"""Interpreter of the environment with the real vLLM; `tools/test` sets it."""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """The tracked files, as a fresh clone has them."""
    folder = tmp_path / "clone"
    for path in hygiene_check.tracked(root):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, folder / path)
    return folder


def build(clone: Path, *what: str) -> tuple[list[Path], str]:
    """The distributions, and what the build said."""
    said = run(sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", clone.parent / "dist", clone, cwd=clone)
    return sorted((clone.parent / "dist").iterdir()), said


def generate(clone: Path, *files: str) -> Path:
    package = clone / "generated" / build_dist.PACKAGE
    for file in files:
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text("VALUE = 1\n", encoding="utf-8")
    return package


def test_a_fresh_clone_builds_the_engine_alone_and_says_so(clone):
    (wheel,), said = build(clone, "--wheel")
    assert "this wheel holds the engine only" in said
    names = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in names if n.startswith(build_dist.PACKAGE)]
    assert {"afd_patchkit/__init__.py", "afd_patchkit/py.typed"} <= set(names)
    pages = {n for n in names if n.startswith("afd_patchkit/review/pages/")}
    assert len(pages) == len(list((clone / "afd_patchkit/review/pages").glob("*.md")))
    assert build_dist.wheel_problems(wheel, clone / "generated" / build_dist.PACKAGE) == []


def test_generated_modules_are_in_the_wheel_and_not_in_the_sdist(clone):
    package = generate(clone, "__init__.py", "set_a/__init__.py", "set_a/runner.py", "set_a/__pycache__/x.pyc", "notes.txt")
    (wheel, sdist), _ = build(clone, "--wheel", "--sdist")
    names = [n for n in zipfile.ZipFile(wheel).namelist() if n.startswith(build_dist.PACKAGE)]
    assert sorted(n.removeprefix("afd_backports/") for n in names) == ["__init__.py", "set_a/__init__.py", "set_a/runner.py"]
    assert build_dist.wheel_problems(wheel, package) == []
    lock = clone / "generated/patchkit.lock"
    assert build_dist.sdist_problems(sdist) == ([] if lock.is_file() else [f"{sdist.name}: generated/patchkit.lock is missing"])


def test_a_package_without_init_stops_the_build(clone):
    generate(clone, "__init__.py", "set_a/deep/runner.py")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--wheel", str(clone)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "no __init__.py in generated/afd_backports/set_a/deep" in done.stdout + done.stderr


def test_a_wheel_that_lacks_a_module_is_noticed(clone):
    package = generate(clone, "__init__.py", "a.py")
    (wheel,), _ = build(clone, "--wheel")
    generate(clone, "b.py")
    assert build_dist.wheel_problems(wheel, package) == [f"{wheel.name}: afd_backports/b.py is missing"]


@pytest.mark.upstream
def test_the_wheel_in_a_fresh_environment(clone, tmp_path):
    """Regenerate in a clone, build, install into an environment of its own, use command and modules."""
    run(sys.executable, "-m", "afd_patchkit", "regen", cwd=clone, env={"PYTHONPATH": str(clone)})
    package = clone / "generated" / build_dist.PACKAGE
    modules = sorted(p.relative_to(package.parent).with_suffix("") for p in package.rglob("*.py"))
    assert len(modules) > len(list(package.rglob("__init__.py"))) > 0
    (wheel,), _ = build(clone, "--wheel")
    assert build_dist.wheel_problems(wheel, package) == []

    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environments.python_of(environment)
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, "setuptools", cwd=tmp_path)
    command = python.with_name("afd-patchkit.exe" if os.name == "nt" else "afd-patchkit")
    version = run(python, "-c", "import afd_patchkit; print(afd_patchkit.__version__)", cwd=tmp_path).strip()
    assert version in run(command, "--version", cwd=tmp_path)

    site = run(python, "-c", "import afd_backports, pathlib; print(pathlib.Path(afd_backports.__file__).parent.parent)", cwd=tmp_path)
    find = f"import setuptools; print(*setuptools.find_packages({site.strip()!r}, include=['afd_backports*']), sep='\\n')"
    folders = {p.parent for p in package.rglob("*.py")}
    assert sorted(run(python, "-W", "ignore", "-c", find, cwd=tmp_path).split()) == sorted(
        ".".join(f.relative_to(package.parent).parts) for f in folders
    )
    run(python, "-m", "compileall", "-q", Path(site.strip()) / "afd_backports", cwd=tmp_path)
    _import_on_vllm(wheel, [".".join(m.parts).removesuffix(".__init__") for m in modules], tmp_path)


def _needs_npu(source: str) -> bool:
    """Whether a module imports vllm-ascend when it is imported, and so an accelerator's libraries."""
    imported = {node.module or "" for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)}
    return any(name.partition(".")[0] == "vllm_ascend" for name in imported)


def _import_on_vllm(wheel: Path, modules: list[str], folder: Path) -> None:
    """Import every generated module from the wheel on the real vLLM, where that environment is there.

    Those on vllm-ascend are imported on it, or on its stand-in, by `tests/dbo/test_ascend_*`.
    """
    interpreter = os.environ.get(VLLM_PYTHON)
    if not interpreter:
        pytest.skip(f"wheel installed and compiled; no environment with vLLM to import its modules in (`tools/test` sets {VLLM_PYTHON})")
    unpacked = folder / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    sources = {name: unpacked / f"{name.replace('.', os.sep)}.py" for name in modules}
    npu = {name for name, path in sources.items() if path.is_file() and _needs_npu(path.read_text(encoding="utf-8"))}
    assert {name.rpartition(".")[2] for name in npu} == {"ascend_params", "ascend_graphs", "ascend_runner"}
    modules = [name for name in modules if name not in npu]
    code = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    said = run(interpreter, "-c", code, *modules, cwd=folder, env={"PYTHONPATH": str(unpacked)})
    for name in modules:
        assert str(unpacked / name.replace(".", os.sep)) in said
