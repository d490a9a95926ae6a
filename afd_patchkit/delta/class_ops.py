"""`member` and `field`: declared changes of a class entry."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from afd_patchkit.delta.operations import Builder
from afd_patchkit.delta.place import docstring_of
from afd_patchkit.delta.template import UPSTREAM, Held, statement_pieces
from afd_patchkit.manifest.model import Code, Delta
from afd_patchkit.source.text import Span


def member(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `member:` or `field:` delta."""
    change = delta.member or delta.field
    node = builder.symbol.node
    assert change is not None
    if not isinstance(node, ast.ClassDef):
        raise builder.fail("PK215", f"{builder.symbol.reference} is not a class", delta)
    if builder.place.one_line_suite(node, node.body) is not None:
        raise builder.fail("PK216", "the class body stands on its header's line", delta, help="Use `replace:`.")
    fields = delta.field is not None
    if change.add is not None:
        _add(builder, delta, node, change.add, change.before, change.after, fields=fields)
        return
    name = change.replace or change.remove
    assert name is not None
    first, last = _find(builder, delta, node.body, name, fields=fields)
    region = builder.place.region(node.body[first : last + 1])
    if change.remove is not None:
        only = last + 1 - first == len(node.body)
        builder.add(delta, region, ["pass"] if only else [], touched=region)
        return
    assert isinstance(delta.with_, Code)
    indent = builder.place.column(node.body[first])
    held = {UPSTREAM: Held(region, indent)}
    builder.add(delta, region, statement_pieces(delta.with_, held, indent), touched=region)


def _names(node: ast.stmt, *, fields: bool) -> list[str]:
    if fields:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        return [t.id for t in targets if isinstance(t, ast.Name)]
    return [node.name] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else []


def _find(builder: Builder, delta: Delta, body: Sequence[ast.stmt], name: str, *, fields: bool) -> tuple[int, int]:
    """First and last index of the statements that bind `name` (a property and its setter are one run)."""
    found = [i for i, node in enumerate(body) if name in _names(node, fields=fields)]
    if not found or found != list(range(found[0], found[-1] + 1)):
        known = [n for node in body for n in _names(node, fields=fields)]
        kind = "field" if fields else "member"
        raise builder.fail(
            "PK202" if found else "PK201",
            f"{builder.symbol.reference} has {'several' if found else 'no'} {kind} {name!r}",
            delta,
            help=f"It has: {', '.join(dict.fromkeys(known)) or 'none'}.",
        )
    return found[0], found[-1]


def _add(
    builder: Builder,
    delta: Delta,
    node: ast.ClassDef,
    code: Code,
    before: str | None,
    after: str | None,
    *,
    fields: bool,
) -> None:
    body, place = node.body, builder.place
    added = ast.parse(code.text.strip("\n")).body
    for statement in added:
        for name in _names(statement, fields=fields):
            if any(name in _names(n, fields=fields) for n in body):
                raise builder.fail(
                    "PK221",
                    f"{builder.symbol.reference} has {name!r} already",
                    delta,
                    help="Upstream may have absorbed the delta: delete it, or use `replace`.",
                )
    index = _insertion_index(builder, delta, body, before, after, fields=fields)
    gap = "\n" if fields else "\n\n"
    if before is None and index > 0:
        previous = body[index - 1]
        point, indent = place.end(previous), place.column(previous)
        pieces = [gap + indent, *statement_pieces(code, {}, indent)]
        builder.add(delta, Span(point, point), pieces, touched=builder.file.node_span(previous))
        return
    point, indent = place.before(body, index, node), place.column(body[index])
    pieces = [*statement_pieces(code, {}, indent), gap + indent]
    builder.add(delta, Span(point, point), pieces, touched=builder.file.node_span(body[index]))


def _insertion_index(
    builder: Builder, delta: Delta, body: Sequence[ast.stmt], before: str | None, after: str | None, *, fields: bool
) -> int:
    if before is not None:
        return _find(builder, delta, body, before, fields=fields)[0]
    if after is not None:
        return _find(builder, delta, body, after, fields=fields)[1] + 1
    if not fields:
        return len(body)
    last = [i for i, node in enumerate(body) if _names(node, fields=True)]
    return last[-1] + 1 if last else int(docstring_of(body) is not None)
