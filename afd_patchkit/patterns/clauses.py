"""Clauses of compound statements: `if`/`elif`/`else`, `try`/`except`/`else`/`finally`, `case`, and the loops' `else`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Code
from afd_patchkit.patterns.compile import compile_head
from afd_patchkit.patterns.match import case, equal, handler, with_items
from afd_patchkit.patterns.search import is_elif
from afd_patchkit.source.syntax import TRY
from afd_patchkit.source.text import SourceFile, Span

Kind = Literal["if", "elif", "else", "try", "except", "finally", "case", "for", "while", "with"]


@dataclass(frozen=True, eq=False)
class Clause:
    """One clause.

    Attributes:
        kind: its keyword.
        head_span: from the keyword (`async` included) to the colon, inclusive.
        suite: its statements.
        span: from the keyword to the end of the suite's last statement.
        node: the node that owns the suite: the statement, an `elif`'s own `If`, the handler or the `match_case`.
    """

    kind: Kind
    head_span: Span
    suite: list[ast.stmt]
    span: Span
    node: ast.AST


def clauses(stmt: ast.stmt, file: SourceFile) -> list[Clause]:
    """The clauses of a compound statement in source order, `elif` chains flattened; none for other statements."""
    return list(_clauses(stmt, file))


def _clauses(stmt: ast.stmt, file: SourceFile) -> Iterator[Clause]:
    start = file.node_span(stmt).start
    if isinstance(stmt, ast.If):
        node, kind = stmt, "if"
        while True:
            yield _clause(file, kind, file.node_span(node).start, file.node_span(node.test).end, node.body, node)
            if not is_elif(node, node.orelse, file):
                break
            node, kind = node.orelse[0], "elif"  # type: ignore[assignment]
        yield from _tail(file, "else", node.body, node.orelse, node)
    elif isinstance(stmt, (ast.For, ast.AsyncFor)):
        yield _clause(file, "for", start, file.node_span(stmt.iter).end, stmt.body, stmt)
        yield from _tail(file, "else", stmt.body, stmt.orelse, stmt)
    elif isinstance(stmt, ast.While):
        yield _clause(file, "while", start, file.node_span(stmt.test).end, stmt.body, stmt)
        yield from _tail(file, "else", stmt.body, stmt.orelse, stmt)
    elif isinstance(stmt, (ast.With, ast.AsyncWith)):
        last = stmt.items[-1]
        yield _clause(file, "with", start, file.node_span(last.optional_vars or last.context_expr).end, stmt.body, stmt)
    elif isinstance(stmt, TRY):
        yield from _try(file, stmt, start)
    elif isinstance(stmt, ast.Match):
        at = _colon(file, file.node_span(stmt.subject).end)
        for item in stmt.cases:
            keyword = _keyword(file, at, b"case")
            head_end = file.node_span(item.guard or item.pattern).end
            yield _clause(file, "case", keyword, head_end, item.body, item)
            at = file.node_span(item.body[-1]).end


def _try(file: SourceFile, stmt: Any, start: int) -> Iterator[Clause]:
    yield _clause(file, "try", start, start + len("try"), stmt.body, stmt)
    before = stmt.body
    for item in stmt.handlers:
        at = file.node_span(item).start
        head_end = file.node_span(item.type).end if item.type else at + len("except")
        yield _clause(file, "except", at, head_end, item.body, item)
        before = item.body
    if stmt.orelse:
        yield from _tail(file, "else", before, stmt.orelse, stmt)
        before = stmt.orelse
    yield from _tail(file, "finally", before, stmt.finalbody, stmt)


def _tail(
    file: SourceFile, kind: Literal["else", "finally"], before: Sequence[ast.stmt], suite: list[ast.stmt], node: ast.AST
) -> Iterator[Clause]:
    if suite:
        start = _keyword(file, file.node_span(before[-1]).end, kind.encode())
        yield _clause(file, kind, start, start + len(kind), suite, node)


def _clause(file: SourceFile, kind: Any, start: int, head_end: int, suite: list[ast.stmt], node: ast.AST) -> Clause:
    head = Span(start, _colon(file, head_end))
    return Clause(kind, head, suite, Span(start, file.node_span(suite[-1]).end), node)


def _skip_to(file: SourceFile, at: int, stop: Callable[[int], bool]) -> int:
    """First byte from `at` on, comments left out, where `stop` holds. Only called where no string can come before it."""
    data = file.data
    while not stop(at):
        at = data.index(b"\n", at) if data[at] == 35 else at + 1
    return at


def _colon(file: SourceFile, at: int) -> int:
    """Offset behind the colon that ends a head whose last expression ends at `at`."""
    return _skip_to(file, at, lambda i: file.data[i] == 58) + 1


def _keyword(file: SourceFile, at: int, word: bytes) -> int:
    """Offset of the keyword that follows a suite ending at `at` (only layout, comments and `;` come between)."""
    return _skip_to(file, at, lambda i: file.data.startswith(word, i))


# ---- finding one ----------------------------------------------------------------------------------------------


def find_clause(
    stmt: ast.stmt, head: Code, file: SourceFile, *, entry: str | None = None, delta: str | None = None
) -> Clause:
    """The one clause of `stmt` whose head is `head`.

    Args:
        stmt: a compound statement.
        head: `if c`, `elif c`, `else`, `except`, `except E`, `except E as e`, `finally`, `case p`, `case p if g`, `for x in y`,
            `while c`, `with c`, `try`; with or without colon; `...` as in patterns.
        file: the file that `stmt` is part of.
        entry: the entry, for the finding.
        delta: the delta, for the finding.

    Raises:
        ManifestError: `head` is no head of a clause (PK030).
        DeltaError: there is no such clause (PK203), or several (PK204).
    """
    kind, wanted = compile_head(head)
    there = clauses(stmt, file)
    found = [clause for clause in there if clause.kind == kind and _fits(wanted, clause)]
    if len(found) == 1:
        return found[0]
    text = " ".join(head.text.split())
    raise DeltaError(
        finding(
            "PK204" if found else "PK203",
            f"{len(found)} clauses are `{text}`" if found else f"there is no clause `{text}`",
            entry=entry,
            delta=delta,
            manifest=head.position,
            upstream=file.position(file.node_span(stmt).start),
            details=tuple(
                f"{'matches' if clause in found else 'there is'}: {file.path}:{file.line_of(clause.head_span.start)}: "
                + " ".join(file.slice(clause.head_span).split())
                for clause in (found or there)
            ),
            help="Write more of the clause's head." if found else "Take one of the heads listed, or another `of`.",
        )
    )


def _fits(pattern: ast.AST | None, clause: Clause) -> bool:
    node: Any = clause.node
    if pattern is None:
        return True
    if isinstance(pattern, ast.ExceptHandler):
        return handler(pattern, node, suite=False)
    if isinstance(pattern, ast.match_case):
        return case(pattern, node, suite=False)
    if isinstance(pattern, (ast.If, ast.While)):
        return equal(pattern.test, node.test)
    if isinstance(pattern, (ast.For, ast.AsyncFor)):
        return type(pattern) is type(node) and equal(pattern.target, node.target) and equal(pattern.iter, node.iter)
    return type(pattern) is type(node) and with_items(pattern, node)
