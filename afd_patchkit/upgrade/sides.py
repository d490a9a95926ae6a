"""One entry on both sides of an upgrade: deltas applied one by one, lines compared, places in words."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from functools import cached_property
from typing import Any

from afd_patchkit.assemble.record import delta_records
from afd_patchkit.delta.apply import Applied, Reader, apply_deltas
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.manifest.nested import nested
from afd_patchkit.model import Delta
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import blocks
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.upgrade.merge import line_digests

EMPTY = "e3b0c44298fc"
"""Line digest of a blank line."""

Records = list[tuple[str, Mapping[str, Any]]]
"""Delta name (nested ones too) and lock record of each edit."""


@dataclass(frozen=True)
class One:
    """Some deltas applied to one symbol: the result, or why there is none."""

    symbol: Symbol
    applied: Applied | None = None
    error: PatchkitError | None = None

    @cached_property
    def records(self) -> Mapping[str, list[dict[str, Any]]]:
        """Lock records of the edits, by delta."""
        return delta_records(self.symbol, self.applied.edits, self.applied.matches) if self.applied else {}

    @property
    def text(self) -> str:
        """The text, with fences, dedented; empty when the deltas do not apply."""
        return self.applied.buffer.text if self.applied else ""

    def emitted(self) -> list[tuple[int, int]]:
        """The character ranges of `text` that deltas wrote."""
        if self.applied is None:
            return []
        return [
            (at, at + len(run.text))
            for at, run in self.applied.buffer.positioned()
            if not run.file and run.label == "delta"
        ]


def apply(symbol: Symbol, deltas: Sequence[Delta], *, entry: str, marker: str, read: Reader | None) -> One:
    """`apply_deltas` with its errors as data.

    Args:
        symbol: the symbol.
        deltas: the deltas.
        entry: the entry, for findings.
        marker: what fences begin with.
        read: reads symbols of other pins for `take`; None where there is no `take`.
    """
    try:
        return One(symbol, apply_deltas(symbol, deltas, entry=entry, marker=marker, read=read))
    except PatchkitError as error:
        return One(symbol, error=error)


def flat(records: Mapping[str, Sequence[Mapping[str, Any]]], delta: Delta) -> Records:
    """The records that belong to a delta and its nested ones."""
    return [(each.name, record) for each in nested([delta]) for record in records.get(each.name, ())]


def own_line_texts(symbol: Symbol) -> list[str]:
    """The texts of the lines that belong to the symbol itself."""
    return [line for first, last in symbol.line_ranges for line in symbol.file.lines(first, last)]


def file_line(ranges: Sequence[Sequence[int]], line: int) -> int:
    """The file's number of a symbol's own line (from 1)."""
    for first, last in ranges:
        if line <= last - first + 1:
            return int(first) + line - 1
        line -= last - first + 1
    return int(ranges[-1][1]) if ranges else 0


class LineDiff:
    """What happened to the lines of a symbol; layout at their ends does not count.

    Attributes:
        added: own line numbers of the new symbol that the old one does not have there.
        kept: old line number to new line number.
        plus: number of lines added.
        minus: number of lines gone.
    """

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.old, self.new = old, new
        self.added: set[int] = set()
        self.kept: dict[int, int] = {}
        self.plus = self.minus = 0
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                self.kept.update(zip(range(i1 + 1, i2 + 1), range(j1 + 1, j2 + 1), strict=True))
            else:
                self.added.update(range(j1 + 1, j2 + 1))
                self.plus += j2 - j1
                self.minus += i2 - i1

    @classmethod
    def of(cls, digests: Sequence[str], symbol: Symbol) -> LineDiff:
        """From the lock's digests of the old lines."""
        return cls(digests, line_digests(own_line_texts(symbol)))


def first_text(file: SourceFile, span: Span | None, limit: int = 88) -> str:
    """The first line of some text, shortened."""
    if span is None:
        return "nothing"
    line, *more = file.slice(span).strip().split("\n")
    line = line.strip()
    if len(line) > limit:
        return line[: limit - 3] + "..."
    return line + (" ..." if more else "")


def changes(
    old_file: SourceFile | None, old: Span | None, file: SourceFile, now: Span | None, limit: int = 8
) -> list[str]:
    """What changed from one text to another, as lines with `-` and `+`; without the old text, the new one's first line.

    Args:
        old_file: the file before; None when it is not at hand.
        old: the bytes before.
        file: the file now.
        now: the bytes now.
        limit: lines that are shown.
    """
    if old_file is None or old is None or now is None or "\n" not in old_file.slice(old) + file.slice(now):
        was = [f"was: {first_text(old_file, old)}"] if old_file is not None else []
        return [*was, f"now: {first_text(file, now)}"]
    one = [line.strip() for line in old_file.slice(old).split("\n")]
    other = [line.strip() for line in file.slice(now).split("\n")]
    lines = [d for d in unified_diff(one, other, n=0, lineterm="") if d[:3] not in ("---", "+++") and d[:2] != "@@"]
    more = [f"and {len(lines) - limit} more lines"] if len(lines) > limit else []
    return [f"{d[0]} {d[1:100]}" for d in lines[:limit]] + more or [f"now: {first_text(file, now)}"]


def code_lines(symbol: Symbol, first: int, last: int) -> list[int]:
    """Own lines `first` to `last` that are neither blank nor comments."""
    lines = own_line_texts(symbol)
    return [
        n
        for n in range(max(first, 1), min(last, len(lines)) + 1)
        if lines[n - 1].strip() and not lines[n - 1].lstrip().startswith("#")
    ]


def statements_of(symbol: Symbol) -> Iterator[ast.stmt]:
    """All statements inside the symbol, at any depth, in order."""
    for root in symbol.nodes:
        yield from sorted(
            (n for n in ast.walk(root) if isinstance(n, ast.stmt) and n is not root),
            key=lambda n: (n.lineno, n.col_offset),
        )


def own_part(file: SourceFile, node: ast.stmt) -> Span:
    """The bytes of a statement without its blocks."""
    whole = file.node_span(node)
    starts = [file.offset(block.body[0].lineno, block.body[0].col_offset) for block in blocks(node)]
    return Span(whole.start, min(starts)) if starts else whole
