"""The public Python API, and the face of the package: what each command does, for scripts.

`regen` and `check` are one code path, generation into memory and then writing or comparing. Cheap to import: what digests
prove unchanged needs neither YAML, pydantic nor libcst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afd_patchkit.findings.errors import ManifestError, PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Finding, Position, Severity
from afd_patchkit.findings.report import ModuleReport, PinReport, Progress, Report
from afd_patchkit.project import JOURNAL, Project
from afd_patchkit.run import lock as locks
from afd_patchkit.run.compare import absent, check_files, locked_report, stale_inputs
from afd_patchkit.run.options import RunOptions
from afd_patchkit.run.ownership import module_path, outline_path
from afd_patchkit.source.deep import deep
from afd_patchkit.version import ENGINE, __version__

if TYPE_CHECKING:
    from afd_patchkit.adopt.adopting import adopt
    from afd_patchkit.copies.audit import AuditOptions, audit
    from afd_patchkit.queries.aliases import aliases
    from afd_patchkit.queries.changes import diff
    from afd_patchkit.queries.entries import entry_facts
    from afd_patchkit.queries.installs import install_plan
    from afd_patchkit.queries.pins import newer_releases, pin_facts, pins_needs, releases_of
    from afd_patchkit.queries.show import show
    from afd_patchkit.run.generate import Generated
    from afd_patchkit.upgrade.accepting import accept, review
    from afd_patchkit.upgrade.plan import wanted_releases
    from afd_patchkit.upgrade.result import UpgradeResult
    from afd_patchkit.upgrade.upgrading import upgrade, upgrades
    from afd_patchkit.upstream.options import SourceOptions

__all__ = [
    "AuditOptions",
    "Finding",
    "ManifestError",
    "ModuleReport",
    "PatchkitError",
    "PinReport",
    "Position",
    "Progress",
    "Project",
    "Report",
    "RunOptions",
    "Severity",
    "SourceOptions",
    "UpstreamError",
    "__version__",
    "accept",
    "adopt",
    "aliases",
    "audit",
    "check",
    "diff",
    "entry_facts",
    "install_plan",
    "load_project",
    "newer_releases",
    "pin_facts",
    "pins_needs",
    "regen",
    "releases_of",
    "review",
    "show",
    "upgrade",
    "upgrades",
    "wanted_releases",
]

_HOMES = {
    "AuditOptions": "copies.audit",
    "SourceOptions": "upstream.options",
    "accept": "upgrade.accepting",
    "adopt": "adopt.adopting",
    "aliases": "queries.aliases",
    "audit": "copies.audit",
    "diff": "queries.changes",
    "entry_facts": "queries.entries",
    "install_plan": "queries.installs",
    "newer_releases": "queries.pins",
    "pin_facts": "queries.pins",
    "pins_needs": "queries.pins",
    "releases_of": "queries.pins",
    "review": "upgrade.accepting",
    "show": "queries.show",
    "upgrade": "upgrade.upgrading",
    "upgrades": "upgrade.upgrading",
    "wanted_releases": "upgrade.plan",
}


def __getattr__(name: str) -> Any:
    """Import what is slow to import when it is first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'afd_patchkit.api' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"afd_patchkit.{home}"), name)


def load_project(start: Path | None = None) -> Project:
    """The project that `start` lies in; see `afd_patchkit.project.load_project`."""
    from afd_patchkit.project import load_project as load

    return load(start)


def regen(project: Project, options: RunOptions | None = None) -> Report:
    """Generate every module and write what has changed.

    Returns:
        the report; user errors are findings in it, never exceptions.
    """
    return _run(project, options or RunOptions(), check=False)


def check(project: Project, options: RunOptions | None = None) -> Report:
    """`regen` that writes nothing and reports every difference to lock and files."""
    return _run(project, options or RunOptions(), check=True)


def _run(project: Project, options: RunOptions, *, check: bool) -> Report:
    started = time.monotonic()
    try:
        with deep("upstream or of a manifest"):
            report = _report(project, options, check=check)
    except PatchkitError as error:
        report = Report(findings=error.findings)
        if isinstance(error, ManifestError):  # a broken manifest must not hide hand edits of other modules
            report = Report(findings=(*error.findings, *_hand_edits(project)))
    else:
        if not options.modules:
            report = replace(report, findings=(*report.findings, *_inventory(project, report, check=check)))
    return replace(report, seconds=time.monotonic() - started)


def _inventory(project: Project, report: Report, *, check: bool) -> list[Finding]:
    """Whether the inventory is what the manifests say; `regen` renews its seal where it is."""
    from afd_patchkit.queries import inventory

    if not inventory.path_of(project).exists():
        return []
    if check:
        return inventory.stale(project, locks.current_inputs(project))
    if not report.exit_code:
        inventory.renew(project, locks.current_inputs(project))
    return []


def _hand_edits(project: Project) -> list[Finding]:
    try:
        lock = locks.load(project.lock, project.shown(project.lock))
    except PatchkitError as error:
        return list(error.findings)
    return check_files(project, lock) if lock else []


def _report(project: Project, options: RunOptions, *, check: bool) -> Report:
    if check:
        return _compared(project, options)
    from afd_patchkit.run.exchange import exclusive, interrupted

    if not (interrupted(project.generated) or _has_journal(project)):
        lock, inputs = _state(project)
        if (quick := _quick(project, lock, inputs, options, check=False)) is not None:
            return quick  # nothing is written, so nothing has to wait
    with exclusive(project):
        return _regenerated(project, options)


def _compared(project: Project, options: RunOptions) -> Report:
    _end_upgrade(project, check=True)
    lock, inputs = _state(project)
    report = _quick(project, lock, inputs, options, check=True)
    if report is None:
        from afd_patchkit.run.generate import checked, generate

        made = generate(project, lock, inputs, options)
        report = checked(made, _judged(project, made))
    return replace(report, findings=(*report.findings, *absent(project, lock)))


def _regenerated(project: Project, options: RunOptions) -> Report:
    """Generate and write; the caller holds `exclusive`, so that what is read here is what is replaced."""
    from afd_patchkit.run.exchange import recover

    recover(project.generated)
    notes = _end_upgrade(project, check=False)
    lock, inputs = _state(project)
    report = _quick(project, lock, inputs, options, check=False)
    if report is None:
        from afd_patchkit.run.generate import generate, written

        made = generate(project, lock, inputs, options)
        report = written(made, _judged(project, made))
    return replace(report, findings=(*notes, *report.findings))


def _state(project: Project) -> tuple[locks.Lock | None, dict[str, str]]:
    return locks.load(project.lock, project.shown(project.lock)), locks.current_inputs(project)


def _quick(
    project: Project, lock: locks.Lock | None, inputs: Mapping[str, str], options: RunOptions, *, check: bool
) -> Report | None:
    if lock is None or options.full or options.modules or options.into is not None:
        return None
    quick = _shortcut(project, lock, inputs, options.overrides, check=check)
    if quick is not None and options.sources is not None and options.sources.sources:
        from afd_patchkit.run.pins import compare_sources

        compare_sources(project, lock, options.sources)
    return quick


def _judged(project: Project, made: Generated) -> list[Finding]:
    """With other versions than those of the lock: what that means for each entry; errors keep code from being written."""
    if made.lock is None or not (made.moved or made.by_hand):
        return []
    from afd_patchkit.queries.settled import moved_by_hand, settled
    from afd_patchkit.upgrade.upgrading import upgrade

    def judged(pin: str, version: str) -> UpgradeResult:
        return upgrade(project, pin_overrides={pin: version}, options=made.opener.options)

    found = [item for pin, version in made.moved.items() for item in settled(judged(pin, version), pin, version)]
    return found + [item for pin, to in made.by_hand.items() for item in moved_by_hand(judged(pin, to), pin, to)]


def _end_upgrade(project: Project, *, check: bool) -> list[Finding]:
    """End an `upgrade --write` that was interrupted; `check` only says so."""
    if not _has_journal(project):
        return []
    from afd_patchkit.upgrade.write import recover

    return recover(project, write=not check)


def _has_journal(project: Project) -> bool:
    return os.path.lexists(project.generated / JOURNAL)


def _shortcut(
    project: Project, lock: locks.Lock, inputs: Mapping[str, str], overrides: Mapping[str, str], *, check: bool
) -> Report | None:
    """The report when digests prove that regeneration would change nothing; None when they do not."""
    if lock.get("engine") != ENGINE or lock.get("tool") != __version__ or lock.get("overrides") or lock.get("warnings"):
        return None  # warnings are shown on every run until a person has dealt with them
    pinned = {name: pin["version"] for name, pin in lock["pins"].items()}
    distributions = {pin["distribution"]: pin["version"] for pin in lock["pins"].values() if pin["role"] == "target"}
    if any((pinned.get(name) or distributions.get(name)) != version for name, version in overrides.items()):
        return None
    described = {name for name in inputs if name.endswith((".yaml", ".yml")) and name != project.shown(project.pins)}
    if stale_inputs(lock, inputs) or described != {found["manifest"] for found in lock["modules"].values()}:
        return None
    findings = check_files(project, lock, complete=not check)
    if findings and not check:
        return None
    return Report(tuple(findings), tuple(_locked_reports(project, lock, findings)), shortcut=True)


def _locked_reports(project: Project, lock: Mapping[str, Any], findings: Sequence[Finding]) -> list[ModuleReport]:
    """One line per module from the lock alone; `findings` say which files are not what the lock says."""
    touched = {f.generated.file for f in findings if f.generated is not None}

    def status(name: str, found: Mapping[str, Any]) -> str:
        if "sha256" not in found:
            return "retired"
        if not touched:
            return "unchanged"
        paths = (module_path(project, name), outline_path(project, name))
        return "differs" if touched.intersection(map(project.shown, paths)) else "unchanged"

    return [locked_report(name, found, status(name, found)) for name, found in sorted(lock["modules"].items())]
