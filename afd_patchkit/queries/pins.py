"""Facts of the pins: what each one is, and which releases are above it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Finding
from afd_patchkit.findings.report import PinReport
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Pin
from afd_patchkit.project import NoProjectError, Project, load_project
from afd_patchkit.run.lock import load
from afd_patchkit.run.pins import Opener, selected
from afd_patchkit.upstream import releases
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import evidence, evidence_note, pin_report
from afd_patchkit.upstream.upkeep import Needs, needs_of


@dataclass
class PinFacts:
    """One pin, opened as far as it could be."""

    name: str
    pin: Pin
    locked: Artifact | None = None
    report: PinReport | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def pin_facts(project: Project, names: Collection[str] = (), sources: SourceOptions | None = None) -> list[PinFacts]:
    """Open pins as the lock has them and ask what they are; what goes wrong with one becomes its findings.

    Raises:
        ManifestError: there is no such pin (PK091).
    """
    pins = load_manifests(project).pins
    opener = Opener(sources or SourceOptions(), load(project.lock, project.shown(project.lock)), pins)
    return [_opened(name, pin, opener) for name, pin in selected(pins, names).items()]


def _opened(name: str, pin: Pin, opener: Opener) -> PinFacts:
    known = opener.known(name)
    facts = PinFacts(name, pin, Artifact(**known["artifact"]) if known and known["artifact"]["file"] else None)
    try:
        upstream = opener(name, pin)
        facts.evidence = evidence(upstream)
        note = evidence_note(upstream, pin)
        facts.findings = [*upstream.notes, *([note] if note else [])]
        facts.report = pin_report(upstream)
    except UpstreamError as error:
        facts.findings = list(error.findings)
    return facts


@dataclass(frozen=True)
class Releases:
    """A pin, and what it can move to.

    Attributes:
        name: the pin's name.
        pin: the pin.
        newer: the releases above it, oldest first; None when that is not known.
        findings: why the index could not be asked.
    """

    name: str
    pin: Pin
    newer: tuple[str, ...] | None
    findings: tuple[Finding, ...] = ()


def releases_of(project: Project, sources: SourceOptions | None = None) -> list[Releases]:
    """Every pin with the releases above it; offline, and for a pin that is a commit, nobody knows them."""
    options = sources or SourceOptions()
    return [_releases(name, pin, options) for name, pin in load_manifests(project).pins.pins.items()]


def _releases(name: str, pin: Pin, options: SourceOptions) -> Releases:
    if options.offline or pin.source_commit is not None:
        return Releases(name, pin, None)
    try:
        return Releases(name, pin, tuple(releases.newer_releases(name, pin, options)))
    except UpstreamError as error:
        return Releases(name, pin, None, error.findings)


def pins_needs(start: Path | None = None) -> Needs:
    """What the pins of the lock of the project in or around `start` need of the cache; nothing without project or lock.

    Raises:
        PatchkitError: settings or lock cannot be read.
    """
    try:
        project = load_project(start)
    except NoProjectError:
        return Needs()
    lock = load(project.lock, project.shown(project.lock))
    return needs_of(lock["pins"]) if lock else Needs()


def newer_releases(
    project: Project, names: Collection[str] = (), sources: SourceOptions | None = None
) -> list[tuple[str, str]]:
    """Pin and version for each release above a pin, by default above each target; pins that are commits have none.

    Raises:
        ManifestError: there is no such pin (PK091).
        UpstreamError: the package index cannot be asked.
    """
    pins = load_manifests(project).pins
    chosen = selected(pins, names)
    return [
        (name, version)
        for name, pin in chosen.items()
        if names or (pin.role == "target" and pin.source_commit is None)
        for version in releases.newer_releases(name, pin, sources or SourceOptions())
    ]
