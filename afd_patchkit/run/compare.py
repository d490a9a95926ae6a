"""Compare files on disk with the lock: what was edited by hand, what is stale, what is left over. Cheap to import."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from afd_patchkit.digests import sha256, short
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.report import ModuleCounts, ModuleReport
from afd_patchkit.project import Project
from afd_patchkit.run.lock import Lock


def module_path(project: Project, module: str) -> Path:
    """Where a generated module is."""
    return project.generated / project.package / module


def outline_path(project: Project, module: str) -> Path:
    """Where a module's outline is."""
    return project.generated / "outlines" / Path(module).with_suffix(".outline")


def stale_inputs(lock: Lock, inputs: Mapping[str, str]) -> list[str]:
    """Input files that are not what the lock was made from: changed, added or gone."""
    old: Mapping[str, str] = lock.get("inputs", {})
    return sorted(name for name in {*old, *inputs} if old.get(name) != inputs.get(name))


def check_files(project: Project, lock: Lock, *, complete: bool = False) -> list[Finding]:
    """Findings for outlines and modules that are not what the lock says.

    Args:
        project: the project.
        lock: its lock.
        complete: every module must be there; else a project without any generated module is fine (a fresh clone).
    """
    found: list[Finding] = []
    package = project.generated / project.package
    expected = {name: entry for name, entry in lock["modules"].items() if "sha256" in entry}
    need_modules = complete or project.track or package.exists()
    for name, entry in sorted(expected.items()):
        found += _check(project, outline_path(project, name), entry["outline"], "outline", None)
        if need_modules:
            found += _check(project, module_path(project, name), entry["sha256"], "module", outline_path(project, name))
    if need_modules and expected:
        found += [_missing(project, path) for path in package_inits(project, expected) if not path.is_file()]
    known = {module_path(project, name) for name in expected} | set(package_inits(project, expected))
    found += [_leftover(project, p) for p in generated_files(package, ".py") if p not in known]
    outlines = {outline_path(project, name) for name in expected}
    found += [
        _leftover(project, p) for p in generated_files(project.generated / "outlines", ".outline") if p not in outlines
    ]
    return found


def package_inits(project: Project, modules: Mapping[str, Any]) -> list[Path]:
    """The `__init__.py` of every package that holds a module."""
    root = project.generated / project.package
    folders = {root} if modules else set()
    for name in modules:
        folder = (root / name).parent
        while folder != root:
            folders.add(folder)
            folder = folder.parent
    return sorted(folder / "__init__.py" for folder in folders)


def generated_files(folder: Path, suffix: str) -> Iterator[Path]:
    """The files below `folder` with a suffix, in order; none when there is no such folder."""
    if folder.is_dir():
        yield from sorted(p for p in folder.rglob(f"*{suffix}") if p.is_file())


def _check(project: Project, path: Path, expected: str, what: str, outline: Path | None) -> Iterator[Finding]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        yield _missing(project, path)
        return
    except OSError as error:
        yield finding("PK106", f"the {what} cannot be read: {error.strerror}", generated=Position(project.shown(path)))
        return
    if sha256(data) == expected:
        return
    if sha256(data.replace(b"\r\n", b"\n")) == expected and what == "outline":
        return  # checked out with other line ends
    line, detail = _where(data, outline)
    yield finding(
        "PK102",
        f"this generated {what} was edited by hand, or is older than the lock",
        generated=Position(project.shown(path), line),
        details=(detail,) if detail else (),
        help="Put the change into the manifest and run `afd-patchkit regen`; regen overwrites the edit.",
    )


def _where(data: bytes, outline: Path | None) -> tuple[int, str]:
    """First line of a module that its outline does not explain; (0, "") when that cannot be told."""
    if outline is None or not outline.is_file():
        return 0, ""
    lines = data.decode("utf-8", "replace").split("\n")
    at = 0
    for expected in outline.read_text(encoding="utf-8").split("\n"):
        fold = re.match(r"~ (\d+) upstream lines?[^:]*: \S+ \S+:\d+-\d+ ([0-9a-f]{16})$", expected)
        if fold:
            count = int(fold[1])
            text = "\n".join(line.strip() for line in lines[at : at + count])
            if short(text, 16) != fold[2]:
                return at + 1, f"one of lines {at + 1} to {at + count}, which should be upstream's"
            at += count
        elif at >= len(lines) or lines[at].rstrip() != expected:
            return at + 1, (lines[at].strip()[:100] if at < len(lines) else "the end of the file")
        else:
            at += 1
    return 0, ""


def _missing(project: Project, path: Path) -> Finding:
    return finding(
        "PK103",
        f"{path.name} is missing",
        generated=Position(project.shown(path)),
        help="Run `afd-patchkit regen`.",
    )


def _leftover(project: Project, path: Path) -> Finding:
    return finding(
        "PK104",
        "no manifest generates this file",
        generated=Position(project.shown(path)),
        help="Delete it; `afd-patchkit regen` does. Hand-written code belongs beside the generated package.",
    )


def locked_report(name: str, found: Mapping[str, Any], status: str | None = None) -> ModuleReport:
    """The line of one module from its record in the lock."""
    return ModuleReport(
        module=name,
        status=status or ("unchanged" if "sha256" in found else "retired"),
        retired=tuple(f"{name}::{entry}" for entry in found.get("retired", ())),
        counts=ModuleCounts(**found["counts"]),
    )
