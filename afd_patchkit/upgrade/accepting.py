"""`accept` for scripts and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.findings.errors import ManifestError, PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.project import Project
from afd_patchkit.run.exchange import exclusive
from afd_patchkit.upgrade import accepted
from afd_patchkit.upgrade.accepted import Acceptance
from afd_patchkit.upgrade.plan import last_run
from afd_patchkit.upgrade.result import EntryResult, UpgradeResult
from afd_patchkit.upgrade.upgrader import Upgrader
from afd_patchkit.upgrade.write import put, recover
from afd_patchkit.upstream.options import SourceOptions


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
        """The exit code of the command: 0, or that of the worst finding."""
        return max((f.exit_code for f in self.findings), default=0)


@dataclass(frozen=True, slots=True)
class Review:
    """One upgrade with what was accepted of it, for a person who goes through what is open.

    Attributes:
        project: whose upgrade it is.
        result: what it says.
    """

    project: Project
    result: UpgradeResult

    def accept(self, entry: EntryResult, why: str, *, delta: str = "", who: str = "", date: str = "") -> Accepted:
        """Record that what is open about an entry, or about one delta of it, was reviewed.

        Args:
            entry: one of the result's entries.
            why: the reason, for those who read it later.
            delta: the name of the delta; empty for everything about the entry.
            who: the reviewer, if it shall be recorded.
            date: the day, if it shall be recorded.

        Raises:
            ManifestError: it cannot be accepted (PK094).
        """
        made = accepted.made(self.result, entry, delta, why.strip(), who, date)
        with exclusive(self.project):
            _record(self.project, made)
        return Accepted(tuple(made), self.project.shown(accepted.path_of(self.project)))


def review(
    project: Project, *, pin_overrides: Mapping[str, str] | None = None, options: SourceOptions | None = None
) -> Review:
    """Run an upgrade, to go through what is open about it.

    Args:
        project: what to work on.
        pin_overrides: the upgrade; the last one that was run by default.
        options: where upstreams may come from.

    Raises:
        PatchkitError: it cannot be run.
    """
    chosen = options or SourceOptions()
    result = _upgraded(project, pin_overrides, chosen)
    bad = tuple(f for f in result.findings if f.exit_code)
    if not result.entries and bad:
        raise PatchkitError(*bad)
    return Review(project, accepted.apply(result, accepted.load(project), project.shown(accepted.path_of(project))))


def accept(
    project: Project,
    ref: str | Sequence[str],
    why: str,
    *,
    pin_overrides: Mapping[str, str] | None = None,
    options: SourceOptions | None = None,
    who: str = "",
    date: str = "",
) -> Accepted:
    """Record that a person has reviewed what an upgrade says about entries or single deltas of them: all or nothing.

    Args:
        project: what to work on.
        ref: `ENTRY` or `ENTRY/DELTA`, one or several; any part of a name that is unique will do.
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
            raise ManifestError(finding("PK094", "it cannot be accepted: say why", help='Add `--why "..."`.'))
        result = _upgraded(project, pin_overrides, chosen)
        bad = tuple(f for f in result.findings if f.exit_code)
        if not result.entries:
            return Accepted(file=file, findings=bad or result.findings)
        made: list[Acceptance] = []
        for wanted in [ref] if isinstance(ref, str) else ref:
            entry, delta = accepted.resolve(result, wanted)
            made += accepted.made(result, entry, delta, why.strip(), who, date)
        made = list(dict.fromkeys(made))
        with exclusive(project):
            _record(project, made)
    except PatchkitError as error:
        return Accepted(file=file, findings=error.findings)
    return Accepted(tuple(made), file)


def _upgraded(project: Project, pin_overrides: Mapping[str, str] | None, options: SourceOptions) -> UpgradeResult:
    recover(project, write=False)
    return Upgrader(project, options).to(dict(pin_overrides or {}) or _last(project, options))


def _record(project: Project, made: Sequence[Acceptance]) -> None:
    """Add to the file, in place of what was recorded for the same finding."""
    path = accepted.path_of(project)
    if (link := project.linked(path)) is not None:
        raise ManifestError(project.outside(link))
    known = accepted.load(project)
    replaced = {(a.entry, a.delta, a.code, a.pin, a.base, a.new) for a in made}
    kept = [a for a in known if (a.entry, a.delta, a.code, a.pin, a.base, a.new) not in replaced]
    put(path, accepted.dumps([*kept, *made]))


def _last(project: Project, options: SourceOptions) -> dict[str, str]:
    """The upgrade that was run last.

    Raises:
        ManifestError: there is none (PK096).
    """
    found = options.store.document("upgrades", last_run(project))
    if found is None or not isinstance(found.get("overrides"), dict):
        raise ManifestError(
            finding(
                "PK096",
                "accept what? No upgrade of this project was run yet",
                help="Run it first, or name the release.",
            )
        )
    return {str(k): str(v) for k, v in found["overrides"].items()}
