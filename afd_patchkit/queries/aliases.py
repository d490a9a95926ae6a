"""Which modules of the pinned upstreams hold a symbol by name, and what a list of rebound modules lacks."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.findings.errors import DeltaError, PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Pin
from afd_patchkit.names.aliases import Aliases, Scanner
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.project import Project
from afd_patchkit.run.pins import check_sources, overridden, selected
from afd_patchkit.source.locate import every_symbol, first_symbol
from afd_patchkit.upstream.base import Upstream
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream


@dataclass(frozen=True)
class AliasReport:
    """What was searched, and what was found.

    Attributes:
        found: the aliases.
        versions: the pins that were searched, at which version each.
        findings: why a pin could not be searched, or what the list of rebound modules lacks.
    """

    found: Aliases
    versions: Mapping[str, str]
    findings: tuple[Finding, ...] = ()


def aliases(
    project: Project,
    module: str,
    name: str,
    *,
    overrides: Mapping[str, str] | None = None,
    pins: Sequence[str] = (),
    rebound: Sequence[str] = (),
    sources: SourceOptions | None = None,
) -> AliasReport:
    """The modules that hold `module:name` by name; they keep the old object when only its own module is patched.

    Args:
        project: whose pins are searched.
        module: where the symbol is defined.
        name: its name there; of `Class.method` the class counts.
        overrides: pin or distribution name to version, in place of the pinned one.
        pins: the pins to search; all target pins by default.
        rebound: modules where the symbol is rebound; with them, one that is left out or needless is a finding.
        sources: where upstreams may come from.

    Raises:
        ManifestError: there is no such pin (PK091).
        DeltaError: there is no such symbol (PK205).
    """
    known, _ = overridden(load_manifests(project).pins, overrides or {})
    chosen = selected(known, pins) if pins else {n: pin for n, pin in known.pins.items() if pin.role == "target"}
    check_sources(known, sources or SourceOptions())
    found, problems = _search(chosen, sources or SourceOptions(), module, name)
    findings = problems or _rebound_problems(found, rebound)
    return AliasReport(found, {pin: item.version for pin, item in chosen.items()}, tuple(findings))


def _search(pins: Mapping[str, Pin], options: SourceOptions, module: str, name: str) -> tuple[Aliases, list[Finding]]:
    """The aliases, and why a pin could not be searched.

    Raises:
        DeltaError: all could be, and none has such a symbol (PK205).
    """
    opened = []
    problems: list[Finding] = []
    for pin_name, pin in pins.items():
        try:
            opened.append((open_upstream(pin_name, pin, options), pin.import_packages))
        except PatchkitError as error:
            problems += error.findings
    if not problems and (unknown := _unknown([upstream for upstream, _ in opened], module, name)):
        raise DeltaError(*unknown)
    found = Scanner(opened, options.store).aliases(module, name)
    return found, [*problems, *found.problems]


def _unknown(upstreams: Sequence[Upstream], module: str, name: str) -> list[Finding]:
    """Why there is no such symbol, with the names that are near; nothing when there is one, or when nobody can say."""
    having = [upstream for upstream in upstreams if module in upstream.modules()]
    if not having:
        near = nearest(module, {known for upstream in upstreams for known in upstream.modules()})
        where = ", ".join(upstream.pin for upstream in upstreams) or "none"
        said = finding(
            "PK205",
            f"no pin that was searched ({where}) has a module {module}",
            details=tuple(f"near: {known}" for known in near),
            help="Correct the symbol.",
        )
        return [said]
    try:
        file = having[0].read(module)
    except PatchkitError:
        return []  # it is searched all the same, as a file that this Python cannot parse
    first, _, member = name.partition(".")
    bound = Analysis(file.tree.body).outer.bound
    if first in bound:
        found = first_symbol(file, first)
        if not member or found is None or not isinstance(found.node, ast.ClassDef) or found.node.bases:
            return []  # an imported class, or one whose bases may have the member
    elif any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(file.tree)):
        return []
    try:
        every_symbol(file, name)
    except DeltaError as error:
        return list(error.findings)
    return []


def _rebound_problems(found: Aliases, rebound: Sequence[str]) -> list[Finding]:
    """What a list of rebound modules lacks, and what should not be on it; nothing without a list."""
    if not rebound:
        return []
    left_out = [
        finding(
            "PK319", f"{a.module} holds {found.symbol} as `{a.name}` ({a.place}), and is not rebound", upstream=a.place
        )
        for a in found.left_out(rebound)
    ]
    stale = [
        finding("PK320", f"{module} is rebound, but does not hold {found.symbol}: what is set there is never read")
        for module in found.stale(rebound)
    ]
    return [*left_out, *stale]
