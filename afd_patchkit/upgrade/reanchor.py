"""Proposals for new anchors: the statement that the old one became, written as a pattern."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from afd_patchkit.findings.finding import Position
from afd_patchkit.model import CallChange, ClauseChange, Code, Delta
from afd_patchkit.source.syntax import TRY
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upgrade.align import Alignment, Statement
from afd_patchkit.upgrade.result import Proposal
from afd_patchkit.upgrade.sides import One

_LEAST = 0.5


def propose(delta: Delta, base: One, alignment: Alignment, attempt: Callable[[Delta], One]) -> Proposal | None:
    """A pattern for the statement that the delta's anchor became, if the delta applies with it and there is no doubt.

    Args:
        delta: the delta whose pattern matches nothing or too much.
        base: it on the old text.
        alignment: old to new.
        attempt: applies a delta to the new text.
    """
    if base.applied is None:
        return None
    for key, code in anchors(delta):
        found = _anchor(code, base, delta.name)
        if found is None:
            continue
        nodes, expression = found
        landed = [alignment.find(n) for n in nodes]
        if not landed or any(s is None for s in landed):
            continue
        statements = [s for s in landed if s is not None]
        confidence = min(alignment.confidence.get(id(n), 0.0) for n in nodes)
        if confidence < _LEAST:
            continue
        for text in _patterns(statements, expression, alignment.new.file, code):
            if text.strip() == code.text.strip():
                continue
            changed = with_anchor(delta, key, replace(code, text=text))
            one = attempt(changed)
            if one.applied is None or not _lands(one, delta.name, statements):
                continue
            place = Position(alignment.new.file.path, alignment.new.file.line_of(statements[0].span.start))
            return Proposal(code.position, key, code.text, text, round(confidence, 2), place)
    return None


def anchors(delta: Delta) -> Iterator[tuple[str, Code]]:
    """The patterns of a delta that say where it goes, with their keys."""
    for key in delta.does.anchors:
        value = attrgetter(key)(delta)
        if isinstance(value, Code):
            yield key, value


def with_anchor(delta: Delta, key: str, code: Code) -> Delta:
    """The delta with another pattern at `key`."""
    name, _, inner = key.partition(".")
    if not inner:
        return delta.model_copy(update={name: code})
    part: CallChange | ClauseChange = getattr(delta, name)
    return delta.model_copy(update={name: part.model_copy(update={inner: code})})


def _anchor(code: Code, base: One, name: str) -> tuple[Sequence[ast.stmt], ast.expr | None] | None:
    """The old statements that the pattern matched (or that hold the expression it matched)."""
    assert base.applied is not None
    matches = base.applied.matches.get(name, [])
    if len(matches) != 1:
        return None
    match = matches[0]
    if match.body is None:
        if isinstance(match.owner, ast.stmt) and isinstance(match.nodes[0], ast.expr):
            return [match.owner], match.nodes[0]
        return None
    statements = [n for n in match.nodes if isinstance(n, ast.stmt)]
    return statements, None


def _patterns(
    statements: Sequence[Statement], expression: ast.expr | None, file: SourceFile, code: Code
) -> Iterator[str]:
    """Patterns for the new place, the most general first."""
    if expression is None:
        yield "\n".join(_loose(s, file) for s in statements) + "\n"
        yield "\n".join(_strict(s, file) for s in statements) + "\n"
        return
    if isinstance(expression, ast.Call):
        calls = [n for n in ast.walk(statements[0].node) if isinstance(n, ast.Call)]
        for call in calls:
            if type(call.func) is type(expression.func):
                yield f"{file.slice(file.node_span(call.func))}(...)\n"
    candidates = [n for n in ast.walk(statements[0].node) if type(n) is type(expression)]
    if len(candidates) == 1:
        yield ast.unparse(candidates[0]) + "\n"


def _loose(statement: Statement, file: SourceFile) -> str:
    node = statement.node
    value: Any = getattr(node, "value", None)
    call = value.value if isinstance(value, ast.Await) else value
    if isinstance(call, ast.Call):
        head = f"{ast.unparse(call.func)}(...)"
        head = f"await {head}" if isinstance(value, ast.Await) else head
        if isinstance(node, ast.Assign):
            return f"{' = '.join(ast.unparse(t) for t in node.targets)} = {head}"
        if isinstance(node, ast.Expr):
            return head
        if isinstance(node, ast.Return):
            return f"return {head}"
    return _strict(statement, file)


def _strict(statement: Statement, file: SourceFile) -> str:
    node = statement.node
    if not statement.suites:
        return ast.unparse(node)
    copy = ast.parse("...").body
    head: ast.stmt = type(node)(**{name: getattr(node, name) for name in node._fields})
    head.body = copy  # type: ignore[attr-defined]
    for name in ("orelse", "finalbody"):
        if hasattr(head, name):
            setattr(head, name, [])
    if isinstance(node, TRY):
        head.finalbody = copy  # type: ignore[attr-defined]
        head.handlers = []  # type: ignore[attr-defined]
    text = ast.unparse(ast.fix_missing_locations(head))
    return text.replace(":\n    ...", ": ...")


def _lands(one: One, name: str, statements: Sequence[Statement]) -> bool:
    """Whether the delta now stands where the alignment says."""
    assert one.applied is not None
    matches = one.applied.matches.get(name, [])
    return len(matches) == 1 and (matches[0].nodes[0] is statements[0].node or matches[0].owner is statements[0].node)
