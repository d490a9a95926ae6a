"""The text of an entry with its names changed, looked at once more."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.meaning import MODULE_ATTRIBUTES
from afd_patchkit.names.model import NameEdit, NamePlan, apply_edits
from afd_patchkit.names.scope import Use
from afd_patchkit.source.stdlib import BUILTINS
from afd_patchkit.source.text import Text, parse_quietly


def problems(
    text: Text, plan: NamePlan, accounted: Collection[str], private: str | None, fstrings: Sequence[ast.stmt]
) -> Iterator[tuple[str, Use | None]]:
    """Why the changed text would not mean what it should: it does not parse, or has other strings, or names nothing binds.

    Args:
        text: the rendered entry.
        plan: what is changed and imported.
        accounted: names that something else than the plan accounts for.
        private: the class whose private names are meant.
        fstrings: the statements of `text` when a name in one of their f-strings is changed; else none.

    Yields:
        What is wrong, and the use that it concerns.
    """
    try:
        nodes = parse_quietly(apply_edits(text, plan.edits).text).body
    except (SyntaxError, ValueError):
        yield f"a changed name does not fit where it stands ({_listed(plan.edits)})", None
        return
    if fstrings and _fstring_texts(nodes) != _fstring_texts(fstrings):
        yield "a changed name stands in an f-string that prints its own source (`{name=}`)", None
    known = {need.bound for need in plan.imports}.union(accounted)
    for statement in plan.statements:
        known |= Analysis(parse_quietly(statement).body).outer.bound
    for use in Analysis(nodes, private).free():
        if use.evaluated and use.kind != "global" and use.name not in known and not _is_known(use.name):
            yield f"after the changes nothing binds `{use.name}`", use


def _is_known(name: str) -> bool:
    return name in BUILTINS or name in MODULE_ATTRIBUTES or name in {"__module__", "__qualname__"}


def _listed(edits: Sequence[NameEdit]) -> str:
    return ", ".join(sorted({f"{edit.name} -> {edit.text}" for edit in edits}))


def _fstring_texts(nodes: Iterable[ast.stmt]) -> list[object]:
    return [
        piece.value
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.JoinedStr)
        for piece in inner.values
        if isinstance(piece, ast.Constant)
    ]
