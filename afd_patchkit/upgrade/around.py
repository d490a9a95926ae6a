"""What upstream changed around a delta that changes what the delta does: exits above it, readers and writers of what it uses."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.context import path, scopes, scopes_around
from afd_patchkit.findings.finding import Finding
from afd_patchkit.source.locate import Symbol, dotted
from afd_patchkit.source.namespaces import Namespace, heads
from afd_patchkit.source.syntax import CHOICE, LOOP, TRY
from afd_patchkit.source.text import Span
from afd_patchkit.upgrade.pair import Pair, added_nodes, loop_around
from afd_patchkit.upgrade.sides import first_text, own_part, statements_of
from afd_patchkit.upgrade.uses import Uses, met, root, uses

_ENDS = frozenset(["exit", "quit", "sys.exit", "os._exit", "os.abort"])


def around(pair: Pair) -> Iterator[Finding]:
    """Findings about what upstream added or changed above and below a delta."""
    if pair.new.applied is None:
        return
    symbol = pair.new.symbol
    edits = [edit for _, edit in pair.edits()]
    anchors = [e.touched or e.span for e in edits]
    replaced = [e.span for e in edits if len(e.span)]
    ours = uses(tree for e in edits if (tree := _parsed(e.emitted)) is not None)
    yield from _exits(pair, anchors, replaced)
    found = [one for one in _changed(pair) if not any(s.contains(own_part(symbol.file, one.node)) for s in replaced)]
    if found and anchors and (ours.reads or ours.sets):
        yield from _meeting(pair, found, anchors, ours)


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


def _exits(pair: Pair, anchors: Sequence[Span], replaced: Sequence[Span]) -> Iterator[Finding]:
    """Ways to leave before the delta is reached that are new, or that are taken in other cases than before."""
    symbol = pair.new.symbol
    now = [
        n
        for n in statements_of(symbol)
        if is_exit(n)
        and not any(s.contains(symbol.file.node_span(n)) for s in replaced)
        and any(_skips(symbol, n, anchor) for anchor in anchors)
    ]
    if not now:
        return
    if pair.base is not None and pair.base.applied is not None:
        old = pair.base.symbol
        places = [e.touched or e.span for e in pair.old_edits()]
        known = Counter(
            _case(old, n) for n in statements_of(old) if is_exit(n) and any(_skips(old, n, place) for place in places)
        )
        exits = []
        for node in now:
            case = _case(symbol, node)
            if known[case]:
                known[case] -= 1
            else:
                exits.append(node)
    else:
        added = {id(n) for n in added_nodes(pair)}
        exits = [n for n in now if id(n) in added]
    if exits:
        words = ", ".join(
            sorted({f"`{type(n).__name__.lower()}`" for n in exits if not isinstance(n, ast.Expr)} or {"an exit"})
        )
        yield _say(
            pair, "PK551", f"upstream added {words} before the delta, or leaves there in other cases: the delta is skipped where that happens",
            exits, "Must the delta's code run there, too? Then put it above, or into the new branch.",
        )  # fmt: skip


def is_exit(node: ast.stmt) -> bool:
    """Whether control never goes on behind a statement."""
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and not node.test.value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return dotted(node.value.func) in _ENDS
    return isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _case(symbol: Symbol, node: ast.stmt) -> tuple[str, ...]:
    """What an exit is known by: its kind, and the conditions that lead to it; what it gives is the caller's."""
    found = [type(node).__name__]
    for around, block in path(symbol, symbol.file.node_span(node).start):
        if isinstance(around, (ast.If, ast.While)):
            found.append(f"{block.name} {ast.dump(around.test)}")
        elif isinstance(around, ast.Match) or block.name.startswith("handlers"):
            clause = block.owner
            parts = (getattr(clause, "type", None), getattr(clause, "pattern", None), getattr(clause, "guard", None))
            found.append(" ".join(ast.dump(part) for part in parts if part is not None))
        elif isinstance(around, (*TRY, *LOOP)):
            found.append(block.name)
    return tuple(found)


def _skips(symbol: Symbol, node: ast.stmt, anchor: Span) -> bool:
    """Whether leaving at `node` keeps control from a place that it would have reached."""
    span = symbol.file.node_span(node)
    if span.overlaps(anchor) or _function(symbol, span) is not _function(symbol, anchor):
        return False
    if isinstance(node, (ast.Break, ast.Continue)):
        loop = _loop(symbol, span)
        if loop is None:
            return False
        if isinstance(node, ast.Break):  # later rounds, and the `else`
            return symbol.file.node_span(loop).contains(anchor)
        return span.end <= anchor.start and _rounds(symbol, loop).contains(anchor)
    if any(_rounds(symbol, n).contains(span) and _rounds(symbol, n).contains(anchor) for n in _loops(symbol)):
        return True  # the next round
    if span.end > anchor.start:
        return False
    theirs = {id(stmt): block.name for stmt, block in path(symbol, span.start)}
    return all(
        theirs.get(id(stmt), block.name) == block.name
        for stmt, block in path(symbol, anchor.start)
        if isinstance(stmt, CHOICE)
    )


def _loops(symbol: Symbol) -> list[ast.For | ast.AsyncFor | ast.While]:
    return [n for n in statements_of(symbol) if isinstance(n, LOOP)]


def _rounds(symbol: Symbol, loop: ast.For | ast.AsyncFor | ast.While) -> Span:
    """What a loop repeats: not its `else`."""
    return Span(symbol.file.node_span(loop).start, symbol.file.node_span(loop.body[-1]).end)


def _loop(symbol: Symbol, span: Span) -> ast.For | ast.AsyncFor | ast.While | None:
    """The loop that a `break` or `continue` is about."""
    found = [n for n in _loops(symbol) if _rounds(symbol, n).contains(span)]
    return min(found, key=lambda n: len(symbol.file.node_span(n)), default=None)


def _function(symbol: Symbol, span: Span) -> Namespace | None:
    """The function or class that some bytes stand in."""
    return next(reversed(scopes_around(symbol, span)), None)


# ---- readers and writers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Changed:
    """A statement that is new, or has changed, with what it uses that it did not use before."""

    node: ast.stmt
    uses: Uses


def _changed(pair: Pair) -> list[_Changed]:
    """What upstream's text uses now and did not before where it stands; without the old text all that changed lines use."""
    found = [_Changed(node, uses(heads(node))) for node in added_nodes(pair)]
    above = _above(pair)
    for old, new in pair.alignment.both() if pair.alignment is not None else ():
        if above(old.node, old=True) != above(new.node, old=False):
            found.append(_Changed(new.node, uses(heads(new.node))))
        elif old.digest != new.digest:
            found.append(_Changed(new.node, uses(heads(new.node)) - uses(heads(old.node))))
    return [one for one in found if one.uses.reads or one.uses.sets]


def _above(pair: Pair) -> Callable[..., bool]:
    """Says whether a statement of either side stands above the delta there."""
    sides = ((pair.base, pair.old_edits()), (pair.new, [edit for _, edit in pair.edits()]))
    starts = [min(((e.touched or e.span).start for e in edits), default=0) for _, edits in sides]

    def above(node: ast.stmt, *, old: bool) -> bool:
        one = pair.base if old else pair.new
        return one is not None and one.symbol.file.node_span(node).start < starts[0 if old else 1]

    return above


def _meeting(pair: Pair, found: Sequence[_Changed], anchors: Sequence[Span], ours: Uses) -> Iterator[Finding]:
    symbol = pair.new.symbol
    start, end = min(a.start for a in anchors), max(a.end for a in anchors)
    loop = loop_around(symbol, start)
    inside = _function(symbol, anchors[0])
    where = {id(node): scope for scope in scopes(symbol) for node in scope.statements}
    readers, writers = [], []
    for one in found:
        span = own_part(symbol.file, one.node)
        again = loop is not None and loop.contains(symbol.file.node_span(one.node))
        seen = _as_ours(one.uses, where.get(id(one.node)), inside, ours)
        if (span.start >= start or again) and (names := met(seen.reads | seen.sets, ours.sets)):
            readers.append((one.node, names))
        # plain names are the bindings' (PK513)
        if (span.start < end or again) and (names := met(ours.reads | ours.sets, {c for c in seen.sets if "." in c})):
            writers.append((one.node, names))
    if readers:
        names = sorted({name for _, found_names in readers for name in found_names})
        yield _say(
            pair, "PK552", f"new upstream code reads or sets {_listed(names)}, which the delta sets", [n for n, _ in readers],
            "Does it get what it expects? If not, give the delta's value a name of its own.",
        )  # fmt: skip
    if writers:
        names = sorted({name for _, found_names in writers for name in found_names})
        yield _say(
            pair, "PK553", f"new upstream code sets {_listed(names)}, which the delta uses", [n for n, _ in writers],
            "Does the delta still find what it expects?",
        )  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name.replace(".[]", "[...]") for name in names)


def _as_ours(found: Uses, there: Namespace | None, inside: Namespace | None, ours: Uses) -> Uses:
    """What code in some function uses that is the delta's, too: its names are the same ones there."""
    if there is inside or there is None or inside is None:
        return found
    return found.without(
        {name for chain in (*found.reads, *found.sets) if not _shared(name := root(chain), there, inside, ours)}
    )


def _shared(name: str, there: Namespace, inside: Namespace, ours: Uses) -> bool:
    """Whether a name in one function is the one that code of the delta in another one uses."""
    if name == "*":
        return True
    mine = inside if name in ours.sets and name not in inside.elsewhere else inside.inside(name)
    scope: Namespace | None = there
    while scope is not None and scope is not inside:
        if scope.inside(name) is scope:
            return mine is scope
        scope = scope.parent
    return mine is (inside if scope is inside and name in ours.sets else there.inside(name))
