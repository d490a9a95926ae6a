"""`elements:` add, replace or remove one element of a tuple, list or set that upstream writes out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from afd_patchkit.delta.builder import Builder
from afd_patchkit.delta.comma import CommaList, display_list
from afd_patchkit.model import Code, Delta, ElementsChange
from afd_patchkit.patterns.select import Match, compile_pattern, equal
from afd_patchkit.source.text import Span

Display = ast.Tuple | ast.List | ast.Set
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)


@dataclass(eq=False)
class Changes:
    """What deltas do to one display.

    Attributes:
        node: the display.
        items: its elements.
        bare: it is a tuple without parentheses.
        dropped: numbers of the elements that go.
        added: the deltas that add an element, with the edits around them, the number of the element it goes before, and its text.
        last: the last delta that takes something out, with the edits around it.
    """

    node: Display
    items: CommaList
    bare: bool
    dropped: set[int] = field(default_factory=set)
    added: list[tuple[Delta, list[int], int, str]] = field(default_factory=list)
    last: tuple[Delta, list[int]] | None = None


def elements(builder: Builder, delta: Delta) -> None:
    """Add the edits of an `elements:` delta; what depends on other deltas comes with `finish`."""
    change = delta.elements
    assert change is not None
    for match in builder.select(delta, change.of, compile_pattern(change.of).kind):
        node = _display(builder, delta, match)
        known = builder.displays.get(builder.file.node_span(node).start)
        if not isinstance(known, Changes) or known.node is not node:
            known = Changes(node, *display_list(builder.file, node))
            builder.displays[builder.file.node_span(node).start] = known
        _one(builder, delta, change, known)


def _one(builder: Builder, delta: Delta, change: ElementsChange, there: Changes) -> None:
    touched = Span(there.items.open, there.items.close)
    if change.add is not None:
        if change.before is not None:
            index = _find(builder, delta, there.node, change.before)
        elif change.after is not None:
            index = _find(builder, delta, there.node, change.after) + 1
        else:
            index = len(there.items.items)
        there.added.append((delta, list(builder.parents), index, change.add.text.strip()))
        return
    code = change.replace or change.remove
    assert code is not None
    index = _find(builder, delta, there.node, code)
    if change.replace is not None:
        assert isinstance(delta.with_, Code)
        builder.swap(delta, there.node.elts[index], there.items.items[index], delta.with_, touched)
        return
    builder.drop(delta, there.items, {index}, touched)
    there.dropped.add(index)
    there.last = delta, list(builder.parents)


def _display(builder: Builder, delta: Delta, match: Match) -> Display:
    """The one display that a match means."""
    node = match.nodes[0]
    found: Sequence[ast.AST | None] = [node]
    if isinstance(node, (ast.Return, ast.Expr, ast.AugAssign)):
        found = [node.value]
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        found = [node.value, *(node.targets if isinstance(node, ast.Assign) else ())]
    found = [n.value if isinstance(n, (ast.Yield, ast.Await)) else n for n in found]
    displays = [n for n in found if isinstance(n, _DISPLAYS)]
    if len(match.nodes) != 1 or len(displays) != 1:
        what = "several tuples, lists or sets" if displays else "no tuple, list or set that is written out"
        raise builder.fail(
            "PK218", f"`elements.of` matches {what}", delta, at=match.span.start,
            help="Match the display itself, or a statement that returns, yields or assigns one, or unpacks into one.",
        )  # fmt: skip
    return displays[0]


def _find(builder: Builder, delta: Delta, node: Display, code: Code) -> int:
    pattern = compile_pattern(code, "expression")
    found = [n for n, element in enumerate(node.elts) if equal(pattern, element)]
    if len(found) != 1:
        there = ", ".join(builder.file.slice(builder.file.node_span(e)) for e in node.elts)
        raise builder.fail(
            "PK202" if found else "PK201",
            f"{len(found) or 'no'} element{'s' if len(found) > 1 else ''} match{'' if len(found) > 1 else 'es'} "
            f"`{code.text.strip()}`",
            delta,
            at=builder.file.node_span(node).start,
            help=f"It has: {there or 'none'}.",
        )
    return found[0]


def finish(builder: Builder) -> None:
    """Put new elements between those that stay, and keep a tuple a tuple, once all deltas are known."""
    for there in builder.displays.values():
        assert isinstance(there, Changes)
        _put(builder, there)
        _stay(builder, there)


def _put(builder: Builder, there: Changes) -> None:
    items, touched = there.items, Span(there.items.open, there.items.close)
    left = [n for n in range(len(items.items)) if n not in there.dropped]
    for number, (delta, parents, index, text) in enumerate(there.added):
        before, behind = [n for n in left if n < index], [n for n in left if n >= index]
        if before:
            cuts = items.insert(before[-1] + 1, text)
        elif behind:
            cuts = items.insert(behind[0], text)
        else:
            point = items.items[0].start if items.items else items.open
            cuts = [(Span(point, point), (", " if number else "") + text)]
        _edit(builder, delta, parents, cuts, touched)


def _stay(builder: Builder, there: Changes) -> None:
    """One element left of a tuple needs its comma, none left of a bare tuple its parentheses."""
    items = there.items
    left = [n for n in range(len(items.items)) if n not in there.dropped]
    if not isinstance(there.node, ast.Tuple) or len(left) + len(there.added) > 1:
        if isinstance(there.node, ast.Set) and not left and not there.added and there.last is not None:
            raise builder.fail(
                "PK218", "the set would have no element left, and `{}` is no set", there.last[0], at=items.open,
                help="Use `expr` to write `set()`.",
            )  # fmt: skip
        return
    change = there.last or (there.added[0][:2] if there.added and not left else None)
    if change is None:
        return
    touched = Span(items.open, items.close)
    if left:
        comma = items.comma_after(left[0])
        gone = [edit.span for edit in builder.edits if edit.operation == "elements" and not edit.pieces]
        if comma is None or any(span.start < comma <= span.end for span in gone):
            end = items.items[left[0]].end
            _edit(builder, *change, [(Span(end, end), ",")], touched)
    elif there.added:
        point = items.items[-1].end if items.items else items.open
        _edit(builder, *change, [(Span(point, point), ",")], touched)
    elif there.bare:
        _edit(builder, *change, [(Span(items.open, items.open), "()")], touched)


def _edit(builder: Builder, delta: Delta, parents: list[int], cuts: Sequence[tuple[Span, str]], touched: Span) -> None:
    outer, builder.parents = builder.parents, parents
    for span, text in cuts:
        builder.add(delta, span, [text], touched=touched)
    builder.parents = outer
