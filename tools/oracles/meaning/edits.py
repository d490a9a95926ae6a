"""Edits of the text of a module, by statements; and the table of changes."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable
from typing import Any

from tools.oracles.meaning.sources import Listing
from tools.oracles.meaning.spots import FUNCTION, Draw, Files, NotHere, Spot
from tools.oracles.meaning.standins import last_name


def first_line(node: Any) -> int:
    """The first line of a statement, decorators included."""
    lines: list[int] = [node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]
    return min(lines)


def replaced(listing: Listing, first: int, last: int, new: str | None) -> str:
    """The text with some lines replaced.

    Args:
        listing: the module.
        first: the first one.
        last: the last one.
        new: what stands there then; None for nothing.
    """
    lines = listing.text.split("\n")
    lines[first - 1 : last] = [] if new is None else new.split("\n")
    return "\n".join(lines)


def whole(listing: Listing, node: Any) -> str:
    return "\n".join(listing.text.split("\n")[first_line(node) - 1 : node.end_lineno])


def alone(listing: Listing, node: Any) -> None:
    """The statement has its lines for itself."""
    lines = listing.text.split("\n")
    if lines[first_line(node) - 1][: node.col_offset].strip() or ";" in lines[node.end_lineno - 1]:
        raise NotHere


def head_of(node: Any, arguments: ast.arguments, word: str | None = None, gives: str | None = None) -> str:
    """A `def` line.

    Args:
        node: the function.
        arguments: its parameters.
        word: `def` or `async def`; by default what it is.
        gives: its return annotation; by default its own.
    """
    if word is None:
        word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = gives if gives is not None else ast.unparse(node.returns) if node.returns else ""
    return f"{word} {node.name}({ast.unparse(arguments)})" + (f" -> {returns}" if returns else "") + ":"


def headed(
    listing: Listing, node: Any, arguments: ast.arguments, word: str | None = None, gives: str | None = None
) -> str:
    """The text with another `def` line.

    Args:
        listing: the module.
        node: the function.
        arguments: its parameters then.
        word: `def` or `async def`; by default what it is.
        gives: its return annotation; by default its own.
    """
    body = first_line(node.body[0])
    if body <= node.lineno:
        raise NotHere
    head = head_of(node, arguments, word, gives)
    lines = listing.text.split("\n")
    behind = lines[node.lineno - 1 : body - 1]
    if len(behind) > 1 and behind[-1].strip().startswith("#"):
        raise NotHere
    return replaced(listing, node.lineno, body - 1, textwrap.indent(head, " " * node.col_offset))


def left_without(listing: Listing, node: Any) -> str:
    """The text without a statement; `pass` where its block would be empty."""
    lines = replaced(listing, first_line(node), node.end_lineno, None)
    try:
        ast.parse(lines)
    except SyntaxError:
        return replaced(listing, first_line(node), node.end_lineno, " " * node.col_offset + "pass")
    return lines


def put_behind(listing: Listing, node: Any, text: str) -> str:
    alone(listing, node)
    lines = listing.text.split("\n")
    lines[node.end_lineno : node.end_lineno] = textwrap.indent(text, " " * node.col_offset).split("\n")
    return "\n".join(lines)


def put_before(listing: Listing, node: Any, text: str) -> str:
    alone(listing, node)
    lines = listing.text.split("\n")
    lines[first_line(node) - 1 : first_line(node) - 1] = textwrap.indent(text, " " * node.col_offset).split("\n")
    return "\n".join(lines)


def swapped(listing: Listing, one: Any, other: Any) -> str:
    alone(listing, one)
    alone(listing, other)
    lines = listing.text.split("\n")
    a, b = slice(first_line(one) - 1, one.end_lineno), slice(first_line(other) - 1, other.end_lineno)
    if a.stop > b.start:
        raise NotHere
    return "\n".join([*lines[: a.start], *lines[b], *lines[a.stop : b.start], *lines[a], *lines[b.stop :]])


def function_at(spot: Spot) -> Any:
    if not isinstance(spot.node, FUNCTION):
        raise NotHere
    alone(spot.listing, spot.node)
    return spot.node


def class_at(spot: Spot) -> ast.ClassDef:
    if not isinstance(spot.node, ast.ClassDef) or spot.attribute:
        raise NotHere
    alone(spot.listing, spot.node)
    return spot.node


def definition_at(spot: Spot) -> Any:
    if not isinstance(spot.node, (*FUNCTION, ast.ClassDef)) or spot.attribute:
        raise NotHere
    alone(spot.listing, spot.node)
    return spot.node


def below_docstring(spot: Spot, text: str) -> str:
    node = definition_at(spot)
    first = node.body[0]
    docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    if first_line(first) <= node.lineno:
        raise NotHere
    return put_behind(spot.listing, first, text) if docstring else put_before(spot.listing, first, text)


CHANGES: dict[str, tuple[bool, Callable[[Draw, Spot], Files]]] = {}


def operator(
    name: str, *, compatible: bool = False
) -> Callable[[Callable[[Draw, Spot], Files]], Callable[[Draw, Spot], Files]]:
    def keep(function: Callable[[Draw, Spot], Files]) -> Callable[[Draw, Spot], Files]:
        CHANGES[name] = (compatible, function)
        return function

    return keep


def on_parameters(
    name: str, *, compatible: bool = False
) -> Callable[[Callable[[Draw, ast.arguments, int], None]], None]:
    def keep(function: Callable[[Draw, ast.arguments, int], None]) -> None:
        def change(draw: Draw, spot: Spot) -> Files:
            node, arguments, bound = parameters_of(spot)
            if any(last_name(d) in {"property", "cached_property", "setter"} for d in node.decorator_list):
                raise NotHere
            function(draw, arguments, bound)
            return {spot.listing.module: headed(spot.listing, node, arguments)}

        CHANGES[name] = (compatible, change)

    return keep


def parameters_of(spot: Spot) -> tuple[Any, ast.arguments, int]:
    """A function, a copy of its parameters, and how many of them are given by being bound."""
    node = function_at(spot)
    static = any(last_name(d) == "staticmethod" for d in node.decorator_list)
    return node, copy.deepcopy(node.args), int(spot.owner is not None and not static)


def fields_of(node: ast.ClassDef) -> list[ast.AnnAssign]:
    if not any(last_name(d) in {"dataclass", "config"} for d in node.decorator_list):
        raise NotHere
    return [
        n
        for n in node.body
        if isinstance(n, ast.AnnAssign)
        and isinstance(n.target, ast.Name)
        and "ClassVar" not in ast.unparse(n.annotation)
    ]


def members_of(node: ast.ClassDef) -> list[ast.Assign]:
    if not any("Enum" in ast.unparse(b) or "Flag" in ast.unparse(b) for b in node.bases):
        raise NotHere
    return [
        n for n in node.body if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)
    ]


def alias_of(spot: Spot) -> tuple[ast.ImportFrom, ast.alias]:
    if not isinstance(spot.node, ast.ImportFrom):
        raise NotHere
    alone(spot.listing, spot.node)
    return spot.node, next(a for a in spot.node.names if (a.asname or a.name) == spot.name)


def reimported(spot: Spot, node: ast.ImportFrom, alias: ast.alias, line: str) -> str:
    """The text with a name imported otherwise.

    Args:
        spot: the name.
        node: the import.
        alias: its part of it.
        line: what imports it then; empty for nothing.
    """
    rest = [a for a in node.names if a is not alias]
    made = [ast.unparse(ast.ImportFrom(node.module, rest, node.level))] if rest else []
    text = textwrap.indent("\n".join([*made, *([line] if line else [])]) or "pass", " " * node.col_offset)
    return replaced(spot.listing, node.lineno, node.end_lineno or node.lineno, text)


def taken_away(spot: Spot) -> tuple[Any, str]:
    node = definition_at(spot)
    if spot.owner is not None:
        raise NotHere
    imports = [
        n for n in spot.listing.tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and not getattr(n, "level", 0)
    ]
    head = "\n".join(ast.unparse(n) for n in imports if getattr(n, "module", "") != "__future__")
    others = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & set(spot.listing.names) - {node.name})
    own = [
        n
        for n in others
        if not all(
            isinstance(s.node, (ast.Import, ast.ImportFrom)) and not getattr(s.node, "level", 0)
            for s in spot.listing.names[n]
        )
    ]
    head += f"\nfrom {spot.listing.module} import {', '.join(own)}" if own else ""
    return node, f"{head}\n\n\n{whole(spot.listing, node)}\n"
