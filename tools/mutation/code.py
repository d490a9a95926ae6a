"""Mutations of code that is ours: other comparisons, constants and conditions, and calls, assignments and blocks left out.

Each is a span of a module's text and what stands there instead; all other bytes stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any

from afd_patchkit.runtime.loaded import CAPTURE

OTHER: dict[type, tuple[str, ...]] = {
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",),
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"),
    ast.Add: ("-",), ast.Sub: ("+",), ast.Mult: ("//",), ast.FloorDiv: ("*",), ast.Mod: ("*",),
}  # fmt: skip
"""What stands in the place of an operator: of an order its boundary, and its opposite."""
EQUAL = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
SHOWN = {"list", "tuple", "dict", "set", "sorted", "reversed", "bool", "int", "max", "min"}
"""Functions that may give back what they are given."""
COPIES = {"clone", "copy", "items"}
LEFT_ALONE = {"TypeVar", CAPTURE}
"""Functions that name something for type checkers, or that any generated module may have: the engine's own tests judge those."""
ANNOTATIONS = {"annotation", "returns", "type_comment", "decorator_list", "bases"}


@dataclass(frozen=True)
class CodeMutation:
    """One place of a module, and what stands there instead.

    Attributes:
        module: path below the generated root.
        scope: the function or class around it; empty at the level of the module.
        line: its line.
        reached: line of the statement of a function that it is in; 0 for what is done when the module is imported, or later.
        start: where it begins, in bytes; `end` is behind it.
        new: what stands there instead.
        change: the line without and with it, for humans; with a number where the scope has the same twice.
    """

    module: str
    scope: str
    line: int
    reached: int
    start: int
    end: int
    new: str
    change: str

    @property
    def name(self) -> str:
        """`module.py::scope: change`; it stays when lines are added elsewhere."""
        return f"{self.module.rpartition('/')[2]}::{self.scope or '(module)'}: {self.change}"

    def apply(self, text: str) -> str:
        """The text of the module with the mutation in it."""
        data = text.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def code_mutations(text: str, module: str, upstream: Collection[str] = ()) -> list[CodeMutation]:
    """All mutations of a module, in the order of its lines.

    Args:
        text: the module.
        module: its path below the generated root.
        upstream: scopes that are upstream's text; they are left alone.
    """
    found = _Finder(text, upstream)
    found.block(ast.parse(text).body)
    seen: Counter[tuple[str, str]] = Counter()
    result = []
    for scope, line, reached, start, end, new in sorted(set(found.found), key=lambda item: item[3:]):
        change = _change(found.data, start, end, new)
        seen[scope, change] += 1
        number = seen[scope, change]
        result.append(
            CodeMutation(module, scope, line, reached, start, end, new, change + (f" ({number})" if number > 1 else ""))
        )
    return result


def _change(data: bytes, start: int, end: int, new: str) -> str:
    """The line of a span before and after."""
    first = data.rfind(b"\n", 0, start) + 1
    last = data.find(b"\n", start)
    last = len(data) if last < 0 else last
    before, after = data[first:last].decode(), data[first:start].decode() + new + data[end:last].decode()
    if end > last:
        before += " ..."
    return " => ".join(re.sub(r"\s+", " ", line).strip() for line in (before, after))


class _Finder:
    """Walks through a module; `found` are scope, line, reached line, start, end and new text."""

    def __init__(self, text: str, upstream: Collection[str]) -> None:
        self.data, self.upstream = text.encode(), set(upstream)
        self.found: list[tuple[str, int, int, int, int, str]] = []
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", self.data))]
        self._scope: list[str] = []
        self._function, self._reached = False, 0

    def block(self, statements: list[ast.stmt]) -> None:
        """The statements of a block, its docstring left out."""
        before = self._reached
        for statement in statements:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                self._reached = statement.lineno if self._function else 0
                self.visit(statement)
        self._reached = before

    def span(self, node: Any) -> tuple[int, int]:
        """The bytes of a node."""
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def put(self, node: Any, new: str) -> None:
        """Something else in the place of a node."""
        start, end = self.span(node)
        self.put_at(node, start, end, new)

    def put_at(self, node: Any, start: int, end: int, new: str) -> None:
        """Something else in the place of bytes."""
        self.found.append((".".join(self._scope), node.lineno, self._reached, start, end, new))

    def condition(self, test: ast.expr) -> None:
        """A condition that holds always, and one that never does; its opposite is noticed by whoever notices one of them."""
        self.put(test, "True")
        self.put(test, "False")
        if isinstance(test, ast.UnaryOp):
            self.visit(test.operand)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], EQUAL):
            self.visit(test.left)
            self.visit(test.comparators[0])
        else:
            self.visit(test)

    def between(self, left: ast.AST, right: ast.AST, operator: type) -> None:
        """Put other operators between two operands."""
        (_, start), (end, _) = self.span(left), self.span(right)
        gap = self.data[start:end].decode()
        for new in OTHER.get(operator, ()):
            sign = next(match for match in re.finditer(r"[-+*/%<>=!]+|\b(?:is|not|in)\b(?:\s+(?:not|in)\b)?", gap))
            self.put_at(right, start + len(gap[: sign.start()].encode()), start + len(gap[: sign.end()].encode()), new)

    @singledispatchmethod
    def visit(self, node: ast.AST) -> None:
        """Any node: what is in it."""
        self.inside(node)

    def inside(self, node: ast.AST) -> None:
        """All parts of a node but its annotations."""
        for name, value in ast.iter_fields(node):
            if name in ANNOTATIONS:
                continue
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                self.block(value)
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    self.visit(part)

    @visit.register(ast.FunctionDef)
    @visit.register(ast.ClassDef)
    def _scoped(self, node: Any) -> None:
        before = self._function
        self._scope.append(node.name)
        if ".".join(self._scope) not in self.upstream | LEFT_ALONE:
            if isinstance(node, ast.FunctionDef):
                self.visit(node.args)
                self._function = True
            self.block(node.body)
        self._scope.pop()
        self._function = before

    @visit.register(ast.Assert)
    @visit.register(ast.JoinedStr)
    @visit.register(ast.Import)
    @visit.register(ast.ImportFrom)
    def _left_alone(self, node: Any) -> None:
        """What is said to type checkers and to humans."""

    @visit.register
    def _raise(self, node: ast.Raise) -> None:
        self.put(node, "pass")

    @visit.register(ast.Break)
    @visit.register(ast.Continue)
    @visit.register(ast.Delete)
    def _statement(self, node: Any) -> None:
        self.put(node, "pass")

    @visit.register
    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.put(node, "pass")
        self.inside(node)

    @visit.register(ast.Assign)
    @visit.register(ast.AugAssign)
    def _assign(self, node: Any) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
        if all(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts) or isinstance(node, ast.AugAssign):
            self.put(node, "pass")
        self.inside(node)

    @visit.register
    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    @visit.register
    def _if(self, node: ast.If) -> None:
        if self.text(node.test) != "TYPE_CHECKING":
            self.condition(node.test)
            self.block(node.body)
            self.block(node.orelse)

    @visit.register
    def _choice(self, node: ast.IfExp) -> None:
        self.condition(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    @visit.register
    def _while(self, node: ast.While) -> None:
        self.put(node.test, "False")
        self.inside(node)

    @visit.register
    def _comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.condition(test)
        self.visit(node.iter)

    @visit.register
    def _with(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is None:
                self.put(item.context_expr, "__import__('contextlib').nullcontext()")
        self.inside(node)

    @visit.register
    def _handler(self, node: ast.ExceptHandler) -> None:
        if isinstance(node.type, ast.Name) and node.type.id == "BaseException":
            self.put(node.type, "Exception")
        self.block(node.body)

    @visit.register
    def _compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self.between(left, right, type(operator))
        self.inside(node)

    @visit.register
    def _binary(self, node: ast.BinOp) -> None:
        if not any(isinstance(side, ast.JoinedStr) for side in (node.left, node.right)):
            self.between(node.left, node.right, type(node.op))
        self.inside(node)

    @visit.register
    def _boolean(self, node: ast.BoolOp) -> None:
        """Leave each operand out in turn."""
        for n, value in enumerate(node.values):
            if n:
                self.put_at(value, self.span(node.values[n - 1])[1], self.span(value)[1], "")
            else:
                self.put_at(value, self.span(value)[0], self.span(node.values[1])[0], "")
        self.inside(node)

    @visit.register
    def _unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.put(node, self.text(node.operand))
        self.inside(node)

    @visit.register
    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.put(node, str(not value))
        elif isinstance(value, (int, float)):
            self.put(node, str(value + 1))
        elif isinstance(value, str) and " " not in value:  # others are messages
            self.put(node, repr("x" + value))

    @visit.register
    def _slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self.put(bound, "")
        self.inside(node)

    @visit.register
    def _call(self, node: ast.Call) -> None:
        function = node.func
        if self.text(function).startswith("logger.") or self.text(function) in LEFT_ALONE:  # a message
            return
        if isinstance(function, ast.Name):
            if function.id in SWAPPED:
                self.put(function, SWAPPED[function.id])
            if function.id in SHOWN and not node.keywords:
                for argument in node.args:
                    if not isinstance(argument, (ast.Constant, ast.Starred, ast.GeneratorExp)):
                        self.put(node, self.text(argument))
        elif isinstance(function, ast.Attribute) and function.attr in COPIES and not node.args:
            self.put(node, self.text(function.value))
        for n, keyword in enumerate(node.keywords):
            before = node.args[-1] if n == 0 and node.args else node.keywords[n - 1].value if n else None
            start = self.span(before)[1] if before is not None else self.span(keyword)[0]
            end = self.span(keyword)[1]
            if before is None and self.data[end : end + 1] == b",":
                end += 1
            if keyword.arg is not None:
                self.put_at(keyword, start, end, "")
        self.inside(node)
