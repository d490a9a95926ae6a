"""Self-check of every generated entry: what is upstream's is upstream's, and every difference is a declared edit.

A failure here is a bug of the tool, never of the manifest: it ends the run before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from afd_patchkit.delta.buffer import Buffer, Run
from afd_patchkit.delta.edits import Edit
from afd_patchkit.fence import parsed
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import Span


class SelfCheckError(Exception):
    """The output is not upstream plus declared edits."""


def check_entry(symbol: Symbol, edits: Sequence[Edit], name_spans: Sequence[Span], output: Buffer, marker: str) -> None:
    """Check invariants 1 and 2 of one entry.

    Args:
        symbol: the pristine symbol.
        edits: declared edits of the deltas.
        name_spans: upstream bytes replaced by declared name edits.
        output: final text of the entry, without its header comments.
        marker: comment prefix of the fences.

    Raises:
        SelfCheckError: with what differs.
    """
    kept = [run for run in output.runs if run.file is symbol.file and run.text]
    for run in output.runs:
        if run.file is not None and run.file.data[run.start : run.start + len(run.text.encode())] != run.text.encode():
            raise SelfCheckError(f"{symbol.reference}: output that claims to be upstream is not: {run.text[:80]!r}")
    _check_order(symbol, kept)
    _check_coverage(symbol, edits, name_spans, kept)
    _check_fences(symbol, output, marker)


def _check_order(symbol: Symbol, kept: Sequence[Run]) -> None:
    at = 0
    for run in kept:
        if run.edits:
            continue
        if run.start < at:
            raise SelfCheckError(f"{symbol.reference}: upstream text out of order at byte {run.start}")
        at = run.start + len(run.text.encode())


def _check_coverage(symbol: Symbol, edits: Sequence[Edit], name_spans: Sequence[Span], kept: Sequence[Run]) -> None:
    """Every upstream byte is in the output, or in a declared edit, or indentation or a line end around one."""
    covered = sorted(
        [Span(run.start, run.start + len(run.text.encode())) for run in kept]
        + [edit.span for edit in edits]
        + list(name_spans)
    )
    data = symbol.file.data
    for whole in symbol.spans:
        at = whole.start
        for span in covered:
            if span.end <= at or span.start >= whole.end:
                continue
            if span.start > at and data[at : span.start].strip():
                raise SelfCheckError(f"{symbol.reference}: upstream text lost: {data[at : span.start][:80]!r}")
            at = max(at, span.end)
        if data[at : whole.end].strip():
            raise SelfCheckError(f"{symbol.reference}: upstream text lost: {data[at : whole.end][:80]!r}")


def _check_fences(symbol: Symbol, output: Buffer, marker: str) -> None:
    """On the text alone: outside fences stand upstream's lines, in order, name edits aside."""
    upstream: list[str] = []
    for first, last in symbol.line_ranges:
        upstream += [line.strip() for line in symbol.file.lines(first, last) if line.strip()]
    position: dict[str, list[int]] = {}
    for number, line in enumerate(upstream):
        position.setdefault(line, []).append(number)
    depth, at = 0, 0
    opened: list[str] = []
    for runs in output.split_lines():
        text = "".join(run.text for run in runs).rstrip("\n")
        found = parsed(text, marker) if any(run.label == "fence" and run.text.strip() for run in runs) else None
        if found:
            if found[0] == "START":
                opened.append(found[1])
            elif not opened or opened.pop() != found[1]:
                raise SelfCheckError(f"{symbol.reference}: fence {found[1]!r} is not closed in order")
            depth = len(opened)
            continue
        if depth or not text.strip():
            continue
        if any(not run.file and run.text.strip() and run.label not in ("delta", "owned") for run in runs):
            continue  # a declared name edit
        rest = [n for n in position.get(text.strip(), ()) if n >= at]
        if not rest:
            raise SelfCheckError(f"{symbol.reference}: a line outside fences is not upstream's: {text.strip()[:80]!r}")
        at = rest[0] + 1
    if opened:
        raise SelfCheckError(f"{symbol.reference}: fence {opened[-1]!r} is not closed")
