"""What to show when a pattern does not match as it should: candidates and near misses. For reports only, never for matching."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from afd_patchkit.patterns.compile import Pattern
from afd_patchkit.patterns.match import statements
from afd_patchkit.patterns.search import (
    Match,
    Window,
    below,
    expressions,
    find_all,
    is_elif,
    start_of,
)
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import SourceFile

_SHOWN = 20
_NEAR = 3
_LEAST = 50.0  # percent alike
_LIMIT = 400  # characters compared of each candidate


def describe(match: Match, file: SourceFile) -> str:
    """`path:line:column: first line of the text`."""
    return _place(file, match.span.start)


def candidates(found: Sequence[Match], file: SourceFile) -> tuple[str, ...]:
    """Describe each match in one line."""
    lines = [f"candidate {n}: {describe(m, file)}" for n, m in enumerate(found[:_SHOWN], 1)]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    return tuple(lines)


def near_misses(
    pattern: Pattern, windows: Sequence[Window], symbol: Symbol, everything: Sequence[Window]
) -> tuple[str, ...]:
    """Why a pattern may match nothing: it matches elsewhere, or something similar is there.

    Args:
        pattern: what matched nothing.
        windows: where it was searched.
        symbol: the entry's symbol.
        everything: all of the symbol, without `within`.
    """
    file = symbol.file
    lines = [f"an `elif` matches (use `clause`): {_place(file, at)}" for at in _elifs(pattern, windows, file)]
    lines += [
        f"an argument is so called (use `call: {{match: ..., set: {{{name}: ...}}}}`): {_place(file, at)}"
        for name, at in list(_arguments(pattern, windows, file))[:_NEAR]
    ]
    outside = find_all(pattern, everything, file)
    lines += [f"matches outside `within`: {describe(m, file)}" for m in outside[:_SHOWN]]
    if not lines:
        for match in find_all(pattern, file.tree, file)[:_NEAR]:
            own = match.nodes[0] in symbol.nodes
            what = "is the entry's own definition" if own else f"matches outside {symbol.qualname}"
            lines.append(f"{what}: {describe(match, file)}")
    if not lines:
        lines += list(dict.fromkeys(f"similar: {_place(file, at)}" for at in _similar(pattern, windows, file)))
    return tuple(lines)


def _place(file: SourceFile, at: int) -> str:
    place = file.position(at)
    return f"{place}: {file.lines(place.line, place.line)[0].strip()}"


def _arguments(pattern: Pattern, windows: Sequence[Window], file: SourceFile) -> Iterator[tuple[str, int]]:
    """Keyword arguments of calls that an assignment was meant to match: the name, and where."""
    node = pattern.nodes[0]
    if isinstance(node, ast.Assign) and len(pattern.nodes) == 1 and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        for call, *_ in expressions(windows):
            for given in call.keywords if isinstance(call, ast.Call) else ():
                if given.arg == name:
                    yield name, start_of(given, file)


def _elifs(pattern: Pattern, windows: Sequence[Window], file: SourceFile) -> Iterator[int]:
    if pattern.kind == "statements":
        wanted: Sequence[ast.stmt] = pattern.nodes  # type: ignore[assignment]
        for window in below(windows):
            if is_elif(window.owner, window.body, file) and statements(wanted, window.body) is not None:
                yield start_of(window.body[0], file)


def _similar(pattern: Pattern, windows: Sequence[Window], file: SourceFile) -> list[int]:
    """Where the statements or expressions of the same sort start that look most like the pattern."""
    from rapidfuzz import fuzz

    kind = type(pattern.nodes[0])
    nodes: list[ast.AST] = []
    if pattern.kind == "statements":
        for window in below(windows):
            nodes += window.body[window.start : window.stop]
    else:
        nodes += [node for node, *_ in expressions(windows)]
    first: Any = pattern.nodes[0]
    text = pattern.code.text
    if isinstance(getattr(first, "body", None), list):
        text = "\n".join(text.split("\n")[: max(1, first.body[0].lineno - 1)])
    wanted = " ".join(text.split()).removesuffix(" ...")[:_LIMIT]
    scored = [(fuzz.ratio(wanted, _head(n, file)), start_of(n, file)) for n in nodes if type(n) is kind]
    scored.sort(key=lambda item: (-item[0], item[1]))
    places = dict.fromkeys(at for score, at in scored if score >= _LEAST)
    return list(places)[:_NEAR]


def _head(node: Any, file: SourceFile) -> str:
    """What is compared: an expression or simple statement, the header of a compound one."""
    span = file.node_span(node)
    body = getattr(node, "body", None)
    end = start_of(body[0], file) if isinstance(body, list) and body else span.end
    return " ".join(file.data[span.start : end].decode("utf-8", "replace").split())[:_LIMIT]
