"""Private names, which Python mangles for the class that they are written in."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.names.analysis import is_private, mangle
from afd_patchkit.names.model import NameContext
from afd_patchkit.names.spans import ident_span, listed_spans
from afd_patchkit.source.syntax import binding
from afd_patchkit.source.text import Span, Text


@dataclass(frozen=True, slots=True)
class Identifier:
    """A private identifier and the place where it stands."""

    name: str
    span: Span | None
    node: ast.AST


def mangled_differently(context: NameContext) -> bool:
    """Whether private identifiers of the upstream text would mean something else where it is placed."""
    classes = context.symbol.classes
    before = mangle("__x", classes[-1].name if classes else None)
    after = mangle("__x", context.generated_class if context.placement == "class" else None)
    return before != after


def private_identifiers(nodes: Iterable[ast.stmt], text: Text) -> Iterator[Identifier]:
    """Private identifiers that the class around the statements mangles (those in nested classes keep their own)."""
    for node in nodes:
        yield from _private(node, text, None)


def _private(node: ast.AST, text: Text, fstring: ast.AST | None) -> Iterator[Identifier]:
    if isinstance(node, ast.JoinedStr) and fstring is None:
        fstring = node
    for name, carrier, kind in _identifiers(node):
        if is_private(name):
            yield Identifier(name, ident_span(text, carrier, kind, name, fstring), carrier)
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        for name, span in zip(node.names, listed_spans(text, node), strict=True):
            if is_private(name):
                yield Identifier(name, span, node)
    if isinstance(node, ast.ClassDef):
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            yield from _private(child, text, fstring)
        return
    for child in ast.iter_child_nodes(node):
        yield from _private(child, text, fstring)


def _identifiers(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """What Python mangles; keywords of calls and attributes in class patterns it does not."""
    if isinstance(node, ast.Name):
        yield node.id, node, "name"
    elif isinstance(node, ast.Attribute):
        yield node.attr, node, "attribute"
    elif found := binding(node):
        yield found[0], node, found[1]


def mangled(
    nodes: Sequence[ast.stmt], text: Text, context: NameContext, left: Collection[int]
) -> tuple[list[tuple[Span | None, str, str]], tuple[str, str | None] | None]:
    """The private names of an entry as Python mangles them upstream.

    Args:
        nodes: statements of `text`.
        text: the rendered entry.
        context: the entry.
        left: ids of nodes whose names stay.

    Returns:
        Where a name stands (None where that cannot be told), what it becomes, and the name; and why one cannot be
        written here, with what to do, if so.
    """
    symbol = context.symbol
    private = symbol.classes[-1].name if symbol.classes else None
    top = {id(node) for node in nodes}
    changes: list[tuple[Span | None, str, str]] = []
    refused: tuple[str, str | None] | None = None
    for item in private_identifiers(nodes, text):
        if id(item.node) in left:
            continue
        if id(item.node) in top and (context.placement == "module" or context.generated_name != symbol.name):
            continue
        name = mangle(item.name, private)
        if name == item.name:
            return changes, (
                f"`{item.name}` is not mangled upstream, but would be in class {context.generated_class}",
                "Put the entry at module level, or change the name by a delta.",
            )
        if isinstance(item.node, ast.alias):
            if item.node.asname is None and (item.span is None or "." in item.node.name):
                refused = f"`{item.node.name}` is imported under a private name", None
                continue
            name = name if item.node.asname else _imported(nodes, item.node, name)
        changes.append((item.span, name, item.name))
    return changes, refused


def _imported(nodes: Sequence[ast.stmt], node: ast.alias, name: str) -> str:
    """`from m import __x` binds the mangled name; `import __x` even looks for a module of the mangled name."""
    for statement in nodes:
        for inner in ast.walk(statement):
            if isinstance(inner, ast.Import) and node in inner.names:
                return name
    return f"{node.name} as {name}"


def inside_functions(nodes: Sequence[ast.stmt]) -> set[int]:
    """The ids of the nodes in the bodies of functions, those aside that name a parameter."""
    found: set[int] = set()
    for function in nodes:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
            inner = [n for statement in function.body for n in ast.walk(statement)]
            found |= {id(n) for n in inner if not (isinstance(n, ast.Name) and n.id in names)}
    return found
