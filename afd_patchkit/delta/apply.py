"""Apply all deltas of one entry to its pristine symbol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.edits import Edit, check_overlaps, render
from afd_patchkit.delta.fences import Fence, draw
from afd_patchkit.delta.frozen import frozen_findings
from afd_patchkit.delta.operations import Builder, apply_delta
from afd_patchkit.delta.patterns import Match, compile_pattern, find_all
from afd_patchkit.errors import DeltaError, PatchkitError
from afd_patchkit.manifest.model import Code, Delta, Take
from afd_patchkit.review.finding import Finding, finding
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference
from afd_patchkit.source.text import SourceFile, Span

Reader = Callable[[str, str], SourceFile]
"""`(pin, module) -> SourceFile`."""


@dataclass(frozen=True)
class Applied:
    """One entry with its deltas applied and its fences drawn.

    Attributes:
        symbol: the pristine symbol.
        edits: every difference to it (name edits excluded).
        fences: the fenced regions, by line of `buffer`'s text without fences.
        buffer: the text, indented for where it goes; ends with a newline.
        matches: per delta, the anchors found.
        rebind: names that deltas declare to mean something else.
        taken: per `pin` and `symbol`, the bytes that `take:` used.
        findings: what does not stop generation (`frozen`).
    """

    symbol: Symbol
    edits: tuple[Edit, ...]
    fences: tuple[Fence, ...]
    buffer: Buffer
    matches: Mapping[str, list[Match]]
    rebind: Mapping[str, Code]
    taken: Mapping[tuple[str, str], tuple[SourceFile, Span]]
    findings: tuple[Finding, ...]


def apply_deltas(
    symbol: Symbol,
    deltas: Sequence[Delta],
    *,
    entry: str,
    marker: str = "### PATCH",
    indent: str = "",
    read: Reader | None = None,
) -> Applied:
    """Apply `deltas` to `symbol`, all matched on the pristine text.

    Args:
        symbol: what to patch.
        deltas: in manifest order.
        entry: `module.py::name`, for findings.
        marker: comment prefix of the fences.
        indent: indentation of the result.
        read: gives other pins' files for `take:`.

    Raises:
        DeltaError: with every finding of every delta.
    """
    taken: dict[tuple[str, str], tuple[SourceFile, Span]] = {}
    builder = Builder(symbol, entry, _taker(entry, read, taken))
    problems: list[Finding] = []
    for delta in deltas:
        try:
            apply_delta(builder, delta)
        except PatchkitError as error:
            problems += [f.at(entry=entry, delta=delta.name, manifest=delta.where) for f in error.findings]
    problems = problems or check_overlaps(builder.edits, symbol.file, entry)
    if problems:
        raise DeltaError(*problems)
    body = _joined(symbol, builder.edits)
    fenced, fences = draw(body, builder.edits, marker)
    return Applied(
        symbol,
        tuple(builder.edits),
        fences,
        fenced.reindent(symbol.indent, indent),
        builder.matches,
        builder.rebind,
        taken,
        tuple(frozen_findings(builder, deltas)),
    )


def _joined(symbol: Symbol, edits: Sequence[Edit]) -> Buffer:
    """The parts of the symbol with the edits applied; parts that are apart upstream are set apart by one blank line."""
    body = Buffer()
    for index, span in enumerate(symbol.spans):
        if index:
            first, last = symbol.line_ranges[index - 1][1] + 1, symbol.line_ranges[index][0] - 1
            blank = first <= last and not any(line.strip() for line in symbol.file.lines(first, last))
            body += Buffer.verbatim(symbol.file, symbol.file.line_span(first, last)) if blank else Buffer.emitted("\n", (), "gap")
        body += render(symbol.file, span, edits)
    if not body.text.endswith("\n"):
        body += Buffer.emitted("\n", (), "gap")
    return body


def _taker(
    entry: str, read: Reader | None, taken: dict[tuple[str, str], tuple[SourceFile, Span]]
) -> Callable[[Take], Buffer]:
    def take(request: Take) -> Buffer:
        assert read is not None
        module, qualname = parse_reference(request.symbol.text, request.symbol.position)
        symbol = find_symbol(read(request.pin, module), qualname)
        span = _taken_span(request, symbol, entry)
        taken[request.pin, request.symbol.text] = (symbol.file, span)
        builder = Builder(symbol, entry, take)
        for delta in request.deltas:
            apply_delta(builder, delta)
        problems = check_overlaps(builder.edits, symbol.file, entry)
        outside = [e for e in builder.edits if not span.contains(e.span)]
        problems += [
            finding("PK217", f"delta {e.delta!r} lies outside the taken text", entry=entry, delta=e.delta, manifest=e.where)
            for e in outside
        ]
        if problems:
            raise DeltaError(*problems)
        line = symbol.file.starts[symbol.file.line_of(span.start) - 1]
        text = symbol.file.data[line : span.start].decode()
        indent = text[: len(text) - len(text.lstrip())]
        body = render(symbol.file, span, builder.edits).reindent(indent, "", skip_first=True)
        # what stands there now are edits of the delta that takes, not of the taken text's own deltas
        return Buffer(type(run)(run.text, run.file, run.start, (), run.label) for run in body.runs)

    return take


def _taken_span(request: Take, symbol: Symbol, entry: str) -> Span:
    from afd_patchkit.delta.operations import Place

    node = symbol.node
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        raise DeltaError(finding("PK215", f"{request.symbol.text} has no body to take from", entry=entry, manifest=request.where))
    place = Place(symbol.file)
    if request.from_ is None:
        return place.region(body)
    found = []
    for code in (request.from_, request.to or request.from_):
        matches = find_all(compile_pattern(code, "statements"), body, symbol.file)
        if len(matches) != 1:
            raise DeltaError(
                finding(
                    "PK201" if not matches else "PK202",
                    f"the end of `take` matches {len(matches)} places of {request.symbol.text}",
                    entry=entry,
                    manifest=code.position,
                    upstream=symbol.position,
                    details=tuple(f"{symbol.file.position(m.span.start)}" for m in matches),
                )
            )
        found.append(matches[0])
    return Span(found[0].span.start, place.end(found[1].nodes[-1]))  # type: ignore[arg-type]
