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
        recover(project, write=False)
        target = dict(pin_overrides or {}) or _last(project, chosen)
        result = Upgrader(project, chosen).to(target)
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
