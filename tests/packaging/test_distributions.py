"""The two distributions of a clone: the engine alone, the generated modules alone, and what keeps the second from being built."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path

import pytest

from afd_patchkit.findings.report import ModuleCounts
from afd_patchkit.header import INIT
from afd_patchkit.project import load_project
from afd_patchkit.run import lock as locks
from afd_patchkit.run.ownership import outline_path, sums_text
from afd_patchkit.version import ENGINE
from tools import build_dist, environments, hygiene_check, pinned

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VLLM_PYTHON = "AFD_PATCHKIT_VLLM_PYTHON"
"""Interpreter of the environment with the real vLLM; `tools/test` sets it."""
MODULES = ("set_a/deep/halves.py", "set_a/runner.py")
INITS = ("__init__.py", "set_a/__init__.py", "set_a/deep/__init__.py")


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


@pytest.fixture
def invented(clone: Path) -> Path:
    """The generated package of a clone whose lock names two invented modules; returns its folder."""
    package = clone / "generated" / build_dist.PACKAGE
    for file in (*INITS, *MODULES, "set_a/__pycache__/x.pyc", "notes.txt"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(f"# SPDX-License-Identifier: Apache-2.0\nNAME = {file!r}\n", encoding="utf-8")
    (package / "licenses/vllm-1").mkdir(parents=True)
    (package / "licenses/vllm-1/LICENSE").write_text("Free.\n", encoding="utf-8")
    (package / "py.typed").write_text("", encoding="utf-8")
    (package / "set_a/__pycache__/x.pyc").write_bytes(bytes(16))
    for path in (*package.glob("**/__init__.py"), *(clone / "generated/outlines").rglob("*.outline")):
        path.write_bytes(INIT) if path.suffix == ".py" else path.unlink()
    lock_again(package)
    return package


def lock_again(package: Path, **more: object) -> None:
    """The lock of the modules as they are now."""
    project = load_project(package)
    modules: dict[str, dict[str, object]] = {}
    for name in (*MODULES, "set_a/retired.py"):
        empty = {key: [] for key in ("parts", "warnings")} | {key: {} for key in ("entries", "files", "retired")}
        modules[name] = {"manifest": "m.yaml", **empty, "counts": asdict(ModuleCounts())}
        if name in MODULES:  # the lock keeps what it left out, without a text
            outline = outline_path(project, name)
            outline.parent.mkdir(parents=True, exist_ok=True)
            outline.write_text("~\n", encoding="utf-8")
            modules[name] |= {"sha256": digest(package / name), "outline": digest(outline)}
    pin = {"distribution": "vllm", "version": "1", "role": "target", "packages": [], "files": {}}
    pin |= {
        "artifact": {"source": "none", "file": "", "sha256": None},
        "licences": {"LICENSE": digest(package / "licenses/vllm-1/LICENSE")},
    }
    lock = {
        "schema": locks.SCHEMA,
        "tool": "0",
        "engine": ENGINE,
        "inputs": locks.current_inputs(project),
        "warnings": [],
    }
    lock |= {"pins": {"vllm": pin}, "modules": modules, **more}
    project.lock.write_bytes(locks.dumps(lock))
    (package / "licenses/SHA256SUMS").write_bytes(sums_text(project, lock))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _command(project: Path, *what: str) -> list[str | Path]:
    return [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", project / "dist", project]


def build(project: Path, *what: str) -> list[Path]:
    """The distributions that lie in `dist` after the build."""
    run(*_command(project, *what), cwd=project)
    return sorted((project / "dist").iterdir())


def names_in(wheel: Path) -> list[str]:
    """The files of a wheel, its own records aside."""
    return sorted(name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name)


def test_the_engine_s_distributions_hold_no_generated_module(clone, invented):
    sdist, wheel = sorted(build(clone, "--wheel", "--sdist"), key=lambda p: p.suffix)
    assert (invented / "set_a/runner.py").is_file()
    names = names_in(wheel)
    assert {name.partition("/")[0] for name in names} == {"afd_patchkit"}
    assert {"afd_patchkit/__init__.py", "afd_patchkit/py.typed"} <= set(names)
    pages = {path.name for path in (clone / "afd_patchkit").rglob("PK*.md")}
    assert pages
    assert {name.rpartition("/")[2] for name in names if name.endswith(".md")} == pages
    assert build_dist.distribution_problems([wheel, sdist], invented) == []


def test_the_wheel_of_the_generated_modules_holds_them_and_nothing_else(clone, invented):
    (wheel,) = build(clone / "backports", "--wheel")
    licences = ("licenses/SHA256SUMS", "licenses/vllm-1/LICENSE")
    assert names_in(wheel) == sorted(f"afd_backports/{name}" for name in (*INITS, *MODULES, "py.typed", *licences))
    metadata = zipfile.ZipFile(wheel).read(f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/METADATA").decode()
    assert "License-File: licenses/vllm-1/LICENSE\n" in metadata
    assert build_dist.distribution_problems([wheel], invented) == []


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (shutil.rmtree, "afd_backports/set_a/runner.py: runner.py is missing"),
        (lambda package: (package / "set_a/runner.py").unlink(), "set_a/runner.py: runner.py is missing"),
        (
            lambda package: (package / "set_a/deep/__init__.py").unlink(),
            "set_a/deep/__init__.py: __init__.py is missing",
        ),
        (
            lambda package: (package / "set_a/runner.py").write_text("NAME = 2\n"),
            "set_a/runner.py:1: this generated module was edited by hand",
        ),
        (lambda package: (package / "set_a/old.py").write_text(""), "set_a/old.py: no manifest generates this file"),
        (lambda package: (package / "licenses/vllm-1/LICENSE").unlink(), "licenses/vllm-1/LICENSE: LICENSE is missing"),
        (
            lambda package: (package.parents[1] / "manifests/new.yaml").write_text(""),
            "manifests/new.yaml changed since",
        ),
        (lambda package: (package.parent / "patchkit.lock").unlink(), "patchkit.lock is not there"),
        (lambda package: lock_again(package, overrides={"vllm": "0.30.0"}), "they were generated for vllm 0.30.0"),
    ],
)
def test_modules_that_are_not_the_lock_s_are_not_shipped(clone, invented, spoil, expected):
    spoil(invented)
    done = subprocess.run(_command(clone / "backports", "--wheel"), capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert expected in said
    assert "run `afd-patchkit regen`" in said
    assert not list((clone / "backports").glob("dist/*"))


def test_the_generated_modules_have_no_source_distribution(clone, invented):
    done = subprocess.run(_command(clone / "backports", "--sdist"), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "a source distribution cannot carry it; build a wheel" in done.stdout + done.stderr


def test_a_wheel_that_is_not_the_generated_package_is_noticed(clone, invented):
    (wheel,) = build(clone / "backports", "--wheel")
    (invented / "set_a/runner.py").write_text("NAME = 2\n", encoding="utf-8")
    (invented / "set_a/new.py").write_text("", encoding="utf-8")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("afd_patchkit/__init__.py", "")
        archive.writestr("afd_backports/set_b/runner.py", "")
    problems = build_dist.distribution_problems([wheel], invented)
    assert [p.removeprefix(f"{wheel.name}: ") for p in problems] == [
        "afd_patchkit does not belong there",
        "afd_backports/set_b has no __init__.py",
        "afd_backports/set_a/new.py is missing",
        "afd_backports/set_a/runner.py is not the generated file",
    ]


def test_text_under_another_licence_is_noticed(clone, invented):
    runner = invented / "set_a/runner.py"
    runner.write_text("# SPDX-License-Identifier: MIT\n", encoding="utf-8")
    lock_again(invented)
    (wheel,) = build(clone / "backports", "--wheel")
    (problem,) = build_dist.distribution_problems([wheel], invented)
    assert problem.endswith("afd_backports/set_a/runner.py is under MIT, whose text is not shipped")


def test_a_need_of_the_engine_is_noticed(clone, invented):
    project = clone / "backports/pyproject.toml"
    project.write_text(
        project.read_text(encoding="utf-8").replace("dependencies = []", 'dependencies = ["afd-patchkit"]'),
        encoding="utf-8",
    )
    (wheel,) = build(clone / "backports", "--wheel")
    assert build_dist.distribution_problems([wheel], invented) == [f"{wheel.name}: needs afd-patchkit"]


def test_the_metadata_of_the_modules_are_those_of_repository_and_pins(root):
    engine = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "backports/pyproject.toml").read_text(encoding="utf-8"))
    extras, pins = project["project"]["optional-dependencies"], pinned.pins()
    assert extras["vllm"] == [f"vllm=={pins['vllm'].version}"]
    assert {"vllm", "npu"} == extras.keys()
    assert not {"vllm", "npu"} & engine["project"]["optional-dependencies"].keys()
    assert project["project"]["requires-python"] == engine["project"]["requires-python"]
    assert (root / "backports/LICENSE").read_bytes() == (root / "LICENSE").read_bytes()
    assert engine["tool"]["afd-patchkit"]["package"] == build_dist.PACKAGE


def _environment(folder: Path, wheel: Path) -> Path:
    """The interpreter of a fresh environment that holds one distribution and what it needs."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    python = environments.python_of(folder)
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=folder.parent)
    return python


@pytest.mark.upstream
def test_each_alone_in_a_fresh_environment(clone, tmp_path):
    """Regenerate in a clone, build both, install each into an environment of its own, use command and modules."""
    run(sys.executable, "-m", "afd_patchkit", "regen", cwd=clone, env={"PYTHONPATH": str(clone)})
    package = clone / "generated" / build_dist.PACKAGE
    modules = sorted(p.relative_to(package.parent).with_suffix("") for p in package.rglob("*.py"))
    assert len(modules) > len(list(package.rglob("__init__.py"))) > 0
    (engine,), (backports,) = build(clone, "--wheel"), build(clone / "backports", "--wheel")
    assert build_dist.distribution_problems([engine, backports], package) == []

    python = _environment(tmp_path / "engine", engine)
    command = python.with_name("afd-patchkit.exe" if os.name == "nt" else "afd-patchkit")
    version = run(python, "-c", "import afd_patchkit; print(afd_patchkit.__version__)", cwd=tmp_path).strip()
    assert version in run(command, "--version", cwd=tmp_path)
    find = "import importlib.util, sys; print([n for n in sys.argv[1:] if importlib.util.find_spec(n)])"
    assert run(python, "-c", find, "afd_patchkit", "afd_backports", cwd=tmp_path).strip() == "['afd_patchkit']"

    python = _environment(tmp_path / "modules", backports)
    assert run(python, "-c", find, "afd_patchkit", "afd_backports", cwd=tmp_path).strip() == "['afd_backports']"
    ask = "from importlib.metadata import distributions as d; print(sorted(x.name for x in d()))"
    assert set(ast.literal_eval(run(python, "-c", ask, cwd=tmp_path))) <= {
        "afd-backports",
        "pip",
        "setuptools",
        "wheel",
    }
    where = "import afd_backports, pathlib; print(pathlib.Path(afd_backports.__file__).parent)"
    site = Path(run(python, "-c", where, cwd=tmp_path).strip())
    assert (site / "py.typed").is_file()
    run(python, "-m", "compileall", "-q", site, cwd=tmp_path)
    _import_on_vllm(site.parent, [".".join(m.parts).removesuffix(".__init__") for m in modules], tmp_path)


def _needs_npu(source: str) -> bool:
    """Whether a module imports vllm-ascend when it is imported, and so an accelerator's libraries."""
    imported = {node.module or "" for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)}
    return any(name.partition(".")[0] == "vllm_ascend" for name in imported)


def _import_on_vllm(installed: Path, modules: list[str], folder: Path) -> None:
    """Import every generated module from the installed wheel on the real vLLM, where that environment is there.

    Those on vllm-ascend are imported on it, or on its stand-in, by `tests/dbo/test_ascend_*`.
    """
    interpreter = os.environ.get(VLLM_PYTHON)
    if not interpreter:
        pytest.skip(
            f"wheel installed and compiled; no environment with vLLM to import its modules in (`tools/test` sets {VLLM_PYTHON})"
        )
    alone = folder / "alone"
    shutil.copytree(installed / build_dist.PACKAGE, alone / build_dist.PACKAGE)
    sources = {name: alone / f"{name.replace('.', os.sep)}.py" for name in modules}
    npu = {name for name, path in sources.items() if path.is_file() and _needs_npu(path.read_text(encoding="utf-8"))}
    assert npu == {name for name in modules if name.rpartition(".")[2].startswith("ascend_")} != set()
    modules = [name for name in modules if name not in npu]
    code = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    said = run(interpreter, "-c", code, *modules, cwd=folder, env={"PYTHONPATH": str(alone)})
    for name in modules:
        assert str(alone / name.replace(".", os.sep)) in said
