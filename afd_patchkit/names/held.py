"""Where code that runs at import puts an object that it names: assignments, containers, defaults, arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.source.locate import dotted
from afd_patchkit.source.syntax import blocks, typing_block

How = Literal["assigned", "wrapped", "value", "default", "argument"]

_FORGETS = frozenset(
    {"isinstance", "issubclass", "hasattr", "getattr", "len", "id", "repr", "str", "print", "callable", "hash"}
)
"""Functions that do not keep what they are given."""


@dataclass(frozen=True, slots=True)
class Keeps:
    """One expression whose object something keeps from import on.

    Attributes:
        named: the expression, `f` or `module.f`.
        how: what keeps it.
        name: what keeps it, as it is called in its module: `g`, `K.run`, `TABLE`, `function(parameter)`, `callee(...)`.
        line: where the expression stands.
    """

    named: str
    how: How
    name: str
    line: int


def held(body: Iterable[ast.stmt]) -> Iterator[Keeps]:
    """Everything that statements of a module keep when they run at import; what is inside of functions runs later."""
    yield from _block(body, "")


def _block(body: Iterable[ast.stmt], scope: str) -> Iterator[Keeps]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _decorators(node, scope)
            yield from _defaults(node.args, f"{scope}{node.name}")
        elif isinstance(node, ast.ClassDef):
            yield from _decorators(node, scope)
            yield from _block(node.body, f"{scope}{node.name}.")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(target, node.value, scope)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            if node.value is not None:
                yield from _assigned(node.target, node.value, scope)
        elif isinstance(node, ast.Expr):
            yield from _expression(node.value, "argument", "", scope)
        elif isinstance(node, ast.If) and _is_main(node.test):
            yield from _block(node.orelse, scope)
        else:
            if isinstance(node, (ast.For, ast.AsyncFor)):
                yield from _assigned(node.target, node.iter, scope)
            hidden = typing_block(node.test) if isinstance(node, ast.If) else None
            for block in blocks(node):
                if block.name != hidden:
                    yield from _block(block.body, scope)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: str) -> Iterator[Keeps]:
    for decorator in node.decorator_list:
        if not dotted(decorator):  # it is called and gone
            yield from _expression(decorator, "argument", "", scope)


def _defaults(args: ast.arguments, function: str) -> Iterator[Keeps]:
    positional = [*args.posonlyargs, *args.args]
    first = len(positional) - len(args.defaults)
    pairs = [*zip(positional[first:], args.defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    for parameter, value in pairs:
        if value is not None:
            yield from _expression(value, "default", f"{function}({parameter.arg})", "")


def _assigned(target: ast.expr, value: ast.expr, scope: str) -> Iterator[Keeps]:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from _assigned(one, part, scope)
            return
        name, how = ast.unparse(target).strip("()[]"), "value"
    else:
        of = target.value if isinstance(target, (ast.Subscript, ast.Starred)) else target
        name, how = dotted(of) or ast.unparse(of), "value" if of is not target else "assigned"
    yield from _expression(value, "value" if how == "value" else "assigned", f"{scope}{name}", scope)


def _expression(node: ast.expr, how: How, name: str, scope: str) -> Iterator[Keeps]:
    """What an expression keeps; `how` says what happens to its value."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        if named := dotted(node):
            if how != "argument" or name:
                yield Keeps(named, how, name, node.lineno)
        elif isinstance(node, ast.Attribute):
            yield from _expression(node.value, "argument", "", scope)  # an attribute of it, not itself
    elif isinstance(node, ast.Call):
        yield from _call(node, how, name, scope)
    elif isinstance(node, ast.Lambda):
        yield from _defaults(node.args, name or "lambda")
    elif isinstance(node, ast.IfExp):
        for part in (node.body, node.orelse):
            yield from _expression(part, how, name, scope)
    elif isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from _expression(part, how, name, scope)
    elif isinstance(node, ast.NamedExpr):
        yield from _assigned(node.target, node.value, scope)
        yield from _expression(node.value, how, name, scope)
    elif isinstance(node, (ast.Subscript, ast.Compare, ast.UnaryOp, ast.JoinedStr)):
        return  # another object
    else:
        inner: How = how if how in ("default", "argument") else "value"
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _expression(child, inner, name, scope)
            elif isinstance(child, ast.comprehension):
                yield from _expression(child.iter, inner, name, scope)


def _call(node: ast.Call, how: How, name: str, scope: str) -> Iterator[Keeps]:
    callee = dotted(node.func)
    if not callee:
        yield from _expression(node.func, "argument", "", scope)
    if callee in _FORGETS:
        return
    inner: How = "wrapped" if how == "assigned" else how
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        yield from _expression(argument, inner, name or f"{callee or ast.unparse(node.func)}(...)", scope)
