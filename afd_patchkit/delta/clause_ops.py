"""`clause:` add, put first, replace or remove one clause of a compound statement."""

from __future__ import annotations

import ast
from dataclasses import replace

from afd_patchkit.delta.edits import Keep, Piece
from afd_patchkit.delta.operations import Builder
from afd_patchkit.delta.patterns import Clause, clauses, compile_pattern, find_clause, select
from afd_patchkit.delta.template import UPSTREAM, Held, statement_pieces
from afd_patchkit.manifest.model import ClauseChange, Code, Delta
from afd_patchkit.source.text import Span

# what must stand before clause code so that it parses alone; decides by the code's first word
_PREFIXES = {
    "elif": "if 1:\n    pass\n",
    "else": "if 1:\n    pass\n",
    "except": "try:\n    pass\n",
    "finally": "try:\n    pass\n",
    "case": "match 1:\n",
}
_ORDER = {"if": 0, "try": 0, "for": 0, "while": 0, "with": 0, "match": 0, "elif": 1, "except": 1, "case": 1, "else": 2, "finally": 3}


def clause(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `clause:` delta."""
    change = delta.clause
    assert change is not None
    for match in select(
        compile_pattern(change.of, "statements"), builder.symbol,
        within=delta.within, next_to=delta.next_to, nth=delta.nth, count=delta.count,
        entry=builder.entry, delta=delta.name,
    ):  # fmt: skip
        builder.matches.setdefault(delta.name, []).append(match)
        node = match.nodes[0]
        found = clauses(node, builder.file) if isinstance(node, ast.stmt) and len(match.nodes) == 1 else []
        if not found:
            raise builder.fail("PK203", "`clause.of` matches no single compound statement", delta, at=match.span.start)
        _one(builder, delta, change, node, found)


def _one(builder: Builder, delta: Delta, change: ClauseChange, node: ast.AST, found: list[Clause]) -> None:
    assert isinstance(node, ast.stmt)
    if change.add is not None:
        _add(builder, delta, change.add, found)
    elif change.first is not None:
        _first(builder, delta, change.first, node, found)
    else:
        head = change.replace or change.remove
        assert head is not None
        target = find_clause(node, head, builder.file, entry=builder.entry, delta=delta.name)
        if change.remove is not None:
            _remove(builder, delta, target, found)
        else:
            assert isinstance(delta.with_, Code)
            _replace(builder, delta, delta.with_, target)


def _word(code: Code) -> str:
    text = code.text.lstrip()
    for word in (*_PREFIXES, "if"):
        if text.startswith(word) and not text[len(word) : len(word) + 1].isidentifier():
            return word
    return ""


def clause_pieces(builder: Builder, delta: Delta, code: Code, indent: str, held: dict[str, Held]) -> tuple[Piece, ...]:
    """Pieces of one or more clauses, as code that stands behind `indent`."""
    word = _word(code)
    if not word:
        raise builder.fail(
            "PK203", "clause code starts with none of elif, else, except, finally, case, if", delta,
            help="Write the whole clause, head and suite.",
        )  # fmt: skip
    prefix = _PREFIXES.get(word, "")
    text = code.text.strip("\n").rstrip()
    if word == "case":
        text = "\n".join(line and "    " + line for line in text.split("\n"))
        pieces = statement_pieces(code, held, indent, text=text, prefix=prefix)
        return tuple(_dedented(piece) for piece in pieces)
    return statement_pieces(code, held, indent, text=text, prefix=prefix)


def _dedented(piece: Piece) -> Piece:
    """Undo the four columns that made a `case` parse."""
    if isinstance(piece, str):
        return piece.removeprefix("    ").replace("\n    ", "\n")
    return replace(piece, add=piece.add.removesuffix("    ")) if isinstance(piece, Keep) else piece


def _lines(builder: Builder, clause_: Clause) -> Span:
    """Bytes of a clause, from its keyword to the end of its last line."""
    return Span(clause_.span.start, builder.place.end(clause_.suite[-1]))


def _indent(builder: Builder, clause_: Clause) -> str:
    return builder.place.line_indent(clause_.span.start)


def _add(builder: Builder, delta: Delta, code: Code, found: list[Clause]) -> None:
    word = _word(code)
    order = _ORDER.get(word, 1)
    if word in ("else", "finally") and any(c.kind == word for c in found):
        raise builder.fail(
            "PK221", f"the statement has `{word}` already", delta, at=found[0].span.start, help="Use `replace: \"else\"`."
        )
    before = [c for c in found if _ORDER.get(c.kind, 1) <= order]
    previous = before[-1]
    indent = _indent(builder, found[1] if word == "case" and len(found) > 1 else found[-1] if word == "case" else found[0])
    point = builder.place.end(previous.suite[-1])
    pieces = clause_pieces(builder, delta, code, indent, {})
    builder.add(delta, Span(point, point), ["\n" + indent, *pieces], touched=previous.head_span, layer=0)


def _first(builder: Builder, delta: Delta, code: Code, node: ast.stmt, found: list[Clause]) -> None:
    word = _word(code)
    if isinstance(node, ast.If) and word == "if":
        start = builder.place.start(node)
        indent = builder.place.line_indent(start)
        if builder.file.data[start : start + 2] != b"if":
            raise builder.fail("PK203", "`first` needs the head of an `if` chain, not an `elif`", delta, at=start)
        pieces = clause_pieces(builder, delta, code, indent, {})
        builder.add(delta, Span(start, start), [*pieces, "\n" + indent + "el"], touched=found[0].head_span, layer=0)
        return
    inner = [c for c in found if c.kind == word]
    if not inner or word not in ("except", "case"):
        raise builder.fail(
            "PK203", f"a `{word}` clause cannot come first here", delta, at=found[0].span.start,
            help="`first` takes `if` (upstream's `if` becomes `elif`), `except` or `case`.",
        )  # fmt: skip
    start = inner[0].span.start
    indent = builder.place.line_indent(start)
    pieces = clause_pieces(builder, delta, code, indent, {})
    builder.add(delta, Span(start, start), [*pieces, "\n" + indent], touched=inner[0].head_span, layer=0)


def _replace(builder: Builder, delta: Delta, code: Code, target: Clause) -> None:
    region = _lines(builder, target)
    indent = _indent(builder, target)
    suite = builder.place.region(target.suite)
    held = {UPSTREAM: Held(suite, builder.place.column(target.suite[0]))}
    pieces = clause_pieces(builder, delta, code, indent, held)
    builder.add(delta, region, pieces, touched=region, layer=0)


def _remove(builder: Builder, delta: Delta, target: Clause, found: list[Clause]) -> None:
    handlers = [c for c in found if c.kind == "except"]
    lonely = target.kind == "except" and len(handlers) == 1 and not any(c.kind == "finally" for c in found)
    orphan = target.kind == "finally" and not handlers
    only_case = target.kind == "case" and sum(c.kind == "case" for c in found) == 1
    if target is found[0] or target.kind in ("if", "try", "for", "while", "with") or lonely or orphan or only_case:
        raise builder.fail(
            "PK203", f"the statement cannot stand without its `{target.kind}`", delta, at=target.span.start,
            help="Use `remove:` or `replace:` on the whole statement.",
        )  # fmt: skip
    region = _lines(builder, target)
    builder.add(delta, region, [], touched=region, layer=0)
