"""Compare files on disk with the lock: what was edited by hand, what is stale, what is left over. Cheap to import."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from afd_patchkit.digests import sha256, short
from afd_patchkit.files import read_regular
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.report import ModuleCounts, ModuleReport
from afd_patchkit.project import Project
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.ownership import foreign, licence_paths, module_path, outline_path, unknown_files
from afd_patchkit.run.support import support_files


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
    expected = {name: entry for name, entry in lock["modules"].items() if "sha256" in entry}
    support = support_files(project, lock)
    need_modules = complete or project.track or project.package_folder.exists()
    for name, entry in sorted(expected.items()):
        found += _check(project, outline_path(project, name), entry["outline"], "outline", None)
        if need_modules:
            found += _check(project, module_path(project, name), entry["sha256"], "module", outline_path(project, name))
    if need_modules:
        for path, text in support.items():
            found += _check(project, path, sha256(text), "file", None)
        for path, digest in sorted(licence_paths(project, lock).items()):
            found += _check(project, path, digest, "licence file", None)
    found += [foreign(project, path) for path in unknown_files(project, expected, support)]
    return found


def absent(project: Project, lock: Lock | None) -> list[Finding]:
    """A note where modules that version control leaves out are not on this machine."""
    if lock is None or project.track or project.package_folder.exists():
        return []
    if not any("sha256" in entry for entry in lock["modules"].values()):
        return []
    return [
        finding(
            "PK657",
            "the modules are not generated here: run `afd-patchkit regen`; lock and outlines were compared",
            generated=Position(project.shown(project.package_folder)),
        )
    ]


def _check(project: Project, path: Path, expected: str, what: str, outline: Path | None) -> Iterator[Finding]:
    link = project.linked(path)
    if link is not None:
        yield foreign(project, link)
        return
    try:
        data = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        yield _missing(project, path)
        return
    except OSError as error:
        yield finding("PK106", f"the {what} cannot be read: {error.strerror}", generated=Position(project.shown(path)))
        return
    if sha256(data) == expected:
        return
    if sha256(data.replace(b"\r\n", b"\n")) == expected and what != "module":
        return  # checked out with other line ends
    line, detail = _where(data, outline)
    yield finding(
        "PK102",
        f"this generated {what} was edited by hand, or is older than the lock",
        generated=Position(project.shown(path), line),
        details=(detail,) if detail else (),
        help="Put the change into the manifest and run `afd-patchkit regen`; regen overwrites the edit of a file that carries the "
        "header of generated files.",
    )


def _where(data: bytes, outline: Path | None) -> tuple[int, str]:
    """First line of a module that its outline does not explain; (0, "") when that cannot be told."""
    if outline is None:
        return 0, ""
    try:
        rows = read_regular(outline).decode("utf-8", "replace").split("\n")
    except OSError:
        return 0, ""
    lines = data.decode("utf-8", "replace").split("\n")
    at = 0
    for expected in rows:
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


def locked_report(name: str, found: Mapping[str, Any], status: str | None = None) -> ModuleReport:
    """The line of one module from its record in the lock."""
    return ModuleReport(
        module=name,
        status=status or ("unchanged" if "sha256" in found else "retired"),
        retired=tuple(f"{name}::{entry}" for entry in found.get("retired", ())),
        counts=ModuleCounts(*(found["counts"][key.name] for key in fields(ModuleCounts))),
    )
