"""What deltas mean, on the tree alone: the oracle that rendered text is compared with. Written without the engine's operations."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

HOLD = "__upstream__"


@dataclass
class Change:
    """One delta as the oracle sees it: an operation at a node of the pristine tree.

    Attributes:
        operation: `before`, `after`, `start`, `end`, `replace`, `remove`, `expr`, `set`, `else`, `first`.
        node: the node; the definition for `start` and `end`.
        code: the new code.
    """

    operation: str
    node: ast.AST
    code: str = ""


@dataclass
class Oracle:
    """Applies changes to a copy of a definition."""

    changes: Sequence[Change]
    by_node: dict[int, list[Change]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for change in self.changes:
            self.by_node.setdefault(id(change.node), []).append(change)

    def result(self, node: ast.stmt) -> ast.stmt:
        """The definition with all changes in it."""
        return self._plain(node)

    def _of(self, node: ast.AST, *operations: str) -> list[Change]:
        return [c for c in self.by_node.get(id(node), ()) if c.operation in operations]

    def _suite(self, body: list[ast.stmt], owner: ast.AST, *, main: bool) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        starts = [s for c in (self._of(owner, "start") if main else ()) for s in ast.parse(c.code).body]
        documented = (
            isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        )
        for index, statement in enumerate(body):
            before = [s for c in self._of(statement, "before") for s in ast.parse(c.code).body]
            after = [s for c in self._of(statement, "after") for s in ast.parse(c.code).body]
            if index == 0 and not documented:
                before = self._merged(owner, statement, "start", "before", main)
            if index == 0 and documented:
                after = self._merged(owner, statement, "start", "after", main)
            if index == len(body) - 1:
                after = self._merged(owner, statement, "end", "after", main)
                if index == 0 and documented and starts:
                    after = self._merged3(owner, statement)
            inner = self._statement(statement)
            if index == len(body) - 1 and self._empties(body):
                inner = [ast.Pass()]
            out += before + inner + after
        return out

    def _empties(self, body: list[ast.stmt]) -> bool:
        return all(any(c.operation == "remove" for c in self.by_node.get(id(s), ())) for s in body)

    def _merged(self, owner: ast.AST, statement: ast.AST, at: str, beside: str, main: bool) -> list[ast.stmt]:
        """Two operations that put code at one place: manifest order."""
        found = [c for c in self.changes if (c.node is statement and c.operation == beside) or (main and c.node is owner and c.operation == at)]
        return [s for c in found for s in ast.parse(c.code).body]

    def _merged3(self, owner: ast.AST, statement: ast.AST) -> list[ast.stmt]:
        found = [
            c for c in self.changes if (c.node is statement and c.operation == "after") or (c.node is owner and c.operation in ("start", "end"))
        ]
        return [s for c in found for s in ast.parse(c.code).body]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        inner: list[ast.stmt] = [self._plain(node)]
        found = self._of(node, "replace", "remove")
        kept = [c for c in found if HOLD in c.code]
        for change in [*[c for c in found if c not in kept], *reversed(kept)]:  # the first one that keeps stands outermost
            if change.operation == "remove":
                inner = []
            else:
                inner = _filled(ast.parse(change.code).body, inner)
        return inner

    def _plain(self, node: Any) -> Any:
        """A copy of a node with everything inside it changed."""
        if isinstance(node, ast.expr):
            return self._expression(node)
        fields: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                main = name == "body" and isinstance(node, ast.stmt)
                fields[name] = self._suite(value, node, main=main)
            elif isinstance(value, list):
                fields[name] = [self._plain(v) if isinstance(v, ast.AST) else v for v in value]
            else:
                fields[name] = self._plain(value) if isinstance(value, ast.AST) else value
        made = type(node)(**fields)
        for change in self._of(node, "else"):
            made.orelse = ast.parse(change.code).body
        for change in reversed(self._of(node, "first")):
            (outer,) = ast.parse(change.code).body
            outer.orelse = [made]  # type: ignore[attr-defined]
            made = outer
        return made

    def _expression(self, node: ast.expr) -> ast.expr:
        fields: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                fields[name] = [self._plain(v) if isinstance(v, ast.AST) else v for v in value]
            else:
                fields[name] = self._plain(value) if isinstance(value, ast.AST) else value
        made = type(node)(**fields)
        for change in self._of(node, "set"):
            name, _, value = change.code.partition("=")
            made.keywords.append(ast.keyword(name, ast.parse(value, mode="eval").body))  # type: ignore[attr-defined]
        found = self._of(node, "expr")
        kept = [c for c in found if HOLD in c.code]
        for change in [*[c for c in found if c not in kept], *reversed(kept)]:
            made = _Fill(made).visit(ast.parse(change.code, mode="eval").body)
        return made


class _Fill(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.value) if node.id == HOLD else node


def _filled(body: list[ast.stmt], kept: list[ast.stmt]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == HOLD:
            out += kept
            continue
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(node, name, _filled(getattr(node, name), kept))
        out.append(node)
    return out


def dump(node: ast.AST) -> str:
    """Text of a tree for comparison: contexts aside, which templates do not carry."""
    text = ast.dump(node)
    for context in ("Load()", "Store()", "Del()"):
        text = text.replace(f", ctx={context}", "").replace(f"ctx={context}", "")
    return text.replace(", type_params=[]", "").replace(", kind='u'", "")
