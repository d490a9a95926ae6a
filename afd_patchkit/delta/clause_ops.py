"""`clause:` add, put first, replace or remove one clause of a compound statement."""

from __future__ import annotations

import ast

from afd_patchkit.delta.builder import Builder
from afd_patchkit.delta.edits import CLAUSE, Piece, keeps
from afd_patchkit.delta.place import width
from afd_patchkit.delta.template import UPSTREAM, Held, statement_pieces
from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.model import ClauseChange, Code, Delta
from afd_patchkit.patterns.select import Clause, clauses, find_clause
from afd_patchkit.source.keywords import KEYWORDS, ORDERS, keyword_of
from afd_patchkit.source.text import Span


def clause(builder: Builder, delta: Delta) -> None:
    """Add the edits of a `clause:` delta."""
    change = delta.clause
    assert change is not None
    for match in builder.select(delta, change.of):
        node = match.nodes[0]
        found = clauses(node, builder.file) if isinstance(node, ast.stmt) and len(match.nodes) == 1 else []
        if not found:
            raise builder.fail(
                "PK203", "`clause.of` matches no single compound statement", delta, at=match.span.start,
                help="Match the whole statement that has the clauses, with `...` for its suites.",
            )  # fmt: skip
        assert isinstance(node, ast.stmt)
        _one(builder, delta, change, node, found)


def _one(builder: Builder, delta: Delta, change: ClauseChange, node: ast.stmt, found: list[Clause]) -> None:
    if change.add is not None:
        _add(builder, delta, change.add, found)
    elif change.first is not None:
        _first(builder, delta, change.first, found)
    else:
        head = change.replace or change.remove
        assert head is not None
        target = find_clause(node, head, builder.file, entry=builder.entry, delta=delta.name)
        if change.remove is not None:
            _remove(builder, delta, target, found)
        else:
            assert isinstance(delta.with_, Code)
            _replace(builder, delta, delta.with_, target, found)


def clause_pieces(
    builder: Builder, delta: Delta, code: Code, found: list[Clause], indent: str, held: dict[str, Held]
) -> tuple[Piece, ...]:
    """Pieces of one or more clauses, as code that stands behind `indent`.

    Args:
        builder: the edits so far.
        delta: whose code it is.
        code: the clauses, heads and suites.
        found: the clauses of the statement that they are for.
        indent: indentation of the statement.
        held: upstream text that placeholders in the code stand for.
    """
    keyword = KEYWORDS.get(keyword_of(code.text))
    if keyword is None:
        raise builder.fail(
            "PK203", f"clause code starts with none of {', '.join(KEYWORDS)}", delta,
            help="Write the whole clause, head and suite.",
        )  # fmt: skip
    above = keyword.above[-1 if found[0].kind == "try" else 0]
    return statement_pieces(code, held, indent, above=above, inset=keyword.inset)


def _indent(builder: Builder, clause_: Clause) -> str:
    return builder.place.line_indent(clause_.span.start)


def _end(builder: Builder, clause_: Clause) -> int:
    """Offset behind a clause, the comments that end its suite included."""
    return builder.place.end(clause_.suite[-1], _indent(builder, clause_))


def _add(builder: Builder, delta: Delta, code: Code, found: list[Clause]) -> None:
    word = keyword_of(code.text)
    order = ORDERS.get(found[0].kind, ())
    indent = _indent(builder, found[0])
    pieces = clause_pieces(builder, delta, code, found, indent, {})
    takes = [w for w in order if w in KEYWORDS and (w != found[0].kind or KEYWORDS[w].several)]
    if word not in takes:
        raise builder.fail(
            "PK203", f"`{word}` cannot be added to `{found[0].kind}`", delta, at=found[0].span.start,
            help=f"It takes {' and '.join(f'`{w}`' for w in takes) or 'no further clauses'}.",
        )  # fmt: skip
    once = not KEYWORDS[word].several
    if once and any(c.kind == word for c in found):
        raise builder.fail(
            "PK221", f"the statement has `{word}` already", delta, at=found[0].span.start,
            help=f'Upstream may have absorbed the delta: delete it, or use `replace: "{word}"`.',
        )  # fmt: skip
    other = builder.clauses.setdefault((found[0].span.start, word), delta.name) if once else delta.name
    if other != delta.name:
        message = f"delta {other!r} adds `{word}` to the same statement"
        raise builder.fail("PK210", message, delta, at=found[0].span.start, help="Join the two deltas.")
    rank = order.index(word)
    previous = [c for c in found if c.kind in order[: rank + 1]][-1]
    point = _end(builder, previous)
    # clauses of one statement that several deltas add at one point must come in their own order
    builder.add(
        delta,
        Span(point, point),
        ["\n" + indent, *pieces],
        touched=previous.head_span,
        order=(-width(indent), CLAUSE - 4 + rank),
        indent=indent,
        part=True,
    )


def _first(builder: Builder, delta: Delta, code: Code, found: list[Clause]) -> None:
    word = keyword_of(code.text)
    inner = [c for c in found if c.kind == word]
    if not inner or not KEYWORDS[word].leads:
        others = " or ".join(f"`{w}`" for w, keyword in KEYWORDS.items() if keyword.leads and w != "if")
        raise builder.fail(
            "PK203", f"a `{word}` clause cannot come first here", delta, at=found[0].span.start,
            help=f"`first` takes `if` (upstream's `if` becomes `elif`), {others}.",
        )  # fmt: skip
    start = inner[0].span.start
    indent = _indent(builder, inner[0])
    pieces = clause_pieces(builder, delta, code, found, indent, {})
    lead = "el" if word == "if" else ""  # upstream's `if` becomes `elif`
    builder.add(
        delta,
        Span(start, start),
        [*pieces, f"\n{indent}{lead}"],
        touched=inner[0].head_span,
        order=(1, CLAUSE),
        indent=indent,
        part=True,
    )


def _replace(builder: Builder, delta: Delta, code: Code, target: Clause, found: list[Clause]) -> None:
    indent = _indent(builder, target)
    region = Span(target.span.start, _end(builder, target))
    kept = Span(builder.place.start(target.suite[0]), region.end)
    held = {UPSTREAM: Held(builder.file, kept, builder.place.suite(target.node, target.suite).indent, whole=True)}
    pieces = clause_pieces(builder, delta, code, found, indent, held)
    whole = Span(_owned(builder, delta, target, found), region.end) if not keeps(pieces) else region
    builder.add(delta, whole, pieces, touched=region, indent=indent, part=True)


def _owned(builder: Builder, delta: Delta, target: Clause, found: list[Clause]) -> int:
    """Offset from which a clause goes: the comments directly over its head go along, unless the delta keeps them."""
    start, index = target.span.start, next(i for i, c in enumerate(found) if c.span == target.span)
    if delta.comments == "keep" or index == 0 or not builder.place.starts_line(start):
        return start
    floor = builder.file.line_of(builder.file.node_span(found[index - 1].suite[-1]).end)
    return builder.kept(builder.place.above(start, floor, _indent(builder, target)), start)


def _remove(builder: Builder, delta: Delta, target: Clause, found: list[Clause]) -> None:
    index = next(i for i, clause_ in enumerate(found) if clause_.span == target.span)
    following = found[index + 1] if index + 1 < len(found) else None
    indent = _indent(builder, target)
    if target.kind == "if" and following is not None and following.kind == "elif":
        # the next `elif` becomes the `if`
        span = Span(target.span.start, following.span.start + len("el"))
        builder.add(delta, span, [], touched=Span(target.span.start, _end(builder, target)), indent=indent)
        return
    if not _dispensable(target, found):
        raise _needed(builder, delta, target)
    region = Span(target.span.start, _end(builder, target))
    whole = Span(_owned(builder, delta, target, found), region.end)
    builder.add(delta, whole, [], touched=region, indent=indent, part=True)


def _dispensable(target: Clause, found: list[Clause]) -> bool:
    others = [c.kind for c in found if c.span != target.span]
    if target.kind == "except" and "except" not in others:
        return "finally" in others and "else" not in others
    if target.kind == "finally":
        return "except" in others
    return target.kind in ("elif", "else") or target.kind in others


def _needed(builder: Builder, delta: Delta, target: Clause) -> DeltaError:
    return builder.fail(
        "PK203", f"the statement cannot stand without its `{target.kind}`", delta, at=target.span.start,
        help="Use `remove:` or `replace:` on the whole statement.",
    )  # fmt: skip
