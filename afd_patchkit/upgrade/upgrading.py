"""`upgrade` and `accept` for scripts and the command line."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from afd_patchkit.findings.errors import ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.project import Project
from afd_patchkit.run.lock import digest
from afd_patchkit.upgrade import accepted
from afd_patchkit.upgrade.accepted import Acceptance
from afd_patchkit.upgrade.result import UpgradeResult
from afd_patchkit.upgrade.upgrader import Upgrader
from afd_patchkit.upgrade.write import accepted_edits, new_manifests, recover, replace_file
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
        if write and len(targets) != 1:
            raise ManifestError(finding("PK095", f"--write moves a pin to one release, not to {len(targets)}"))
        recovered = recover(project, write=write)
        upgrader = Upgrader(project, chosen)
        items = accepted.load(project)
    except PatchkitError as error:
        return [_failed(target, error.findings) for target in targets]
    results = []
    for target in targets:
        result = upgrader.to(target, progress)
        if result.entries:
            result = accepted.apply(result, items, project.shown(accepted.path_of(project)))
            chosen.store.put_document({"overrides": dict(target)}, "upgrades", _key(project))
        if write:
            result = _written(upgrader, result, target, items)
        results.append(replace(result, findings=(*recovered, *result.findings)))
        gc.collect()  # commands do it only where a part of the work is done
    return results


def _key(project: Project) -> str:
    return digest(str(project.root).encode())


def _failed(target: Mapping[str, str], findings: Sequence[Finding]) -> UpgradeResult:
    name, version = next(iter(target.items()), ("", ""))
    return UpgradeResult(name, name, "", version, findings=tuple(findings))


def _written(
    upgrader: Upgrader, result: UpgradeResult, target: Mapping[str, str], items: Sequence[Acceptance]
) -> UpgradeResult:
    """Write, or say what keeps it from being written."""
    project = upgrader.project
    blocked = [e.ref for e in result.entries if e.blocks]
    problems = [f for f in result.findings if f.exit_code and f.code != "PK545"]
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


# ---- accepting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    """What `accept` did.

    Attributes:
        recorded: the acceptances, one for each finding.
        file: where they are, as the user would type it.
        findings: why nothing was recorded.
    """

    recorded: tuple[Acceptance, ...] = ()
    file: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """As for every command."""
        return max((f.exit_code for f in self.findings), default=0)


def accept(
    project: Project,
    ref: str,
    why: str,
    *,
    pin_overrides: Mapping[str, str] | None = None,
    options: SourceOptions | None = None,
    who: str = "",
    date: str = "",
) -> Accepted:
    """Record that a person has reviewed what an upgrade says about an entry or one of its deltas.

    Args:
        project: what to work on.
        ref: `ENTRY` or `ENTRY/DELTA`; an entry's name alone will do where it is unique.
        why: the reason, for those who read it later.
        pin_overrides: the upgrade it is about; the last one that was run by default.
        options: where upstreams may come from.
        who: the reviewer, if it shall be recorded.
        date: the day, if it shall be recorded.
    """
    chosen = options or SourceOptions()
    file = project.shown(accepted.path_of(project))
    try:
        if not why.strip():
            raise ManifestError(finding("PK094", f"{ref} cannot be accepted: say why", help='Add `--why "..."`.'))
        recover(project, write=False)
        target = dict(pin_overrides or {}) or _last(project, chosen)
        result = Upgrader(project, chosen).to(target)
        bad = tuple(f for f in result.findings if f.exit_code)
        if not result.entries:
            return Accepted(file=file, findings=bad or result.findings)
        entry, delta = accepted.resolve(result, ref)
        made = accepted.made(result, entry, delta, why.strip(), who, date)
        known = accepted.load(project)
        replaced = {(a.entry, a.delta, a.code, a.pin, a.base, a.new) for a in made}
        kept = [a for a in known if (a.entry, a.delta, a.code, a.pin, a.base, a.new) not in replaced]
        replace_file(accepted.path_of(project), accepted.dumps([*kept, *made]))
    except PatchkitError as error:
        return Accepted(file=file, findings=error.findings)
    return Accepted(tuple(made), file)


def _last(project: Project, options: SourceOptions) -> dict[str, str]:
    """The upgrade that was run last.

    Raises:
        ManifestError: there is none (PK096).
    """
    found = options.store.document("upgrades", _key(project))
    if found is None or not isinstance(found.get("overrides"), dict):
        raise ManifestError(
            finding("PK096", "accept what? No upgrade of this project was run yet", help="Run it first, or name the release.")
        )
    return {str(k): str(v) for k, v in found["overrides"].items()}


__all__ = ["Accepted", "accept", "upgrade", "upgrades"]
