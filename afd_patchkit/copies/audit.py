"""The audit of a tree: every hand copy paired and compared, and one finding for each thing that is wrong."""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from afd_patchkit.copies.checks import about, fence_findings, pair_findings, say
from afd_patchkit.copies.installs import HandInstall, installs_of
from afd_patchkit.copies.judging import Compared, judge
from afd_patchkit.copies.meaning import Leads
from afd_patchkit.copies.pairing import CopyFinder, CopyPair, Unpaired
from afd_patchkit.copies.places import (
    documents,
    missing_imports,
    missing_targets,
    not_rebound,
    patched_names,
    stale_rows,
)
from afd_patchkit.copies.reading import HandFile, HandFunction, read_files
from afd_patchkit.digests import short
from afd_patchkit.files import write_atomically
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Severity, finding
from afd_patchkit.findings.report import CopyReport, Progress, Report
from afd_patchkit.model import Pin
from afd_patchkit.names.aliases import Scanner
from afd_patchkit.source.deep import deep
from afd_patchkit.upstream.base import Upstream
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream, pin_report

_FORMAT = "afd-patchkit/audit-baseline/1"
_ALIKE = 0.5


@dataclass(frozen=True)
class AuditOptions:
    """What an audit compares with.

    Attributes:
        pins: the upstreams, by name.
        sources: where they may come from.
        near: other versions of the first pin that a copy may fit better.
        baseline: file of what was found earlier; only what is new counts.
        update: write the baseline instead.
        base: the folder that files are named relative to.
        progress: told about each file.
    """

    pins: Mapping[str, Pin]
    sources: SourceOptions = field(default_factory=SourceOptions)
    near: tuple[str, ...] = ()
    baseline: Path | None = None
    update: bool = False
    base: Path = field(default_factory=Path)
    progress: Progress | None = None


@dataclass(frozen=True)
class Read:
    """Hand files, read and paired.

    Attributes:
        files: the files.
        installs: their assignments to upstream attributes.
        found: every hand copy.
        problems: what could not be read.
        finder: pairs functions with those of the pins.
        upstreams: the pins' upstreams, by name.
        sources: where they came from.
    """

    files: tuple[HandFile, ...]
    installs: tuple[HandInstall, ...]
    found: tuple[CopyPair | Unpaired, ...]
    problems: tuple[Finding, ...]
    finder: CopyFinder
    upstreams: Mapping[str, Upstream]
    sources: SourceOptions = field(default_factory=SourceOptions)


def opened(pins: Mapping[str, Pin], sources: SourceOptions) -> dict[str, Upstream]:
    """The upstreams of some pins.

    Raises:
        UpstreamError: one cannot be had.
    """
    return {name: open_upstream(name, pin, sources) for name, pin in pins.items()}


def finder_of(pins: Mapping[str, Pin], upstreams: Mapping[str, Upstream]) -> CopyFinder:
    """Pairs functions with those of these pins."""
    meaning = Leads([(upstreams[name], pin.import_packages) for name, pin in pins.items()])
    return CopyFinder(meaning, [pin.distribution for pin in pins.values()])


def read_copies(paths: Sequence[Path], options: AuditOptions) -> Read:
    """Read files and pair every hand copy in them.

    Raises:
        UpstreamError: an upstream cannot be had.
    """
    upstreams = opened(options.pins, options.sources)
    finder = finder_of(options.pins, upstreams)
    files, problems = read_files(paths, options.base)
    installs: list[HandInstall] = []
    found: list[CopyPair | Unpaired] = []
    if options.progress is not None:
        options.progress.start(len(files))
    for file in files:
        mine, pairs = copies_in(file, finder)
        installs += mine
        found += pairs
        if options.progress is not None:
            options.progress.advance(1)
        gc.collect(0)
    if options.progress is not None:
        options.progress.done()
    return Read(tuple(files), tuple(installs), tuple(found), tuple(problems), finder, upstreams, options.sources)


def copies_in(file: HandFile, finder: CopyFinder) -> tuple[list[HandInstall], list[CopyPair | Unpaired]]:
    """The assignments of one file to upstream attributes, and its hand copies."""
    installs = installs_of(file, finder.meaning)
    return installs, _pairs(file, installs, finder)


def _pairs(file: HandFile, installs: Sequence[HandInstall], finder: CopyFinder) -> list[CopyPair | Unpaired]:
    found = []
    words = {p for _, packages in finder.meaning.upstreams for p in packages}
    if not any(word.encode() in file.source.data for word in words):
        return []  # it neither imports nor names upstream
    for hand in file.functions:
        pair = finder.pair(hand, [i for i in installs if _means(i, hand)])
        if pair is not None and (isinstance(pair, Unpaired) or counts(pair)):
            found.append(pair)
    return found


def _means(install: HandInstall, hand: HandFunction) -> bool:
    """Whether an assignment is about a function: of its name, in its function or at the top of the file."""
    if install.name != hand.node.name or hand.classes:
        return False
    return install.functions[: len(hand.functions)] == hand.functions


def counts(pair: CopyPair) -> bool:
    """Whether a pair is one of a copy: marked, assigned, or so like upstream that it cannot be chance."""
    hand = pair.hand
    marked = bool(hand.fences or hand.claims.text("upstream"))
    if marked:
        return True
    size = sum(1 for _ in pair.base.node.body)
    if pair.evidence == "assignment":
        return not pair.delegates and pair.likeness >= _ALIKE
    return not pair.delegates and pair.likeness >= _ALIKE and size > 2


def audit(paths: Sequence[Path], options: AuditOptions) -> Report:
    """Audit files and folders.

    Raises:
        UpstreamError: an upstream cannot be had.
        ManifestError: the baseline cannot be used (PK099).
    """
    started = time.monotonic()
    with deep("a file of the tree"):
        read = read_copies(paths, options)
        judged = {id(pair): judge(pair) for pair in read.found if isinstance(pair, CopyPair)}
        findings = [*read.problems, *_findings(read, judged, paths, options)]
    rows = [_row(pair, judged) for pair in read.found]
    findings = list(dict.fromkeys(findings))
    if options.baseline is not None and options.update:
        write_atomically(options.baseline, _baseline_text(findings))
        findings = [f for f in findings if f.severity is Severity.NOTE]
    elif options.baseline is not None:
        findings = _beyond(findings, options.baseline)
    reports = [pin_report(u) for u in read.upstreams.values() if hasattr(u, "origin")]
    return Report(
        findings=tuple(findings),
        copies=tuple(rows),
        pins=tuple(reports),
        seconds=time.monotonic() - started,
    )


def _findings(
    read: Read, judged: Mapping[int, Compared], paths: Sequence[Path], options: AuditOptions
) -> list[Finding]:
    found: list[Finding] = []
    meaning = read.finder.meaning
    for pair in read.found:
        found += fence_findings(pair.hand)
        if isinstance(pair, Unpaired):
            found.append(_unpaired(pair))
        else:
            found += pair_findings(judged[id(pair)], read.finder)
    found += missing_targets(read.installs, meaning)
    for file in read.files:
        found += missing_imports(file, meaning)
    packages = [(read.upstreams[name], pin.import_packages) for name, pin in options.pins.items()]
    found += not_rebound(read.installs, meaning, Scanner(packages, options.sources.store))
    pairs = {about(p.hand): p.symbol.reference.replace(":", ".") for p in read.found if isinstance(p, CopyPair)}
    patched = patched_names(read.installs, pairs, meaning)
    for path in documents(paths):
        found += stale_rows(path, path.as_posix(), meaning, patched)
    for version in options.near:
        found += _fits_better(read, judged, options, version)
    return found


def _unpaired(item: Unpaired) -> Finding:
    message = f"{item.hand.qualname}: {item.why}"
    help_ = (
        "Give that pin, too." if item.other else "Say in a comment above it: `# Upstream source: path, Class.method`."
    )
    return say(item.code, message, item.hand, details=item.candidates, help=help_)


def _fits_better(read: Read, judged: Mapping[int, Compared], options: AuditOptions, version: str) -> list[Finding]:
    """Copies that differ less from the function of another version of the first pin."""
    name, pin = next(iter(options.pins.items()))
    other = pin.moved(version)
    label = f"{name}@{version}"
    finder = finder_of({label: other}, opened({label: other}, options.sources))
    found = []
    for pair in read.found:
        if not isinstance(pair, CopyPair) or pair.delegates:
            continue
        symbol = finder.symbol(pair.symbol.reference.replace(":", "."))
        if isinstance(symbol, str):
            continue
        there = lines_apart(judge(finder.made(pair.hand, symbol, pair.evidence, pair.install)))
        here = lines_apart(judged[id(pair)])
        if there < here:
            lines = "one line" if here - there == 1 else f"{here - there} lines"
            found.append(
                say(
                    "PK714",
                    f"{pair.hand.qualname} is closest to {pin.distribution} {version}, {lines} behind {pin.version}",
                    pair.hand,
                    upstream=pair.symbol.position,
                    details=(f"{pin.version}: {here} lines differ outside of fences", f"{version}: {there}"),
                    help="Copy the pinned function again, or adopt it at that release and upgrade.",
                )
            )
    return found


def lines_apart(judged: Compared) -> int:
    """How many lines, of either side, differ outside of fences."""
    total = 0
    for part in judged.unfenced:
        if part.wanted:
            total += part.lines[1] - part.lines[0] + 1
        if (lines := part.upstream_lines) is not None and part.change.sort not in ("statement", "head"):
            total += lines[1] - lines[0] + 1
    return total


def _row(pair: CopyPair | Unpaired, judged: Mapping[int, Compared]) -> CopyReport:
    hand = pair.hand
    place = (hand.file.shown, hand.node.lineno, hand.qualname)
    if isinstance(pair, Unpaired):
        return CopyReport(*place)
    seen = judged[id(pair)]
    return CopyReport(
        *place,
        pair.symbol.reference,
        pair.evidence,
        "delegate" if pair.delegates else "copy",
        round(pair.likeness, 3),
        len(seen.fenced),
        len(seen.unfenced),
        {what: number for what, number in sorted(seen.cosmetic.items()) if number},
    )


# ---- the baseline ---------------------------------------------------------------------------------------------------


def _mark(item: Finding) -> str:
    """What makes a finding the same tomorrow: not its line."""
    place = item.entry or (item.generated.file if item.generated else "")
    words = "".join(c for c in item.message if not c.isdigit())
    return f"{item.code} {place} {short(words)}"


def _baseline_text(findings: Sequence[Finding]) -> str:
    marks = Counter(_mark(f) for f in findings if f.severity is not Severity.NOTE)
    return json.dumps({"format": _FORMAT, "findings": dict(sorted(marks.items()))}, indent=1) + "\n"


def _beyond(findings: Sequence[Finding], path: Path) -> list[Finding]:
    """The findings that a baseline does not hold; notes stay."""
    left = Counter(_baseline(path))
    found = []
    for item in findings:
        mark = _mark(item)
        if item.severity is not Severity.NOTE and left[mark] > 0:
            left[mark] -= 1
        else:
            found.append(item)
    return found


def _baseline(path: Path) -> Mapping[str, int]:
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != _FORMAT or not all(isinstance(n, int) for n in data["findings"].values()):
            raise ValueError("it is of another format")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = getattr(error, "strerror", None) or "it is no baseline"
        raise ManifestError(
            finding("PK099", f"{path} cannot be used as a baseline: {why}", help="Write it with --update-baseline.")
        ) from None
    marks: Mapping[str, int] = data["findings"]
    return marks
