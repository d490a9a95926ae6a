"""Changes that break nobody."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from tools.oracles.meaning.edits import (
    alias_of,
    below_docstring,
    class_at,
    definition_at,
    fields_of,
    first_line,
    function_at,
    head_of,
    members_of,
    on_parameters,
    operator,
    put_before,
    put_behind,
    reimported,
    replaced,
    swapped,
    taken_away,
)
from tools.oracles.meaning.sources import Listing
from tools.oracles.meaning.spots import FUNCTION, MOVED, Draw, Files, NotHere, Spot, one_of


def _laid_out(listing: Listing, node: Any, comment: str) -> str:
    """The `def` line with one parameter a line, each as it is written."""

    def _shown(arg: ast.arg, default: ast.expr | None) -> str:
        pieces = [listing.text[slice(*listing.span(n))] for n in (arg, default) if n is not None]
        if any("\n" in p for p in pieces):
            raise NotHere
        return " = ".join(pieces)

    head = head_of(node, node.args)
    word, _, _ = head.partition("(")
    shown: list[str] = []
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    for i, arg in enumerate(positional):
        at = i - (len(positional) - len(a.defaults))
        shown.append(_shown(arg, a.defaults[at] if at >= 0 else None))
        if a.posonlyargs and i == len(a.posonlyargs) - 1:
            shown.append("/")
    if a.vararg:
        shown.append("*" + _shown(a.vararg, None))
    elif a.kwonlyargs:
        shown.append("*")
    shown += [_shown(arg, d) for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    if a.kwarg:
        shown.append("**" + _shown(a.kwarg, None))
    if not shown:
        raise NotHere
    end = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    last = "" if shown[-1].startswith("**") else ","
    return (
        f"{word}(\n"
        + "\n".join(f"    {s}{',' if n < len(shown) - 1 else last}{comment}" for n, s in enumerate(shown))
        + f"\n){end}:"
    )


def _relaid(spot: Spot, comment: str) -> Files:
    node = function_at(spot)
    body = first_line(node.body[0])
    if body <= node.lineno:
        raise NotHere
    text = textwrap.indent(_laid_out(spot.listing, node, comment), " " * node.col_offset)
    return {spot.listing.module: replaced(spot.listing, node.lineno, body - 1, text)}


@operator("move, re-exported", compatible=True)
def _move(_: Draw, spot: Spot) -> Files:
    node, text = taken_away(spot)
    line = f"from {MOVED} import {node.name}"
    return {spot.listing.module: replaced(spot.listing, first_line(node), node.end_lineno, line), MOVED: text}


@on_parameters("new optional parameter", compatible=True)
def _optional(draw: Draw, a: ast.arguments, bound: int) -> None:
    default = ast.Constant(draw.choice([None, 0, "x"]))
    if a.vararg or a.kwonlyargs or draw.random() < 0.3:
        a.kwonlyargs.append(ast.arg("probe_new"))
        a.kw_defaults.append(default)
    else:
        a.args.append(ast.arg("probe_new"))
        a.defaults.append(default)


@operator("new optional field", compatible=True)
def _field_optional(_: Draw, spot: Spot) -> Files:
    found = fields_of(class_at(spot))
    if not found or found[-1].value is None:
        raise NotHere
    return {spot.listing.module: put_behind(spot.listing, found[-1], "probe_new: int = 0")}


@operator("new member", compatible=True)
def _member_new(_: Draw, spot: Spot) -> Files:
    found = members_of(class_at(spot))
    if not found:
        raise NotHere
    return {spot.listing.module: put_behind(spot.listing, found[-1], "PROBE_NEW = 'probe'")}


@operator("imported by way of another", compatible=True)
def _by_way(_: Draw, spot: Spot) -> Files:
    node, alias = alias_of(spot)
    line = f"from {MOVED} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    text = f"from {spot.listing.absolute(node)} import {alias.name}\n"
    return {spot.listing.module: reimported(spot, node, alias, line), MOVED: text}


@operator("another body", compatible=True)
def _body(draw: Draw, spot: Spot) -> Files:
    function_at(spot)
    return {
        spot.listing.module: below_docstring(
            spot, draw.choice(["probe_new = 1", "if not len:\n    print('probe')", "# a remark"])
        )
    }


@operator("another docstring", compatible=True)
def _docstring(_: Draw, spot: Spot) -> Files:
    node = definition_at(spot)
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        start, end = spot.listing.span(first)
        return {spot.listing.module: f'{spot.listing.text[:start]}"""Another docstring."""{spot.listing.text[end:]}'}
    if first_line(first) <= node.lineno:
        raise NotHere
    return {spot.listing.module: put_before(spot.listing, first, '"""A docstring."""')}


@operator("a new definition near", compatible=True)
def _near(draw: Draw, spot: Spot) -> Files:
    node = definition_at(spot)
    inside = spot.owner is not None
    text = (
        f"def probe_new({'self, ' if inside else ''}a, b=1):\n    return a\n"
        if draw.random() < 0.7 or inside
        else "PROBE_NEW = 1\n"
    )
    return {spot.listing.module: put_before(spot.listing, node, text)}


@operator("a new method", compatible=True)
def _new_method(_: Draw, spot: Spot) -> Files:
    node = class_at(spot)
    if any("Enum" in ast.unparse(b) for b in node.bases):
        raise NotHere
    return {spot.listing.module: put_behind(spot.listing, node.body[-1], "\ndef probe_new(self):\n    return self")}


@operator("definitions in another order", compatible=True)
def _order(_: Draw, spot: Spot) -> Files:
    node = function_at(spot)
    if spot.owner is None:
        raise NotHere
    body = spot.owner.body
    at = body.index(node)
    for other in (at + 1, at - 1):
        if not 0 <= other < len(body) or not isinstance(body[other], FUNCTION):
            continue
        one, two = body[min(at, other)], body[max(at, other)]
        if one.name == two.name or one.decorator_list or two.decorator_list:  # type: ignore[attr-defined]
            continue
        return {spot.listing.module: swapped(spot.listing, one, two)}
    raise NotHere


@operator("a parameter's comment", compatible=True)
def _comment(_: Draw, spot: Spot) -> Files:
    return _relaid(spot, "  # a remark")


@operator("one parameter a line", compatible=True)
def _layout(_: Draw, spot: Spot) -> Files:
    return _relaid(spot, "")


@operator("annotations laid out otherwise", compatible=True)
def _annotations(draw: Draw, spot: Spot) -> Files:
    if isinstance(spot.node, FUNCTION):
        node = function_at(spot)
        found = [
            n
            for n in (node.returns, *(a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg)))
            if n is not None
        ]
    else:
        found = [n.annotation for n in ast.walk(spot.node) if isinstance(n, ast.AnnAssign)]
    found = [n for n in found if not isinstance(n, ast.Constant)]
    note = one_of(draw, found)
    start, end = spot.listing.span(note)
    old = spot.listing.text[start:end]
    ways = [f"({old})"]
    if "[" in old and "\n" not in old:
        ways += [old.replace("[", "[\n" + " " * 12, 1), old.replace("[", "[ ", 1)]
    if '"' not in old and "\n" not in old and not isinstance(spot.node, ast.ClassDef):
        ways.append(f'"{old}"')
    return {spot.listing.module: spot.listing.text[:start] + draw.choice(ways) + spot.listing.text[end:]}
