"""Facts about a function that its callers and its changes depend on: what it returns, what it reads, what it binds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from afd_patchkit.source.syntax import binding, docstring_of
from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import token_digest, tokens_in

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def own_nodes(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes below `roots` that run in their scope; nested functions and classes are given, not entered."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack += ast.iter_child_nodes(node)


def result_shape(node: ast.AST) -> tuple[str, ...]:
    """How a function hands out results: `return tuple 2`, `return value`, `return none`, `yield call Name`, ... sorted.

    Values that are names or attributes are all alike: what they hold cannot be seen here.
    """
    found = set()
    for inner in own_nodes(getattr(node, "body", ())):
        if isinstance(inner, ast.Return):
            found.add(f"return {_shape(inner.value)}")
        elif isinstance(inner, ast.Yield):
            found.add(f"yield {_shape(inner.value)}")
        elif isinstance(inner, ast.YieldFrom):
            found.add("yield from")
    return tuple(sorted(found))


def _shape(value: ast.expr | None) -> str:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return "none"
    if isinstance(value, ast.Tuple):
        return "tuple" if any(isinstance(e, ast.Starred) for e in value.elts) else f"tuple {len(value.elts)}"
    if isinstance(value, (ast.List, ast.Dict, ast.Set)):
        return type(value).__name__.lower()
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
        return f"call {value.func.id}"
    return "value"


def attributes_read(node: ast.AST) -> tuple[str, ...]:
    """`parameter.attribute` for every attribute read directly from a parameter, nested functions included; sorted."""
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return ()
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return tuple(
        sorted(
            {
                f"{inner.value.id}.{inner.attr}"
                for statement in getattr(node, "body", ())
                for inner in ast.walk(statement)
                if isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Load)
                and isinstance(inner.value, ast.Name)
                and inner.value.id in names
            }
        )
    )


def names_bound(roots: Iterable[ast.AST]) -> set[str]:
    """Names that the code binds in its own scope."""
    return {found[0] for node in own_nodes(roots) if (found := binding(node)) and found[1] != "type"}


def names_read(roots: Iterable[ast.AST]) -> set[str]:
    """Names that the code reads, nested scopes included."""
    return {n.id for root in roots for n in ast.walk(root) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def body_digest(node: ast.AST, text: Text) -> str | None:
    """Token digest of a definition's body, its docstring left out; None for what has none, or only a docstring."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return None
    body = body[1:] if docstring_of(body) else body
    if not body:
        return None
    return token_digest(tokens_in(text, Span(text.node_span(body[0]).start, text.node_span(body[-1]).end)))
