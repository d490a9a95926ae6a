"""Build the distributions: `regen`, `check`, wheel and sdist of the engine, wheel of the generated modules, and a look at each."""

from __future__ import annotations

import argparse
import email.parser
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tools import environments
from tools.environments import ROOT

ENGINE = "afd_patchkit"
PACKAGE = "afd_backports"
LICENCES = {"Apache-2.0"}
"""Whose texts the distribution of the generated modules carries."""
_SPDX = re.compile(r"^# SPDX-License-Identifier: (.+)$", re.MULTILINE)


def engine_problems(wheel: Path) -> list[str]:
    """What is wrong with the engine's wheel: foreign files, a package without `__init__.py`."""
    with zipfile.ZipFile(wheel) as archive:
        return [f"{wheel.name}: {p}" for p in _foreign(archive, ENGINE)]


def backports_problems(wheel: Path, generated: Path) -> list[str]:
    """What is wrong with the wheel of the generated modules.

    Args:
        wheel: the file.
        generated: the package that `regen` wrote, `generated/afd_backports`.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        found = list(_foreign(archive, PACKAGE))
        wanted = {f"{PACKAGE}/{p.relative_to(generated).as_posix()}": p for p in generated.rglob("*.py")}
        info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
        texts = [f"{PACKAGE}/py.typed", f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"]
        upstream = {p.relative_to(generated).as_posix(): p for p in generated.glob("licenses/*/**/*") if p.is_file()}
        texts += [f"{PACKAGE}/{name}" for name in upstream] + [f"{info}/licenses/{name}" for name in upstream]
        found += [f"{name} is missing" for name in sorted({*wanted, *texts} - names)]
        for name in sorted(wanted.keys() & names):
            data = archive.read(name)
            if data != wanted[name].read_bytes():
                found.append(f"{name} is not the generated file")
            others = set(_SPDX.findall(data.decode())) - LICENCES
            found += [f"{name} is under {licence}, whose text is not shipped" for licence in sorted(others)]
        metadata = email.parser.BytesParser().parsebytes(archive.read(f"{info}/METADATA"))
        named = {f"{info}/licenses/{name}" for name in metadata.get_all("License-File", [])}
        found += [f"{name} is no License-File" for name in sorted({n for n in texts if n.startswith(info)} - named)]
        needs = [n for n in metadata.get_all("Requires-Dist", []) if "extra ==" not in n or "afd-patchkit" in n]
        found += [f"needs {need}" for need in needs]
    return [f"{wheel.name}: {problem}" for problem in found]


def _foreign(archive: zipfile.ZipFile, package: str) -> Iterator[str]:
    names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    yield from (f"{top} does not belong there" for top in sorted(tops - {package}) if not top.endswith(".dist-info"))
    folders = {PurePosixPath(name).parent for name in names if name.endswith(".py")}
    yield from (f"{folder} has no __init__.py" for folder in sorted(folders) if f"{folder}/__init__.py" not in names)


def sdist_problems(sdist: Path) -> list[str]:
    """What is wrong with a source distribution: upstream text in it, or what `regen` and both builds need missing."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    problems = [
        f"{sdist.name}: {n} holds upstream text" for n in sorted(names) if n.startswith(f"generated/{PACKAGE}/")
    ]
    backports = [f"backports/{name}" for name in ("pyproject.toml", "hatch_build.py", "LICENSE", "NOTICE", "README.md")]
    needed = ["manifests/pins.yaml", "pyproject.toml", "README.md", "LICENSE", "generated/patchkit.lock", *backports]
    return problems + [f"{sdist.name}: {name} is missing" for name in needed if name not in names]


def distribution_problems(paths: Sequence[Path], generated: Path) -> list[str]:
    """What is wrong with distributions, each judged as what its name says it is."""
    problems = []
    for path in paths:
        if path.name.startswith(f"{PACKAGE}-"):
            problems += backports_problems(path, generated)
        elif path.suffix == ".whl":
            problems += engine_problems(path)
        elif path.name.endswith(".tar.gz"):
            problems += sdist_problems(path)
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/build`."""
    parser = argparse.ArgumentParser(
        prog="tools/build",
        description="Regenerate, then build and verify afd-patchkit (wheel and sdist) and afd-backports (wheel).",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the distributions (dist/)")
    options = parser.parse_args(arguments)
    output: Path = options.output.resolve()
    python = str(environments.project())
    build = [python, "-m", "build", "--outdir", str(output), "--wheel"]
    before = set(output.glob("*")) if output.is_dir() else set()
    for command in (
        [python, "-m", "afd_patchkit", "regen"],
        [python, "-m", "afd_patchkit", "check"],
        [*build, "--sdist", str(ROOT)],
        [*build, str(ROOT / "backports")],
    ):
        print("----", *command[1:], flush=True)
        done = subprocess.run(command, cwd=ROOT, check=False).returncode
        if done:
            return done
    paths = sorted(output.glob("*"))
    for path in paths:
        if path not in before:
            print(f"{path} ({path.stat().st_size:,} bytes)")
    problems = distribution_problems(paths, ROOT / "generated" / PACKAGE)
    for problem in problems:
        print(problem)
    return 1 if problems else 0
