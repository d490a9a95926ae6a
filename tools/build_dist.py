"""Build the distributions: `regen`, `check`, wheel and sdist, and a look at what went in."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tools.environments import ROOT

PACKAGE = "afd_backports"


def wheel_problems(wheel: Path, generated: Path) -> list[str]:
    """What is wrong with a wheel: generated modules missing, foreign files, packages without `__init__.py`."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {f"{PACKAGE}/{p.relative_to(generated).as_posix()}" for p in generated.rglob("*.py")} if generated.is_dir() else set()
    problems = [f"{wheel.name}: {name} is missing" for name in sorted(wanted - names)]
    tops = {name.partition("/")[0] for name in names}
    problems += [f"{wheel.name}: {top} does not belong there" for top in sorted(tops - {"afd_patchkit", PACKAGE}) if ".dist-info" not in top]
    folders = {PurePosixPath(name).parent for name in names if name.endswith(".py")}
    problems += [f"{wheel.name}: {f} has no __init__.py" for f in sorted(folders) if f"{f}/__init__.py" not in names]
    return problems


def sdist_problems(sdist: Path) -> list[str]:
    """What is wrong with a source distribution: upstream text in it, or what `regen` needs missing."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    problems = [f"{sdist.name}: {n} holds upstream text" for n in sorted(names) if n.startswith(f"generated/{PACKAGE}/")]
    needed = ["manifests/pins.yaml", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "generated/patchkit.lock"]
    return problems + [f"{sdist.name}: {name} is missing" for name in needed if name not in names]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/build`."""
    parser = argparse.ArgumentParser(prog="tools/build", description="Regenerate, then build and verify sdist and wheel.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the distributions (dist/)")
    options = parser.parse_args(arguments)
    output: Path = options.output.resolve()
    before = set(output.glob("*")) if output.is_dir() else set()
    for command in (
        [sys.executable, "-m", "afd_patchkit", "regen"],
        [sys.executable, "-m", "afd_patchkit", "check"],
        [sys.executable, "-m", "build", "--sdist", "--wheel", "--outdir", str(output), str(ROOT)],
    ):
        print("----", *command[1:], flush=True)
        done = subprocess.run(command, cwd=ROOT, check=False).returncode
        if done:
            return done
    problems = []
    for path in sorted(output.glob("*")):
        if path.suffix == ".whl":
            problems += wheel_problems(path, ROOT / "generated" / PACKAGE)
        elif path.name.endswith(".tar.gz"):
            problems += sdist_problems(path)
        if path not in before:
            print(f"{path} ({path.stat().st_size:,} bytes)")
    for problem in problems:
        print(problem)
    return 1 if problems else 0
