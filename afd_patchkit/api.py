"""`regen` and `check`: one code path, generation into memory and then writing or comparing.

Cheap to import: what digests prove unchanged needs neither YAML, pydantic nor libcst.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afd_patchkit.findings.errors import ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding
from afd_patchkit.findings.report import ModuleReport, Progress, Report
from afd_patchkit.project import Project
from afd_patchkit.run import lock as locks
from afd_patchkit.run.compare import check_files, locked_report, module_path, outline_path, stale_inputs
from afd_patchkit.version import __version__

if TYPE_CHECKING:
    from afd_patchkit.upstream.options import SourceOptions


def regen(
    project: Project,
    *,
    overrides: Mapping[str, str] | None = None,
    check: bool = False,
    modules: Sequence[str] = (),
    options: SourceOptions | None = None,
    full: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Generate every module, or compare (`check`) what would be generated with lock and files.

    Args:
        project: what to work on.
        overrides: pin or distribution name to version, in place of the pinned one. With another version than the
            pinned one it is written only if no entry needs a person.
        check: write nothing.
        modules: only these (paths below the generated package root, or the ends of such paths).
        options: where upstreams may come from.
        full: regenerate also what digests prove unchanged.
        jobs: worker processes; by default one below 400 entries.
        progress: told about modules.

    Returns:
        the report; user errors are findings in it, never exceptions.
    """
    started = time.monotonic()
    try:
        report = _regen(project, dict(overrides or {}), check, modules, options, full, jobs, progress)
    except PatchkitError as error:
        report = Report(findings=error.findings)
        if isinstance(error, ManifestError):  # a broken manifest must not hide hand edits of other modules
            report = Report(findings=(*error.findings, *_hand_edits(project)))
    else:
        if check and not modules:
            report = replace(report, findings=(*report.findings, *_stale_inventory(project)))
    return replace(report, seconds=time.monotonic() - started)


def _stale_inventory(project: Project) -> list[Finding]:
    from afd_patchkit.queries import inventory

    return inventory.stale(project, locks.current_inputs(project)) if inventory.path_of(project).exists() else []


def _hand_edits(project: Project) -> list[Finding]:
    try:
        lock = locks.load(project.lock, project.shown(project.lock))
    except PatchkitError as error:
        return list(error.findings)
    return check_files(project, lock) if lock else []


def _regen(
    project: Project,
    overrides: dict[str, str],
    check: bool,
    modules: Sequence[str],
    options: SourceOptions | None,
    full: bool,
    jobs: int | None,
    progress: Progress | None,
) -> Report:
    if not check:
        from afd_patchkit.run.exchange import recover

        recover(project.generated)
    _end_upgrade(project, check=check)
    lock = locks.load(project.lock, project.shown(project.lock))
    inputs = locks.current_inputs(project)
    if lock is not None and not full and not modules:
        quick = _shortcut(project, lock, inputs, overrides, check=check)
        if quick is not None:
            return quick
    from afd_patchkit.run.generate import generate_all

    return generate_all(
        project,
        lock,
        inputs,
        overrides=overrides,
        check=check,
        modules=modules,
        options=options,
        full=full,
        jobs=jobs,
        progress=progress,
    )


def _end_upgrade(project: Project, *, check: bool) -> None:
    """End an `upgrade --write` that was interrupted; `check` only says so."""
    if (project.generated / locks.JOURNAL).exists():
        from afd_patchkit.upgrade.write import recover

        recover(project, write=not check)


def _shortcut(
    project: Project, lock: locks.Lock, inputs: Mapping[str, str], overrides: Mapping[str, str], *, check: bool
) -> Report | None:
    """The report when digests prove that regeneration would change nothing; None when they do not."""
    if lock.get("engine") != locks.ENGINE or lock.get("tool") != __version__ or lock.get("overrides") or lock.get("warnings"):
        return None  # warnings are shown on every run until a person has dealt with them
    pinned = {name: pin["version"] for name, pin in lock["pins"].items()}
    distributions = {pin["distribution"]: pin["version"] for pin in lock["pins"].values() if pin["role"] == "target"}
    if any((pinned.get(name) or distributions.get(name)) != version for name, version in overrides.items()):
        return None
    if stale_inputs(lock, inputs):
        return None
    findings = check_files(project, lock, complete=not check)
    if findings and not check:
        return None
    return Report(tuple(findings), tuple(locked_reports(project, lock, findings)), shortcut=True)


def locked_reports(project: Project, lock: Mapping[str, Any], findings: Sequence[Finding]) -> list[ModuleReport]:
    """One line per module from the lock alone; `findings` say which files are not what the lock says."""
    touched = {f.generated.file for f in findings if f.generated is not None}

    def status(name: str, found: Mapping[str, Any]) -> str:
        if "sha256" not in found:
            return "retired"
        paths = (module_path(project, name), outline_path(project, name))
        return "differs" if touched.intersection(map(project.shown, paths)) else "unchanged"

    return [locked_report(name, found, status(name, found)) for name, found in sorted(lock["modules"].items())]


def load_project(start: Path | None = None) -> Project:
    """The project that `start` lies in; see `afd_patchkit.project.load_project`."""
    from afd_patchkit.project import load_project as load

    return load(start)


def check(project: Project, **arguments: Any) -> Report:
    """`regen` that writes nothing and reports every difference to lock and files."""
    return regen(project, check=True, **arguments)
