"""Attributes that a constructor with an early return leaves unset, and that other methods read."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from afd_patchkit.delta.edits import Edit
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upgrade.sides import One, statements_of


def unset_attributes(one: One, exits: Iterable[Edit]) -> tuple[str, ...]:
    """`self.x` set only below the early returns of `exits` in `__init__`, and read by other methods of the class; sorted."""
    symbol = one.symbol
    ends = [edit.span.end for edit in exits]
    if symbol.name != "__init__" or not symbol.classes or not ends:
        return ()
    first = min(ends)
    before: set[str] = set()
    after: set[str] = set()
    for node in statements_of(symbol):
        found = {a.attr for a in _attributes(node, ast.Store)}
        (after if symbol.file.node_span(node).start >= first else before).update(found)
    given = {a.attr for text in _emitted(one) for a in _attributes(text, ast.Store)}
    return tuple(sorted((after - before - given) & _read_elsewhere(symbol)))


def _emitted(one: One) -> Iterable[ast.AST]:
    assert one.applied is not None
    for edit in one.applied.edits:
        try:
            yield ast.parse(edit.emitted.strip() + "\n")
        except SyntaxError:
            continue


def _attributes(node: ast.AST, context: type[ast.expr_context]) -> list[ast.Attribute]:
    return [
        n
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, context)
        and isinstance(n.value, ast.Name)
        and n.value.id == "self"
    ]


def _read_elsewhere(symbol: Symbol) -> set[str]:
    members = [n for n in symbol.classes[-1].body if n not in symbol.nodes]
    return {a.attr for member in members for a in _attributes(member, ast.Load)}
