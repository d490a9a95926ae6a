"""Patterns that match one place of an upstream function and no other, those first that are likely to stay."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from afd_patchkit.adopt.texts import CodeText
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import Code as Scalar
from afd_patchkit.patterns.select import Match, compile_pattern, find_all, symbol_windows
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import blocks

_HOLE = ast.Expr(ast.Constant(...))
Anchor = tuple[CodeText, dict[str, Any]]
"""A pattern, and what narrows it: `within`, `nth`."""


class Anchors:
    """Anchors in one upstream function.

    Args:
        symbol: the function.
    """

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self._windows = symbol_windows(symbol)
        self._parents: dict[int, ast.AST] = {}
        for root in symbol.nodes:
            for node in ast.walk(root):
                for child in ast.iter_child_nodes(node):
                    self._parents[id(child)] = node

    def matches(self, text: str, kind: str) -> list[Match]:
        """Where a pattern matches; nowhere, if it is none."""
        try:
            pattern = compile_pattern(Scalar(text, Position("-")), kind)  # type: ignore[arg-type]
            return find_all(pattern, self._windows, self.symbol.file)
        except (PatchkitError, SyntaxError):
            return []

    def around(self, node: ast.AST) -> Iterator[ast.stmt]:
        """The statements around a node, innermost first, the function itself left out."""
        here = self._parents.get(id(node))
        while here is not None and here not in self.symbol.nodes:
            if isinstance(here, ast.stmt):
                yield here
            here = self._parents.get(id(here))

    def statement(self, node: ast.stmt) -> Anchor | None:
        """An anchor of a statement; None where only a part of it, or a clause, can be named."""
        return self._unique(node, list(_statement_texts(node)), "statements")

    def statements(self, node: ast.stmt) -> Iterator[Anchor]:
        """All anchors of a statement that need no narrowing, else the one that there is."""
        any_found = False
        for text in _statement_texts(node):
            found = self.matches(text, "statements")
            if len(found) == 1 and found[0].nodes[0] is node:
                any_found = True
                yield CodeText(text), {}
        if not any_found and (one := self.statement(node)) is not None:
            yield one

    def expression(self, node: ast.expr, texts: Sequence[str] | None = None) -> Anchor | None:
        """An anchor of an expression."""
        return self._unique(node, list(texts or [ast.unparse(node)]), "expression")

    def _unique(self, node: ast.AST, texts: Sequence[str], kind: str) -> Anchor | None:
        rows = [(text, self.matches(text, kind)) for text in texts]
        rows = [(text, found) for text, found in rows if any(m.nodes[0] is node for m in found)]
        for text, found in rows:
            if len(found) == 1:
                return CodeText(text), {}
        for outer in self.around(node):
            inside = {id(n) for n in ast.walk(outer)}
            for text, found in rows:
                here = [m for m in found if id(m.nodes[0]) in inside]
                if len(here) == 1 and here[0].nodes[0] is node and here[0].nodes[0] is not outer:
                    plain = [
                        t
                        for t in _statement_texts(outer)
                        if len(m := self.matches(t, "statements")) == 1 and m[0].nodes[0] is outer
                    ]
                    if plain:
                        return CodeText(text), {"within": CodeText(plain[0])}
        for text, found in rows[-1:]:
            index = next(n for n, m in enumerate(found, 1) if m.nodes[0] is node)
            return CodeText(text), {"nth": index}
        return None


def _statement_texts(node: ast.stmt) -> Iterator[str]:
    """Patterns of a statement: with holes for what is likely to change, then as it stands."""
    if any(True for _ in blocks(node)):
        yield from _heads(node)
        return
    value = getattr(node, "value", None)
    call = value.value if isinstance(value, ast.Await) else value
    if isinstance(call, ast.Call) and (call.args or call.keywords):
        made = copy.deepcopy(node)
        inner = made.value.value if isinstance(value, ast.Await) else made.value  # type: ignore[attr-defined]
        inner.args, inner.keywords = [ast.Constant(...)], []
        if isinstance(made, ast.AnnAssign):
            yield ast.unparse(node)
            return  # its annotation and its call are one text: as it stands
        else:
            yield ast.unparse(made)
    elif isinstance(node, ast.Assign) and not _plain(node.value):
        yield ast.unparse(ast.Assign(node.targets, ast.Constant(...), lineno=0))
    elif isinstance(node, ast.AnnAssign) and node.value is not None and not _plain(node.value):
        made = copy.copy(node)
        made.value = ast.Constant(...)
        yield ast.unparse(made)
    yield ast.unparse(node)


def _plain(node: ast.expr | None) -> bool:
    return isinstance(node, (ast.Name, ast.Constant, ast.Attribute))


def _heads(node: ast.stmt) -> Iterator[str]:
    made = copy.copy(node)
    if isinstance(made, ast.Try) or type(made).__name__ == "TryStar":
        yield "try: ..."
    elif isinstance(made, (ast.FunctionDef, ast.AsyncFunctionDef)):
        word = "async def" if isinstance(made, ast.AsyncFunctionDef) else "def"
        yield f"{word} {made.name}(...): ..."
    elif isinstance(made, ast.ClassDef):
        yield f"class {made.name}(...): ..."
    elif hasattr(made, "body"):
        made.body = [_HOLE]
        if hasattr(made, "orelse"):
            made.orelse = []
        yield ast.unparse(made)
    yield ast.unparse(node)
