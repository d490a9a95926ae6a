"""Apply all deltas of one entry to its pristine symbol."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.delta import element_ops, header_ops
from afd_patchkit.delta.buffer import Buffer, Run
from afd_patchkit.delta.builder import Builder
from afd_patchkit.delta.edits import Edit, Nesting, check_overlaps, render
from afd_patchkit.delta.fences import Fence, draw
from afd_patchkit.delta.forwarded import written
from afd_patchkit.delta.frozen import frozen_findings
from afd_patchkit.delta.operations import apply_delta
from afd_patchkit.delta.take import Reader, Taken, taker
from afd_patchkit.fence import MARKER, looks_like
from afd_patchkit.findings.errors import DeltaError, PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Code, Delta
from afd_patchkit.patterns.select import Match
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import SourceFile, Span, Text
from afd_patchkit.source.tokens import tokens

__all__ = ["Applied", "Reader", "apply_deltas"]


@dataclass(frozen=True)
class Applied:
    """One entry with its deltas applied and its fences drawn.

    Attributes:
        symbol: the pristine symbol.
        edits: every difference to it (name edits excluded).
        fences: the fenced regions, by line of the text without fences.
        buffer: the text with fences, indented for where it goes; ends with a newline.
        matches: per delta, the anchors found.
        rebind: names that deltas declare to mean something else.
        taken: per pin and symbol, the bytes that `take:` used (from the first to the last when several deltas take).
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
    marker: str = MARKER,
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
    taken: Taken = {}
    deltas = written(symbol, deltas, entry)
    builder = Builder(symbol, entry, taker(entry, read, taken, marker))
    problems: list[Finding] = []
    for delta in deltas:
        try:
            apply_delta(builder, delta)
        except PatchkitError as error:
            problems += [f.at(entry=entry, delta=delta.name, manifest=delta.where) for f in error.findings]
    if not problems:
        try:
            header_ops.finish(builder)
            element_ops.finish(builder)
        except PatchkitError as error:
            problems += error.findings
    problems = problems or _outside(builder) or check_overlaps(builder.edits, symbol.file, entry)
    if problems:
        raise DeltaError(*problems)
    nesting = Nesting(builder.edits)
    fenced, fences = draw(_joined(symbol, nesting), nesting, marker)
    if builder.edits:
        plain = fenced.reindent(symbol.indent, "")
        problems = [*_uncompilable(builder, plain), *_marked(builder, plain, marker)]
        if problems:
            raise DeltaError(*problems)
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


def _joined(symbol: Symbol, nesting: Nesting) -> Buffer:
    """The parts of the symbol with the edits applied; parts that are apart upstream are set apart by one blank line."""
    body = Buffer()
    for index, span in enumerate(symbol.spans):
        if index:
            first, last = symbol.line_ranges[index - 1][1] + 1, symbol.line_ranges[index][0] - 1
            blank = first <= last and not any(line.strip() for line in symbol.file.lines(first, last))
            gap = symbol.file.line_span(first, last)
            body += Buffer.verbatim(symbol.file, gap) if blank else Buffer.emitted("\n", (), "gap")
        body += render(symbol.file, span, nesting)
    if not body.text.endswith("\n"):
        body += Buffer.emitted("\n", (), "gap")
    return body


def _outside(builder: Builder) -> list[Finding]:
    """Findings for edits that no part of the symbol holds: they would be lost."""
    return [
        finding(
            "PK217",
            f"delta {edit.delta!r} lies outside {builder.symbol.reference}",
            entry=builder.entry,
            delta=edit.delta,
            manifest=edit.where,
            upstream=builder.file.position(edit.span.start),
            help="A delta changes the entry's own lines only.",
        )
        for edit in builder.edits
        if not any(span.contains(edit.span) for span in builder.symbol.spans)
    ]


def _uncompilable(builder: Builder, body: Buffer) -> list[Finding]:
    """What Python has to say about the patched text, at the delta in whose code it says it."""
    text = body.text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, builder.symbol.file.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        rows = text.split("\n")
        edit = _culprit(builder, body, line)
        return [
            finding(
                "PK222",
                f"the patched code does not compile: {getattr(error, 'msg', None) or error}",
                entry=builder.entry,
                delta=edit.delta,
                manifest=edit.where,
                upstream=builder.file.position(edit.span.start),
                details=tuple(
                    f"{'>' if n == line else ' '} {rows[n - 1]}"
                    for n in range(max(1, line - 3), min(len(rows), line + 2))
                ),
                help="Correct the delta's code, or where it goes.",
            )
        ]
    return []


def _culprit(builder: Builder, body: Buffer, line: int) -> Edit:
    """The edit nearest to a line of the text."""
    best: tuple[int, int] | None = None
    for number, runs in enumerate(body.split_lines(), 1):
        for run in runs:
            if run.edits and (best is None or abs(number - line) < best[0]):
                best = (abs(number - line), run.edits[-1])
    return builder.edits[best[1] if best else 0]


def _marked(builder: Builder, body: Buffer, marker: str) -> list[Finding]:
    """A comment that looks like a fence but is none makes the text undecidable."""
    plain = Text(body.text.encode())
    lines = body.split_lines()
    found: list[Finding] = []
    for token in tokens(plain, 1, plain.line_count):
        if token.kind != "comment" or not looks_like(token.text, marker):
            continue
        runs = lines[plain.line_of(token.span.start) - 1]
        if any(run.label == "fence" and run.text.strip() for run in runs):
            continue
        column = len(plain.slice(Span(plain.starts[plain.line_of(token.span.start) - 1], token.span.start)))
        run = _run_at(runs, column)
        edit = builder.edits[run.edits[-1]] if run.edits and run.file is None else None
        found.append(
            finding(
                "PK223",
                f"{'the code of a delta' if edit else 'upstream'} holds a comment that looks like a fence: {token.text}",
                entry=builder.entry,
                delta=edit.delta if edit else None,
                manifest=edit.where if edit else None,
                upstream=run.file.position(run.start) if run.file else None,
                help="Delete the comment: fences are drawn by the tool."
                if edit
                else "Set another `marker` in the settings.",
            )
        )
    return found


def _run_at(runs: Sequence[Run], column: int) -> Run:
    """The part of a line from character `column` on."""
    for run in runs:
        if column < len(run.text):
            return run.part(column, len(run.text))
        column -= len(run.text)
    raise AssertionError("the line is shorter")
