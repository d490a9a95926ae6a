"""What deltas mean, on the tree alone: the oracle that rendered text is compared with. Written without the engine's operations."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

HOLD = "__upstream__"


@dataclass(eq=False)
class Change:
    """One delta as the oracle sees it: an operation at a node of the pristine tree.

    Attributes:
        operation: `before`, `after`, `start`, `end`, `replace`, `remove`, `expr`, `set`, `else`, `first`.
        node: the node; the first statement of a run; the definition for `start` and `end`.
        code: the new code.
        last: the last statement of the run.
        parent: the change that it is nested in.
    """

    operation: str
    node: ast.AST
    code: str = ""
    last: ast.AST | None = None
    parent: Change | None = None


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
        where = {id(statement): index for index, statement in enumerate(body)}
        changes = [c for c in self.changes if c.operation in ("replace", "remove") and id(c.node) in where]
        runs = [(where[id(c.node)], where[id(c.last or c.node)], c) for c in changes]
        return _Suite(self, body, owner if main else None, self._gone(runs), changes).emit(0, len(body) - 1, runs, [])

    def _gone(self, runs: list[Run]) -> set[int]:
        return {index for first, last, c in runs if c.operation == "remove" for index in range(first, last + 1)}

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


Run = tuple[int, int, Change]
"""First and last index of the statements that a change replaces or removes."""


@dataclass
class _Suite:
    """One statement list: `owner` is what `start` and `end` speak of, `gone` are the removed statements, `runs` the changes of
    whole statements.
    """

    oracle: Oracle
    body: list[ast.stmt]
    owner: ast.AST | None
    gone: set[int]
    runs: list[Change]

    def emit(self, low: int, high: int, runs: list[Run], chain: list[Change]) -> list[ast.stmt]:
        """Statements `low` to `high`, which the changes of `chain` keep, the outermost one first."""
        out: list[ast.stmt] = []
        index = low
        while index <= high:
            here = [run for run in runs if run[0] == index]
            top = min(here, key=self._rank, default=None)
            stop = top[1] if top else index
            out += self._beside(index, "before", chain, edge=index == low)
            if top:
                out += self._changed(
                    top, [run for run in runs if run is not top and run[1] <= stop and run[0] >= index], chain
                )
            else:
                out.append(self.oracle._plain(self.body[index]))
            out += self._beside(stop, "after", chain, edge=stop == high)
            index = stop + 1
        return out

    def _rank(self, run: Run) -> tuple[int, bool, int]:
        """The outermost run first: the longest; of equal ones the first that keeps."""
        return (-run[1], HOLD not in run[2].code, self.oracle.changes.index(run[2]))

    def _changed(self, run: Run, inner: list[Run], chain: list[Change]) -> list[ast.stmt]:
        first, last, change = run
        if change.operation == "remove":
            # of a suite that is emptied the last statement becomes `pass`
            return [ast.Pass()] if len(self.gone) == len(self.body) and last == len(self.body) - 1 else []
        return _filled(ast.parse(change.code).body, self.emit(first, last, inner, [*chain, change]))

    def _beside(self, index: int, place: str, chain: list[Change], *, edge: bool) -> list[ast.stmt]:
        """What is put beside a statement, in manifest order.

        At the edge of a run only what is nested in the change that keeps the run stands in it; all else stands outside.
        """
        around = chain[-1] if chain else None
        found = [c for c in self.oracle.changes if self._is_beside(c, index, place)]
        parents = [c.parent if c.parent in self.runs else None for c in found]  # further out is as good as not nested
        found = [c for c, p in zip(found, parents, strict=True) if (p is around if edge else p is None or p in chain)]
        return [statement for c in found for statement in ast.parse(c.code).body]

    def _is_beside(self, change: Change, index: int, place: str) -> bool:
        if change.operation == place:
            return (
                (change.last or change.node) is self.body[index]
                if place == "after"
                else change.node is self.body[index]
            )
        if change.node is not self.owner or self.owner is None:
            return False
        if change.operation == "start":
            return index == 0 and place == ("after" if self._documented() else "before")
        return change.operation == "end" and index == len(self.body) - 1 and place == "after"

    def _documented(self) -> bool:
        first = self.body[0]
        return (
            isinstance(self.owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        )


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
