"""What the statements of a file act on: what they bind again, extend, register something with, delete, or set an attribute of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from afd_patchkit.source.decorators import changing
from afd_patchkit.source.locate import ACCESSORS, dotted, first_line
from afd_patchkit.source.syntax import (
    CHOICE,
    DEFINITION,
    FUNCTION,
    blocks,
    bound_names,
    nodes,
    own_parts,
    typing_block,
)
from afd_patchkit.source.text import SourceFile, Span

How = Literal["rebound", "extended", "attribute", "deleted", "registered", "passed", "at run time", "rewritten"]

MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "update",
        "setdefault",
        "add",
        "remove",
        "discard",
        "pop",
        "popitem",
        "clear",
        "sort",
        "reverse",
        "appendleft",
        "extendleft",
        "register",
    ]
)
_HARMLESS_CALLS = frozenset({"print", "debug", "info", "warning", "error", "exception", "critical", "log", "warn"})


@dataclass(frozen=True, slots=True)
class Touch:
    """One statement that acts on something that the module defines.

    Attributes:
        subject: what it acts on: a dotted name.
        how: what it does.
        node: the statement, or the decorator.
        branch: the blocks that it stands in, each with its statement's line and its number there.
        span: the bytes that say it.
        file: the file that it stands in; None for that of the definition.
        does: what it does when its function is called, of what acts at run time.
        method: the method of the subject that it calls, if that is how it acts.
    """

    subject: str
    how: How
    node: ast.AST
    branch: tuple[tuple[int, int], ...]
    span: Span
    file: SourceFile | None = None
    does: How | None = None
    method: str = ""


def touches(file: SourceFile) -> dict[str, list[Touch]]:
    """What the statements of a file act on, by subject."""
    known: dict[str, list[Touch]] | None = file.__dict__.get("_completions")
    if known is None:
        known = {}
        for touch in _Walk(file).found:
            known.setdefault(touch.subject, []).append(touch)
        file.__dict__["_completions"] = known
    return known


def acting(found: Iterable[Touch], node: ast.AST | None) -> list[Touch]:
    """Those of some statements that act on what a statement defines.

    What a class, or a function that no decorator made something else of, is asked for by name is its own: `C.pop()` and
    `@C.timed` change nothing of it. A call of a method hands it to that method all the same.

    Args:
        found: statements that act on something.
        node: what defines it; None for all others.
    """
    if not isinstance(node, DEFINITION) or (isinstance(node, FUNCTION) and changing(node, "contract")):
        return list(found)
    out = []
    for touch in found:
        if not touch.method or "register" in touch.method:
            out.append(touch)
        elif isinstance(touch.node, ast.Expr) and touch.how == "extended":
            out.append(replace(touch, how="passed"))
    return out


class _Walk:
    """Collects what the statements of a file act on."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.found: list[Touch] = []
        self.prefix = ""
        self.members: frozenset[str] = frozenset()
        self.branch: tuple[tuple[int, int], ...] = ()
        self.called = False
        """Whether the statements are those of a function, which run when it is called."""
        self.body(file.tree.body)

    def add(self, subject: str, how: How, node: ast.AST, span: Span | None = None, method: str = "") -> None:
        if subject.endswith(".__dict__"):
            subject, how = subject.removesuffix(".__dict__"), "attribute"
            method = ""
        head = subject.partition(".")[0]
        if head in self.members:
            subject = f"{self.prefix}.{subject}"
        self.found.append(Touch(subject, how, node, self.branch, span or self.file.node_span(node), method=method))

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            if isinstance(node, DEFINITION):
                self.definition(node)
                continue
            self.statement(node)
            hidden = typing_block(node.test) if isinstance(node, ast.If) else None
            if isinstance(node, ast.If) and _main(node.test):
                hidden = "body"
            before = self.branch
            for number, block in enumerate(blocks(node)):
                if block.name != hidden:
                    # what follows `else:` of a loop or `try` runs after its body
                    alternative = number if isinstance(node, CHOICE) or block.name.startswith("handlers") else 0
                    self.branch = (*before, (node.lineno, alternative))
                    self.body(block.body)
            self.branch = before

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        start = self.file.offset(first_line(node))
        header = Span(start, self.file.node_span(node.body[0]).start)
        for decorator in node.decorator_list:
            self.decorator(decorator, node, Span(self.file.node_span(decorator).start, header.end))
        self.add(node.name, "rebound", node, header)
        if isinstance(node, FUNCTION):
            self.function(node)
            return
        outer = self.prefix, self.members
        self.prefix = f"{self.prefix}.{node.name}" if self.prefix else node.name
        self.members = frozenset(_bound_in(node.body))
        self.body(node.body)
        self.prefix, self.members = outer

    def decorator(self, decorator: ast.expr, node: ast.AST, span: Span) -> None:
        while isinstance(decorator, ast.Call):
            decorator = decorator.func
        if (
            isinstance(decorator, ast.Attribute)
            and decorator.attr not in ACCESSORS
            and (chain := dotted(decorator.value))
        ):
            self.add(chain, "registered", node, span, decorator.attr)

    # ---- statements ---------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            if node.value is None:
                return
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.target(target, node, "extended" if isinstance(node, ast.AugAssign) else "rebound")
            if (
                isinstance(node.value, ast.Attribute)
                and "register" in node.value.attr
                and (chain := dotted(node.value.value))
            ):
                self.add(chain, "passed", node)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self.target(target, node, "deleted")
        elif not isinstance(node, ast.Expr):
            for name in bound_names(node):
                self.add(name, "rebound", node, self.file.line_span(node.lineno, node.lineno))
            for target in _targets(node):
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    self.target(target, node, "rebound", self.file.line_span(node.lineno, node.lineno))
        for inner in nodes(*own_parts(node)):
            if isinstance(inner, ast.Call):
                self.call(inner, node, dropped=isinstance(node, ast.Expr) and node.value is inner)
            elif isinstance(inner, ast.NamedExpr):
                self.add(inner.target.id, "rebound", node, self.file.node_span(inner))

    def target(self, target: ast.expr, node: ast.stmt, how: How, span: Span | None = None) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self.target(item, node, how, span)
        elif isinstance(target, ast.Starred):
            self.target(target.value, node, how, span)
        elif isinstance(target, ast.Subscript):
            name = target.slice.value if isinstance(target.slice, ast.Constant) else None
            if isinstance(target.value, ast.Call) and dotted(target.value.func) == "globals" and isinstance(name, str):
                self.add(name, how, node, span)
            elif chain := _root(target.value):
                self.add(chain, "extended", node, span)
        elif chain := dotted(target):
            self.add(chain, how, node, span)
            if isinstance(target, ast.Attribute):
                self.add(dotted(target.value), "attribute", node, span)
        elif isinstance(target, ast.Attribute) and (chain := _root(target.value)):
            self.add(chain, "extended", node, span)

    def call(self, call: ast.Call, node: ast.stmt, *, dropped: bool) -> None:
        func = call.func
        while isinstance(func, ast.Call):
            func = func.func
        name = dotted(func)
        last = func.attr if isinstance(func, ast.Attribute) else name
        if name in ("setattr", "delattr") and call.args and (chain := dotted(call.args[0])):
            self.add(chain, "attribute", node)
            named = call.args[1] if len(call.args) > 1 else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                self.add(f"{chain}.{named.value}", "rebound" if name == "setattr" else "deleted", node)
            return
        if last.removesuffix("_once") in _HARMLESS_CALLS:
            return
        acts = last in MUTATORS or (dropped and not self.called)
        if acts and isinstance(func, ast.Attribute) and (chain := _root(func.value)):
            self.add(chain, "registered" if "register" in last else "extended", node, method=last)
        if dropped:
            given = [*call.args, *(k.value for k in call.keywords)]
            for chain in dict.fromkeys(c for a in given if (c := dotted(a))):
                self.add(chain, "passed", node)

    # ---- functions ----------------------------------------------------------------------------------------------

    def function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """What a function does to globals when it is called."""
        inner = list(nodes(function))
        declared = {name for n in inner if isinstance(n, ast.Global) for name in n.names}
        local = {n.arg for n in inner if isinstance(n, ast.arg)}
        local |= {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - declared
        outer, self.found = self.found, []
        members, self.members = self.members, frozenset()
        self.called = True
        for node in inner:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr)):
                self.statement(node)
            elif isinstance(node, DEFINITION) and node is not function:
                for decorator in node.decorator_list:
                    self.decorator(decorator, node, self.file.node_span(decorator))
        for touch in self.found:
            head, _, rest = touch.subject.partition(".")
            plain = not rest and touch.how in ("rebound", "deleted")
            if head not in local and touch.how != "passed" and (not plain or head in declared):
                outer.append(
                    Touch(touch.subject, "at run time", touch.node, (), touch.span, does=touch.how, method=touch.method)
                )
        self.found, self.members, self.called = outer, members, False


def _bound_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        yield from bound_names(node)
        if not isinstance(node, DEFINITION):
            for block in blocks(node):
                yield from _bound_in(block.body)


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    """What `for` and `with` assign to, one by one."""
    found = [node.target] if isinstance(node, (ast.For, ast.AsyncFor)) else []
    if isinstance(node, (ast.With, ast.AsyncWith)):
        found = [item.optional_vars for item in node.items if item.optional_vars is not None]
    while found:
        target = found.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            found += target.elts
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _root(node: ast.expr) -> str:
    """The dotted name that an object is taken from: of `A["x"]` and `A.get("x")` it is `A`; of `vars(C)` it is `C.__dict__`."""
    while not dotted(node):
        if isinstance(node, ast.Call) and dotted(node.func) == "vars" and node.args and dotted(node.args[0]):
            return f"{dotted(node.args[0])}.__dict__"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        else:
            return ""
    return dotted(node)


def _main(test: ast.expr) -> bool:
    """Whether a test is `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(test))
