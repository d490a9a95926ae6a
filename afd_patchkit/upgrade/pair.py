"""One delta before and after: what the checks compare."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from afd_patchkit.delta.context import own_lines
from afd_patchkit.delta.edits import Edit
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.manifest.nested import nested
from afd_patchkit.model import Delta
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import LOOP
from afd_patchkit.source.text import Span
from afd_patchkit.upgrade.align import Alignment
from afd_patchkit.upgrade.sides import LineDiff, One, own_part, statements_of


@dataclass(frozen=True)
class Pair:
    """One delta on both sides.

    Attributes:
        delta: the delta.
        entry: `module.py::name`.
        old: its edits at the base, as the lock has them.
        base: it applied to the old symbol; None without the old text.
        new: it applied to the new symbol.
        lines: what happened to the symbol's lines.
        alignment: of the statements; None without the old text.
        whole: all deltas of the entry applied to the new symbol.
    """

    delta: Delta
    entry: str
    old: Sequence[tuple[str, Mapping[str, Any]]]
    base: One | None
    new: One
    lines: LineDiff
    alignment: Alignment | None
    whole: One

    def say(
        self, code: str, message: str, *, at: int | None = None, details: Sequence[str] = (), help: str | None = None
    ) -> Finding:
        """A finding about this delta; `at` is a byte of the new file.

        Args:
            code: the finding's code.
            message: what is wrong.
            at: byte of the new file; None for the symbol's beginning.
            details: further lines.
            help: what to do.
        """
        file = self.new.symbol.file
        return finding(
            code,
            message,
            entry=self.entry,
            delta=self.delta.name,
            manifest=self.delta.where,
            upstream=self.new.symbol.position if at is None else Position(file.path, file.line_of(at)),
            details=tuple(details),
            help=help,
        )

    def edits(self) -> list[tuple[str, Edit]]:
        """The edits on the new side, in the order of `flat`."""
        assert self.new.applied is not None
        by_name: dict[str, list[Edit]] = {}
        for edit in self.new.applied.edits:
            by_name.setdefault(edit.delta, []).append(edit)
        return [(name, edit) for name, edits in self._ordered(by_name) for edit in edits]

    def old_edits(self) -> list[Edit]:
        """The edits on the old side, when its text is at hand."""
        if self.base is None or self.base.applied is None:
            return []
        by_name: dict[str, list[Edit]] = {}
        for edit in self.base.applied.edits:
            by_name.setdefault(edit.delta, []).append(edit)
        return [edit for _, edits in self._ordered(by_name) for edit in edits]

    def _ordered(self, by_name: Mapping[str, list[Edit]]) -> Iterator[tuple[str, list[Edit]]]:
        for delta in nested([self.delta]):
            if delta.name in by_name:
                yield delta.name, by_name[delta.name]


def loop_around(symbol: Symbol, at: int) -> Span | None:
    """What the innermost loop around a byte repeats: its `else` is none of it."""
    file = symbol.file
    spans = [
        Span(file.node_span(n).start, file.node_span(n.body[-1]).end)
        for n in statements_of(symbol)
        if isinstance(n, LOOP)
    ]
    around = [s for s in spans if s.start <= at <= s.end]
    return min(around, key=len) if around else None


def added_nodes(pair: Pair) -> list[ast.stmt]:
    """Every statement that the new symbol has and the old one had not, those inside others, too."""
    symbol = pair.new.symbol
    if pair.alignment is not None:
        taken = {id(s.node) for s in pair.alignment.pairs.values()}
        return [node for node in statements_of(symbol) if id(node) not in taken]
    return [node for node in statements_of(symbol) if _on_new_lines(pair, own_part(symbol.file, node))]


def _on_new_lines(pair: Pair, span: Span) -> bool:
    symbol = pair.new.symbol
    return any(n in pair.lines.added for n in range(own_line(symbol, span.start), own_line(symbol, span.end - 1) + 1))


def added_statements(pair: Pair) -> list[Span]:
    """Statements (headers, for blocks around old statements) that the new symbol has and the old one had not."""
    symbol = pair.new.symbol
    if pair.alignment is not None:
        return [own_part(symbol.file, s.node) for s in pair.alignment.unmatched()]
    return [span for node in statements_of(symbol) if _on_new_lines(pair, span := own_part(symbol.file, node))]


def own_line(symbol: Symbol, at: int) -> int:
    """The symbol's own line of a byte, counted from 1."""
    return own_lines(symbol, Span(at, at + 1))[0]
