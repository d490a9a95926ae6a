"""`member` and `field`: declared changes of a class entry."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from afd_patchkit.delta.builder import Builder
from afd_patchkit.delta.edits import STATEMENT, keeps
from afd_patchkit.delta.place import Suite, width
from afd_patchkit.delta.template import UPSTREAM, Held, statement_pieces
from afd_patchkit.model import Code, Delta, MemberChange
from afd_patchkit.source.syntax import DEFINITION, docstring_of
from afd_patchkit.source.text import Span


def member(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `member:` or `field:` delta."""
    change = delta.member or delta.field
    node = builder.symbol.node
    assert change is not None
    if not isinstance(node, ast.ClassDef):
        raise builder.fail(
            "PK215", f"{builder.symbol.reference} is not a class", delta, help="It works on classes only."
        )
    fields = delta.field is not None
    suite = builder.place.suite(node, node.body)
    if change.add is not None:
        _add(builder, delta, suite, change, fields=fields)
        return
    name = change.replace or change.remove
    assert name is not None
    first, last = _find(builder, delta, suite, name, fields=fields)
    if change.remove is not None:
        builder.remove(delta, suite, first, last)
        return
    assert isinstance(delta.with_, Code)
    builder.break_lines(delta, suite, first, last + 1)
    region = suite.region(first, last)
    pieces = statement_pieces(delta.with_, {UPSTREAM: Held(builder.file, region, suite.indent)}, suite.indent)
    whole = Span(builder.owned(delta, suite, first), region.end) if not keeps(pieces) else region
    builder.add(delta, whole, pieces, touched=region, indent=suite.indent)


def _names(node: ast.stmt, *, fields: bool) -> list[str]:
    if not fields:
        return [node.name] if isinstance(node, DEFINITION) else []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _find(builder: Builder, delta: Delta, suite: Suite, name: str, *, fields: bool) -> tuple[int, int]:
    """First and last index of the statements that bind `name` (a property and its setter are one run)."""
    body = suite.body
    found = [i for i, node in enumerate(body) if name in _names(node, fields=fields)]
    if not found or found != list(range(found[0], found[-1] + 1)):
        known = list(dict.fromkeys(n for node in body for n in _names(node, fields=fields)))
        kind = "field" if fields else "member"
        lines = ", ".join(str(builder.file.line_of(builder.place.start(body[i]))) for i in found)
        raise builder.fail(
            "PK202" if found else "PK201",
            f"{builder.symbol.reference} defines {kind} {name!r} in several places (lines {lines})"
            if found
            else f"{builder.symbol.reference} has no {kind} {name!r}",
            delta,
            help="Use `replace` with a pattern." if found else f"It has: {', '.join(known) or 'none'}.",
        )
    return found[0], found[-1]


def _add(builder: Builder, delta: Delta, suite: Suite, change: MemberChange, *, fields: bool) -> None:
    code, place, body = change.add, builder.place, suite.body
    assert code is not None
    added = ast.parse(code.text.strip("\n")).body
    if not all(_names(statement, fields=fields) for statement in added):
        takes, other = ("assignments", "member") if fields else ("functions and classes", "field")
        raise builder.fail(
            "PK215",
            f"`{delta.operation}` takes {takes}",
            delta,
            help=f"Use `{other}` or `insert` for other statements.",
        )
    for name in (name for statement in added for name in _names(statement, fields=fields)):
        if any(name in _names(n, fields=fields) for n in body):
            raise builder.fail(
                "PK221",
                f"{builder.symbol.reference} has {name!r} already",
                delta,
                help="Upstream may have absorbed the delta: delete it, or use `replace`.",
            )
    index = _insertion_index(builder, delta, suite, change, fields=fields)
    pieces = statement_pieces(code, {}, suite.indent)
    builder.break_lines(delta, suite, index)
    if change.before is None and index > 0:
        previous = body[index - 1]
        shared = index < len(body) and not suite.own_line(index)
        point = builder.file.node_span(previous).end if shared else place.end(previous)
        builder.add(
            delta,
            Span(point, point),
            [_gap(previous, added[0]) + suite.indent, *pieces],
            touched=builder.file.node_span(previous),
            order=(-width(suite.indent), STATEMENT),
            indent=suite.indent,
        )
        return
    gap = _gap(added[-1], body[index])
    builder.put_before(delta, suite, index, pieces, builder.file.node_span(body[index]), gap=gap)


def _gap(first: ast.stmt, second: ast.stmt) -> str:
    """Line ends between two statements of a class body: definitions are set apart by a blank line."""
    return "\n\n" if isinstance(first, DEFINITION) or isinstance(second, DEFINITION) else "\n"


def _insertion_index(builder: Builder, delta: Delta, suite: Suite, change: MemberChange, *, fields: bool) -> int:
    body: Sequence[ast.stmt] = suite.body
    if change.before is not None:
        return _find(builder, delta, suite, change.before, fields=fields)[0]
    if change.after is not None:
        return _find(builder, delta, suite, change.after, fields=fields)[1] + 1
    if not fields:
        return len(body)
    last = [i for i, node in enumerate(body) if _names(node, fields=True)]
    return last[-1] + 1 if last else int(docstring_of(body) is not None)
