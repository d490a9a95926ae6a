"""What binds a name that a delta reads, changed: bound anew, under another name, to another value; or a name that is another function's."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from tools.oracles.proof.engine import Engine
from tools.oracles.proof.surrounding import (
    FUNCTION,
    TRIES,
    Draw,
    Made,
    NotHere,
    Text,
    drawn,
    offset,
    parameters,
    rewritten,
    start,
)

_ANEW = (
    "with probe() as {n}:\n    pass", "with probe() as (a, {n}):\n    pass", "for {n} in probe():\n    pass", "for a, *{n} in probe():\n    pass",
    "import probe as {n}", "from probe import {n}", "import {n}.probe", "if ({n} := probe()):\n    pass", "probe([{n} := 1 for _ in ()])",
    "try:\n    probe()\nexcept ValueError as {n}:\n    pass", "match probe():\n    case [{n}, *_]:\n        pass",
    "match probe():\n    case [*{n}]:\n        pass", "match probe():\n    case {{'k': 1, **{n}}}:\n        pass",
    "match probe():\n    case str() as {n}:\n        pass", "match probe():\n    case int() if ({n} := 1):\n        pass",
    "def {n}():\n    pass", "class {n}:\n    pass", "del {n}", "{n} += 1", "{n}: int = 1", "a = [{n}, b] = probe()",
    "def probe_inner():\n    nonlocal {n}\n    {n} = 1\nprobe_inner()",
)  # fmt: skip
_ELSEWHERE = (
    "def probe_inner({n}):\n    return {n}", "def probe_inner():\n    {n} = 1\n    return {n}", "probe_inner = lambda {n}: {n}",
    "probe_inner = [{n} for {n} in ()]", "class ProbeInner:\n    {n} = 1", "Ellipsis.{n} = 1", "dict({n}=1)",
)  # fmt: skip
"""Pieces of code that bind a name of their own."""


def _reading(draw: Draw, engine: Engine, text: Text, name: str) -> tuple[str, int]:
    """A delta that reads a name, behind a statement further down; and the line of that."""
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("after",))
        if lines[0] > (text.body[1].end_lineno or 0) and not _inside(text, lines[0]):
            return f'{delta.partition("insert: |")[0]}insert: |\n    print("probe", {name})\n', lines[0]
    raise NotHere


def _inside(text: Text, line: int) -> bool:
    """Whether a line stands in a function or class of the function."""
    return any(
        isinstance(n, (*FUNCTION, ast.ClassDef)) and n is not text.node and n.lineno <= line <= (n.end_lineno or 0)
        for n in ast.walk(text.node)
    )


def _anew(draw: Draw, engine: Engine, text: Text) -> Made:
    name = draw.choice(parameters(text))
    delta, _ = _reading(draw, engine, text, name)
    return delta, text.above(draw.choice(_ANEW).format(n=name))


def _another_functions(draw: Draw, engine: Engine, text: Text) -> Made:
    name = draw.choice(parameters(text))
    delta, _ = _reading(draw, engine, text, name)
    return delta, text.above(draw.choice(_ELSEWHERE).format(n=name))


def _global(draw: Draw, engine: Engine, text: Text) -> Made:
    return start("probe_limit = 1\nprint(probe_limit)"), text.above("global probe_limit")


def _nonlocal(draw: Draw, engine: Engine, text: Text) -> Made:
    """A scratch name of a delta in a nested function becomes one of the function around."""
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("before", "after"))
        inner = [n for n in ast.walk(text.node) if isinstance(n, FUNCTION) and n is not text.node]
        inner = [n for n in inner if n.body[0].lineno <= lines[0] <= (n.end_lineno or 0)]
        if inner and inner[-1].body[0].lineno > inner[-1].lineno:
            new = copy.deepcopy(inner[-1])
            new.body.insert(int(isinstance(new.body[0], ast.Expr)), ast.Nonlocal(["probe_limit"]))
            source = rewritten(text, inner[-1], new).split("\n")
            source.insert(text.body[0].lineno - 1, " " * text.body[0].col_offset + "probe_limit = None")
            return (
                f"{delta.partition('insert: |')[0]}insert: |\n    probe_limit = 1\n    print(probe_limit)\n",
                "\n".join(source),
            )
    raise NotHere


def _renamed(draw: Draw, engine: Engine, text: Text) -> Made:
    name = draw.choice(parameters(text))
    return start(f'print("probe", {name})'), _with_name(text, name)


def _with_name(text: Text, name: str) -> str:
    """The function with one of its names written otherwise."""
    places = sorted({place for n in ast.walk(text.node) for place in _places(text, n, name)}, reverse=True)
    source = text.plain
    for at in places:
        source = f"{source[:at]}{name}_renamed{source[at + len(name) :]}"
    return source


def _places(text: Text, node: Any, name: str) -> list[int]:
    if (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.arg) and node.arg == name):
        return [offset(text.plain, node.lineno, node.col_offset)]
    end = {ast.ExceptHandler: "name", ast.MatchAs: "name", ast.MatchStar: "name", ast.alias: "asname"}.get(type(node))
    if end is None or getattr(node, end) != name:
        return []
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        first = offset(text.plain, node.type.end_lineno or 0, node.type.end_col_offset or 0)
        return [first + text.plain[first:].index(f" {name}") + 1]
    return [offset(text.plain, node.end_lineno, node.end_col_offset) - len(name)]


def _binders(text: Text) -> list[tuple[str, Any, Any]]:
    """Names with the statement that binds them alone, and the expression that gives the value."""
    found: list[tuple[str, Any, Any]] = []
    for node in ast.walk(text.node):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            found += [(n.id, node, node.iter) for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            found += [
                (i.optional_vars.id, node, i.context_expr) for i in node.items if isinstance(i.optional_vars, ast.Name)
            ]
        elif isinstance(node, ast.NamedExpr):
            found.append((node.target.id, node, node.value))
        elif isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
            found.append((node.name, node, node.type))
        elif isinstance(node, ast.match_case):
            found += [
                (n.name, node.body[0], None) for n in ast.walk(node.pattern) if isinstance(n, ast.MatchAs) and n.name
            ]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [(a.asname, node, None) for a in node.names if a.asname]
        elif isinstance(node, ast.Assign):
            found += [(t.id, node, node.value) for t in node.targets if isinstance(t, ast.Name)]
    return found


def _bound(draw: Draw, engine: Engine, text: Text, *, valued: bool) -> tuple[str, str, Any]:
    """A delta that reads a name which a statement before it binds: the delta, the name, the value's expression."""
    found = [b for b in _binders(text) if not _inside(text, b[1].lineno) and (b[2] is not None or not valued)]
    kinds = sorted({type(b[1]).__name__ for b in found})
    if not kinds:
        raise NotHere
    kind = draw.choice(kinds)
    name, node, value = draw.choice([b for b in found if type(b[1]).__name__ == kind])
    within = isinstance(node, ast.ExceptHandler)
    for _ in range(TRIES):
        delta, line = _reading(draw, engine, text, name)
        first = node.body[0].lineno if within else node.lineno + 1
        if first <= line and (not within or line <= (node.end_lineno or 0)):
            return delta, name, value
    raise NotHere


def _bound_renamed(draw: Draw, engine: Engine, text: Text) -> Made:
    delta, name, _ = _bound(draw, engine, text, valued=False)
    return delta, _with_name(text, name)


def _value(draw: Draw, engine: Engine, text: Text) -> Made:
    delta, _, value = _bound(draw, engine, text, valued=True)
    if value.lineno != value.end_lineno or text.plain.split("\n")[value.lineno - 1].lstrip().startswith("print"):
        raise NotHere
    return delta, text.replaced(value, f"print({ast.unparse(value)})")


def _in_loop(draw: Draw, engine: Engine, text: Text) -> Made:
    """Bound anew behind the delta, in a loop around it."""
    name = draw.choice(parameters(text))
    for _ in range(TRIES):
        delta, line = _reading(draw, engine, text, name)
        loops = [
            n
            for n in ast.walk(text.node)
            if isinstance(n, (ast.For, ast.While)) and n.body[0].lineno <= line < n.body[-1].lineno
        ]
        code = draw.choice([c for c in _ANEW if "nonlocal" not in c]).format(n=name)
        if loops:
            last = loops[-1].body[-1]
            return delta, text.put(last.lineno, code, last.col_offset)
    raise NotHere


ELSEWHERE = "another function's name"
BINDINGS: dict[str, Callable[[Draw, Engine, Text], Made]] = {
    "global now": _global,
    "nonlocal now": _nonlocal,
    "a parameter renamed": _renamed,
    "bound anew": _anew,
    "bound anew in a loop": _in_loop,
    "what binds it renamed": _bound_renamed,
    "bound to another value": _value,
    ELSEWHERE: _another_functions,
}
