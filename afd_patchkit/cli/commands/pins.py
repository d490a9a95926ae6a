"""`afd-patchkit pins`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.complete import complete_pins
from afd_patchkit.cli.engine import source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from afd_patchkit.cli.session import Session
    from afd_patchkit.queries.pins import PinFacts
    from afd_patchkit.reports.layout import Style


@click.command("pins", short_help="Print the pinned upstreams and the evidence for them.")
@click.argument("names", nargs=-1, metavar="[PIN]...", shell_complete=complete_pins)
@click.option(
    "--newer", is_flag=True, help="Print the releases above each target pin instead: PIN VERSION, oldest first."
)
@source_options
@reporting
@pass_session
def command(session: Session, names: tuple[str, ...], newer: bool, sources: Any, offline: bool) -> int:
    """Print the pinned upstreams: identity, artifact, and what they say of themselves.

    Digests are identity, commits are evidence: a note says where the commit of pins.yaml and the one that the
    distribution names differ.
    """
    from afd_patchkit.api import Report, newer_releases, pin_facts

    project = session.load_project()
    if newer:
        found = newer_releases(project, names, upstreams(session, None, offline=offline))
        session.write("".join(f"{name} {version}\n" for name, version in found))
        return 0
    paths = source_paths(sources)
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        facts = pin_facts(project, names, options)
    report = Report(
        findings=tuple(item for fact in facts for item in fact.findings),
        pins=tuple(fact.report for fact in facts if fact.report is not None),
    )
    return session.report(report, text=lambda context: pins_text(facts, context.style))


def pins_text(facts: Sequence[PinFacts], style: Style) -> str:
    """What each pin is, as text: one block for each."""
    from afd_patchkit.reports.layout import printable, wrap

    blocks = []
    for fact in facts:
        lines = [f"{style.paint(printable(fact.name), 'bold')} ({fact.pin.role})"]
        for name, value in _rows(fact):
            lines.extend(wrap(printable(value), style, first=f"  {style.paint(f'{name:<12}', 'dim')} ", rest=" " * 15))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _rows(fact: PinFacts) -> list[tuple[str, str]]:
    from afd_patchkit.reports.layout import human_bytes, plural

    rows = [("distribution", f"{fact.pin.distribution} {fact.pin.version}")]
    artifact = fact.report
    if artifact is not None:
        cost = f", {human_bytes(artifact.bytes)} in {plural(artifact.requests, 'request')}" if artifact.requests else ""
        rows += [
            ("artifact", artifact.file),
            ("sha256", artifact.sha256 or "none"),
            ("read from", artifact.source + cost),
        ]
    else:
        if fact.locked is not None:
            rows += [("artifact", f"{fact.locked.file}, says the lock"), ("sha256", fact.locked.sha256 or "none")]
        rows.append(("read from", "nowhere: it cannot be had, see below"))
    rows.append(("commit", fact.pin.revision or "not given"))
    if fact.pin.git:
        rows.append(("git", fact.pin.git.url))
    says = [f"{key} {fact.evidence[key]}" for key in ("version", "commit") if key in fact.evidence]
    if says:
        where = f" ({fact.evidence['file']})" if "file" in fact.evidence else ""
        rows.append(("says", ", ".join(says) + where))
    return rows
