"""`afd-patchkit pins`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.complete import complete_pins
from afd_patchkit.cli.engine import source_options, source_paths
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting
from afd_patchkit.findings.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.finding import Finding
    from afd_patchkit.findings.report import PinReport
    from afd_patchkit.model import Pin
    from afd_patchkit.reports.layout import Style
    from afd_patchkit.run.lock import Lock
    from afd_patchkit.upstream.base import Artifact
    from afd_patchkit.upstream.options import SourceOptions


@dataclass
class PinFacts:
    """One pin, opened as far as it could be."""

    name: str
    pin: Pin
    locked: Artifact | None = None
    report: PinReport | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


@click.command("pins", short_help="Print the pinned upstreams and the evidence for them.")
@click.argument("names", nargs=-1, metavar="[PIN]...", shell_complete=complete_pins)
@click.option("--newer", is_flag=True, help="Print the releases above each target pin instead: PIN VERSION, oldest first.")
@source_options
@reporting
@pass_session
def command(session: Session, names: tuple[str, ...], newer: bool, sources: Any, offline: bool) -> int:
    """Print the pinned upstreams: identity, artifact, and what they say of themselves.

    Digests are identity, commits are evidence: a note says where the commit of pins.yaml and the one that the
    distribution names differ.
    """
    from afd_patchkit.findings.report import Report
    from afd_patchkit.manifest.load import load_manifests
    from afd_patchkit.run.lock import load
    from afd_patchkit.upstream.options import SourceOptions

    project = session.load_project()
    pins = load_manifests(project).pins.pins
    lock = load(project.lock, project.shown(project.lock))
    for name in names:
        if name not in pins:
            raise click.UsageError(f"pins.yaml has no pin {name!r}; it has {', '.join(pins)}.")
    if newer:
        chosen = {n: p for n, p in pins.items() if (n in names if names else p.role == "target" and p.git is None)}
        session.write(newer_text(chosen, SourceOptions(offline=offline)))
        return 0
    paths = source_paths(sources)
    with progress_for(session) as bars:
        options = SourceOptions(sources=paths, offline=offline, progress=bars.downloads if bars else None)
        facts = [open_pin(name, pin, options, lock) for name, pin in pins.items() if not names or name in names]
    report = Report(
        findings=tuple(item for fact in facts for item in fact.findings),
        pins=tuple(fact.report for fact in facts if fact.report is not None),
    )
    return session.report(report, text=lambda context: pins_text(facts, context.style))


def newer_text(pins: Mapping[str, Pin], options: SourceOptions) -> str:
    """`PIN VERSION` for each release above a pin; pins that are commits of a repository have none.

    Raises:
        UpstreamError: the package index cannot be asked.
    """
    from afd_patchkit.upstream.releases import newer_releases

    return "".join(f"{name} {version}\n" for name, pin in pins.items() for version in newer_releases(name, pin, options))


def open_pin(name: str, pin: Pin, options: SourceOptions, lock: Lock | None = None) -> PinFacts:
    """Open one pin, as the lock has it, and ask what it is; what goes wrong becomes its findings."""
    from afd_patchkit.upstream.resolve import evidence, evidence_note, open_upstream, pin_report

    files, locked = locked_identity(name, pin, lock)
    facts = PinFacts(name, pin, locked)
    artifact = None if name in options.sources or locked is None or locked.sha256 is None else locked
    try:
        upstream = open_upstream(name, pin, options, locked=files, locked_artifact=artifact)
        facts.evidence = evidence(upstream)
        note = evidence_note(upstream, pin)
        facts.findings = [*upstream.notes, *([note] if note else [])]
        facts.report = pin_report(upstream)
    except UpstreamError as error:
        facts.findings = list(error.findings)
    return facts


def locked_identity(name: str, pin: Pin, lock: Lock | None) -> tuple[dict[str, str], Artifact | None]:
    """Digests of the pin's files and its artifact, if the lock is about this release."""
    from afd_patchkit.upstream.base import Artifact

    record = (lock or {}).get("pins", {}).get(name)
    if record is None or (record["distribution"], record["version"]) != (pin.distribution, pin.version):
        return {}, None
    if record.get("git") != (pin.git.commit if pin.git else None):
        return {}, None
    artifact = Artifact(**record["artifact"]) if record["artifact"]["file"] else None
    return {path: found["raw"] for path, found in record["files"].items()}, artifact


def pins_text(facts: Sequence[PinFacts], style: Style) -> str:
    """One block per pin."""
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
    rows.append(("commit", fact.pin.commit or (fact.pin.git.commit if fact.pin.git else "not given")))
    if fact.pin.git:
        rows.append(("git", fact.pin.git.url))
    says = [f"{key} {fact.evidence[key]}" for key in ("version", "commit") if key in fact.evidence]
    if says:
        where = f" ({fact.evidence['file']})" if "file" in fact.evidence else ""
        rows.append(("says", ", ".join(says) + where))
    return rows
