"""`upgrade` for scripts and the command line."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from afd_patchkit.findings.errors import ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.project import Project
from afd_patchkit.run.exchange import exclusive
from afd_patchkit.upgrade import accepted
from afd_patchkit.upgrade.accepted import Acceptance
from afd_patchkit.upgrade.plan import last_run
from afd_patchkit.upgrade.result import UpgradeResult
from afd_patchkit.upgrade.upgrader import Upgrader
from afd_patchkit.upgrade.write import accepted_edits, new_manifests, recover
from afd_patchkit.upstream.options import SourceOptions

if TYPE_CHECKING:
    from afd_patchkit.findings.report import Progress


def upgrade(
    project: Project,
    *,
    pin_overrides: Mapping[str, str],
    options: SourceOptions | None = None,
    write: bool = False,
    progress: Progress | None = None,
) -> UpgradeResult:
    """Re-apply every entry on another release and say what happened.

    Args:
        project: what to work on.
        pin_overrides: one pin or distribution, and the version or commit it moves to.
        options: where upstreams may come from.
        write: move pin, lock and modules, if nothing is left for a person to decide.
        progress: told about entries.

    Returns:
        the result; user errors are findings in it, never exceptions.
    """
    return upgrades(project, [pin_overrides], options=options, write=write, progress=progress)[0]


def upgrades(
    project: Project,
    targets: Sequence[Mapping[str, str]],
    *,
    options: SourceOptions | None = None,
    write: bool = False,
    progress: Progress | None = None,
) -> list[UpgradeResult]:
    """`upgrade` for several releases; the base is generated once. With `write` there must be one.

    Args:
        project: what to work on.
        targets: one mapping for each release, as for `upgrade`.
        options: where upstreams may come from.
        write: as for `upgrade`.
        progress: told about entries.
    """
    chosen = options or SourceOptions()
    try:
        if not write:
            return _upgrades(project, targets, chosen, write=False, progress=progress)
        if len(targets) != 1:
            raise ManifestError(finding("PK095", f"--write moves a pin to one release, not to {len(targets)}"))
        with exclusive(project):
            return _upgrades(project, targets, chosen, write=True, progress=progress)
    except PatchkitError as error:
        return [_failed(target, error.findings) for target in targets]


def _upgrades(
    project: Project,
    targets: Sequence[Mapping[str, str]],
    chosen: SourceOptions,
    *,
    write: bool,
    progress: Progress | None,
) -> list[UpgradeResult]:
    """`upgrades`; with `write` the caller holds `exclusive`."""
    try:
        recovered = recover(project, write=write)
        upgrader = Upgrader(project, chosen)
        items = accepted.load(project)
    except PatchkitError as error:
        return [_failed(target, error.findings) for target in targets]
    results = []
    for target in targets:
        result = upgrader.to(target, progress)
        problems = any(f.exit_code for f in result.findings)  # an acceptance of no use is none
        if result.entries:
            result = accepted.apply(result, items, project.shown(accepted.path_of(project)))
            chosen.store.put_document({"overrides": dict(target)}, "upgrades", last_run(project))
        if write:
            result = _written(upgrader, result, target, items, problems=problems)
        results.append(replace(result, findings=(*recovered, *result.findings)))
        gc.collect()  # commands do it only where a part of the work is done
    return results


def _failed(target: Mapping[str, str], findings: Sequence[Finding]) -> UpgradeResult:
    name, version = next(iter(target.items()), ("", ""))
    return UpgradeResult(name, name, "", version, findings=tuple(findings))


def _written(
    upgrader: Upgrader,
    result: UpgradeResult,
    target: Mapping[str, str],
    items: Sequence[Acceptance],
    *,
    problems: bool,
) -> UpgradeResult:
    """Write, or say what keeps it from being written."""
    project = upgrader.project
    blocked = [e.ref for e in result.entries if e.blocks]
    if result.old == result.new or not result.entries:
        return result
    if blocked or problems:
        reason = finding(
            "PK542",
            f"nothing is written: {_count(len(blocked), 'entry needs', 'entries need')} a person"
            if blocked
            else "nothing is written: see the other findings",
            details=tuple(blocked),
            help="Mend the manifests, or review and `afd-patchkit accept`, then run it again.",
        )
        return replace(result, findings=(*result.findings, reason))
    try:
        files = new_manifests(project, accepted_edits(result.entries))
        left = [a for a in items if a.pin != result.pin]
        if len(left) != len(items):
            files[project.shown(accepted.path_of(project))] = accepted.dumps(left)
        return upgrader.write(result, target, files)
    except PatchkitError as error:
        return replace(result, findings=(*result.findings, *error.findings))


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
