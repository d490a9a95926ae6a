"""What upstream added around a delta that changes what the delta does: exits above it, readers and writers of what it uses."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence

from afd_patchkit.delta.context import path
from afd_patchkit.findings.finding import Finding
from afd_patchkit.source.locate import Symbol, dotted
from afd_patchkit.source.syntax import CHOICE, FUNCTION, binding, blocks, own_parts
from afd_patchkit.source.text import Span
from afd_patchkit.upgrade.pair import Pair, added_nodes, loop_around
from afd_patchkit.upgrade.sides import first_text, own_part, statements_of

_EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def around(pair: Pair) -> Iterator[Finding]:
    """Findings about statements that upstream added above and below a delta."""
    if pair.new.applied is None:
        return
    symbol = pair.new.symbol
    nodes = added_nodes(pair)
    if not nodes:
        return
    edits = [edit for _, edit in pair.edits()]
    nodes = [n for n in nodes if not any(len(e.span) and e.span.contains(own_part(symbol.file, n)) for e in edits)]
    ours = [t for e in edits if (t := _parsed(e.emitted))]
    anchors = [e.touched or e.span for e in edits]
    yield from _exits(pair, symbol, nodes, anchors)
    yield from _readers(pair, symbol, nodes, anchors, ours)
    yield from _writers(pair, symbol, nodes, anchors, ours)


def _parsed(text: str) -> ast.Module | None:
    """Code that a delta emits; None for a piece that is no code of its own."""
    plain = textwrap.dedent(text).strip()
    for candidate in (plain, f"(\n{plain}\n)"):
        try:
            return ast.parse(candidate)
        except (SyntaxError, ValueError):
            continue
    return None


def _say(pair: Pair, code: str, message: str, nodes: Sequence[ast.stmt], help: str) -> Finding:
    file = pair.new.symbol.file
    spans = [own_part(file, n) for n in nodes]
    details = [f"{file.path}:{file.line_of(s.start)}: {first_text(file, s)}" for s in spans[:8]]
    return pair.say(code, message, at=spans[0].start, details=details, help=help)


# ---- exits --------------------------------------------------------------------------------------------------------


def _exits(pair: Pair, symbol: Symbol, nodes: Sequence[ast.stmt], anchors: Sequence[Span]) -> Iterator[Finding]:
    """New ways to leave before the delta is reached."""
    exits = [n for n in nodes if isinstance(n, _EXITS) and any(_skips(symbol, n, anchor) for anchor in anchors)]
    if exits and pair.base is not None and pair.base.applied is not None:
        old = pair.base.symbol
        places = [e.touched or e.span for e in pair.old_edits()]
        before = [
            n for n in statements_of(old) if isinstance(n, _EXITS) and any(_skips(old, n, place) for place in places)
        ]
        now = [n for n in statements_of(symbol) if isinstance(n, _EXITS) and any(_skips(symbol, n, a) for a in anchors)]
        if len(now) <= len(before):
            return  # one that was there has changed
    if exits:
        words = ", ".join(sorted({f"`{type(n).__name__.lower()}`" for n in exits}))
        yield _say(
            pair, "PK551", f"upstream added {words} above the delta: it is skipped where that happens", exits,
            "Must the delta's code run there, too? Then put it above, or into the new branch.",
        )  # fmt: skip


def _skips(symbol: Symbol, node: ast.stmt, anchor: Span) -> bool:
    """Whether leaving at `node` keeps control from a place that it would have reached."""
    file = symbol.file
    span = file.node_span(node)
    if span.end > anchor.start:
        return False
    if _function(symbol, span) != _function(symbol, anchor):
        return False
    if isinstance(node, (ast.Break, ast.Continue)):
        loop = loop_around(symbol, span.start)
        return loop is not None and loop.contains(anchor)
    theirs = {id(stmt): block.name for stmt, block in path(symbol, span.start)}
    return all(
        theirs.get(id(stmt), block.name) == block.name
        for stmt, block in path(symbol, anchor.start)
        if isinstance(stmt, CHOICE)
    )


def _function(symbol: Symbol, span: Span) -> Span | None:
    """The innermost function inside the symbol around some bytes."""
    found = [
        symbol.file.node_span(n)
        for n in statements_of(symbol)
        if isinstance(n, FUNCTION) and symbol.file.node_span(n).contains(span) and symbol.file.node_span(n) != span
    ]
    return min(found, key=len, default=None)


# ---- readers and writers ------------------------------------------------------------------------------------------


def chains(node: ast.AST, *, stored: bool) -> set[str]:
    """Names and attribute chains that some code reads, or (also by part of them) sets."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Name, ast.Attribute)):
            writes = isinstance(inner.ctx, (ast.Store, ast.Del))
            if writes == stored and (chain := dotted(inner)):
                found.add(chain)
        elif (
            stored
            and isinstance(inner, ast.Subscript)
            and isinstance(inner.ctx, (ast.Store, ast.Del))
            and (chain := dotted(inner.value))
        ) or (isinstance(inner, ast.AugAssign) and (chain := dotted(inner.target))):
            found.add(chain)
        elif stored and (name := binding(inner)) is not None:
            found.add(name[0])
    return found


def _own(node: ast.stmt) -> ast.Module:
    """A statement without its blocks, as something to walk."""
    parts = own_parts(node) if next(blocks(node), None) else [node]
    return ast.Module(parts, [])  # type: ignore[arg-type]


def _meets(one: set[str], other: set[str]) -> list[str]:
    """What both name: the same, or an attribute of what the other names."""
    return sorted({a for a in one for b in other if a == b or a.startswith(f"{b}.")})


def _readers(
    pair: Pair, symbol: Symbol, nodes: Sequence[ast.stmt], anchors: Sequence[Span], ours: Sequence[ast.Module]
) -> Iterator[Finding]:
    """New upstream code that reads what the delta sets."""
    sets = {c for tree in ours for c in chains(tree, stored=True)}
    start = min((a.start for a in anchors), default=0)
    loop = loop_around(symbol, start)
    below = [
        n
        for n in nodes
        if own_part(symbol.file, n).start >= start or (loop is not None and loop.contains(symbol.file.node_span(n)))
    ]
    found = [(n, names) for n in below if (names := _meets(chains(_own(n), stored=False), sets))]
    if found:
        names = sorted({name for _, names in found for name in names})
        yield _say(
            pair, "PK552", f"new upstream code reads {', '.join(names)}, which the delta sets", [n for n, _ in found],
            "Does it get what it expects? If not, give the delta's value a name of its own.",
        )  # fmt: skip


def _writers(
    pair: Pair, symbol: Symbol, nodes: Sequence[ast.stmt], anchors: Sequence[Span], ours: Sequence[ast.Module]
) -> Iterator[Finding]:
    """New upstream code that sets an attribute or element which the delta reads; plain names are the bindings' (PK513)."""
    reads = {c for tree in ours for c in chains(tree, stored=False) if "." in c}
    end = max((a.end for a in anchors), default=0)
    loop = loop_around(symbol, min((a.start for a in anchors), default=0))
    above = [
        n
        for n in nodes
        if own_part(symbol.file, n).start < end or (loop is not None and loop.contains(symbol.file.node_span(n)))
    ]
    found = [
        (n, names) for n in above if (names := _meets(reads, {c for c in chains(_own(n), stored=True) if "." in c}))
    ]
    if found:
        names = sorted({name for _, names in found for name in names})
        yield _say(
            pair, "PK553", f"new upstream code sets {', '.join(names)}, which the delta reads", [n for n, _ in found],
            "Does the delta still read what it expects?",
        )  # fmt: skip
