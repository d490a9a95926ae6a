"""Digests of what a delta depends on: its anchor, the headers around it, its neighbours, the bindings it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.edits import Edit
from afd_patchkit.delta.patterns import Match
from afd_patchkit.delta.place import Place
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import token_digest, tokens_in


@dataclass(frozen=True, slots=True)
class Context:
    """Token digests (layout and comments do not count) of one edit's surroundings.

    Attributes:
        touched: what the edit depends on.
        headers: the headers of the compound statements around it, outermost first, the symbol's own left out.
        before: the sibling statement before it; None at the start of a suite.
        after: the sibling statement behind it; None at the end of a suite.
        bindings: the statements (headers, for compound ones) that bind the locals its code reads, in order.
    """

    touched: str
    headers: tuple[str, ...]
    before: str | None
    after: str | None
    bindings: tuple[str, ...]


def digest_of(file: SourceFile, span: Span) -> str:
    """Token digest of some bytes of a file."""
    return token_digest(tokens_in(file, span))


def edit_context(symbol: Symbol, edit: Edit, matches: Sequence[Match]) -> Context:
    """The context of one edit.

    Args:
        symbol: the pristine symbol.
        edit: one of its edits.
        matches: the anchors of the edit's delta.
    """
    file, place = symbol.file, Place(symbol.file)
    touched = edit.touched or edit.span
    anchor = next((m for m in matches if _meets(m.span, touched)), matches[0] if matches else None)
    path = list(_path(symbol, touched.start))
    headers = tuple(digest_of(file, header) for header in (_header(place, node) for node in path) if header)
    before = after = None
    if anchor is not None and anchor.siblings:
        if anchor.index > 0:
            before = digest_of(file, place.region([anchor.siblings[anchor.index - 1]]))
        if anchor.end < len(anchor.siblings):
            after = digest_of(file, place.region([anchor.siblings[anchor.end]]))
    names = _names(edit.emitted) | _names(file.slice(touched))
    bindings = tuple(digest_of(file, span) for span in _bindings(symbol, place, names))
    return Context(digest_of(file, touched), headers, before, after, bindings)


def _meets(one: Span, other: Span) -> bool:
    return one.overlaps(other) or one.contains(other) or other.contains(one)


def _path(symbol: Symbol, offset: int) -> Iterator[ast.stmt]:
    """Compound statements inside the symbol that enclose `offset` in one of their suites."""
    level: list[ast.stmt] = [s for node in symbol.nodes for s in _children(node)]
    while level:
        inner = next((s for s in level if symbol.file.node_span(s).start <= offset < symbol.file.node_span(s).end), None)
        if inner is None:
            return
        children = list(_children(inner))
        if not children or offset < symbol.file.node_span(children[0]).start:
            return
        yield inner
        level = children


def _children(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, ast.stmt):
                yield child
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                yield from child.body


def _header(place: Place, node: ast.stmt) -> Span | None:
    body = getattr(node, "body", None) or [case.body[0] for case in getattr(node, "cases", [])[:1]]
    if not isinstance(body, list) or not body or not isinstance(body[0], ast.stmt):
        return None
    return Span(place.start(node), place.start(body[0]))


def _names(text: str) -> frozenset[str]:
    """The identifiers of some code; an over-estimate is harmless, it only adds bindings to watch."""
    import re

    return frozenset(re.findall(r"[^\W\d]\w*", text))


def _bindings(symbol: Symbol, place: Place, names: frozenset[str]) -> Iterator[Span]:
    for node in symbol.nodes:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for statement in ast.walk(node):
            if not isinstance(statement, ast.stmt) or statement is node:
                continue
            header = _header(place, statement)
            span = header or place.region([statement])
            bound = {
                n.id
                for n in _own_names(statement)
                if isinstance(n.ctx, (ast.Store, ast.Del)) and symbol.file.node_span(n).start < span.end
            }
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                bound |= {a.asname or a.name.split(".")[0] for a in statement.names}
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound.add(statement.name)
            if bound & names:
                yield span


def _own_names(statement: ast.stmt) -> Iterator[ast.Name]:
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            yield node
        stack += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]


