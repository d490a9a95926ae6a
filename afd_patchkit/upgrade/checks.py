"""Invariant 5: for each delta, what it touches, stands in, stands beside and reads is what it was, or there is a finding."""

from __future__ import annotations

import ast
import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from afd_patchkit.delta.context import Surroundings, surroundings
from afd_patchkit.delta.edits import Edit
from afd_patchkit.findings.finding import Finding, Position, Severity, finding
from afd_patchkit.source.facts import names_bound, names_read
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import own_parts, same_code
from afd_patchkit.source.text import SourceFile, Span, parse_quietly
from afd_patchkit.upgrade.around import around
from afd_patchkit.upgrade.pair import Pair, added_statements, loop_around, own_line
from afd_patchkit.upgrade.renamed import renamed
from afd_patchkit.upgrade.sides import (
    One,
    changes,
    code_lines,
    file_line,
    first_text,
    flat,
    own_line_texts,
    own_part,
    statements_of,
)

_EXITS = (ast.Return, ast.Break, ast.Continue)
_BINDING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def check(pair: Pair) -> list[Finding]:
    """Every difference around one delta that applies on both sides."""
    found = list(_digests(pair))
    found += _early_exit(pair)
    found += _lost_names(pair)
    found += around(pair)
    return list(dict.fromkeys(found))


# ---- the digests of the lock ------------------------------------------------------------------------------------------


def _digests(pair: Pair) -> Iterator[Finding]:
    new = flat(pair.new.records, pair.delta)
    edits, olds = pair.edits(), pair.old_edits()
    if len(new) != len(pair.old):
        yield pair.say(
            "PK520",
            f"it touched {_places(len(pair.old))} of {pair.new.symbol.reference}, now {_places(len(new))}",
            help="Compare both and narrow the pattern.",
        )
        return
    for index, ((_, before), (name, after), (_, edit)) in enumerate(zip(pair.old, new, edits, strict=True)):
        matches = pair.new.applied.matches.get(name, ()) if pair.new.applied else ()
        here = surroundings(pair.new.symbol, edit, matches)
        there = None
        if pair.base is not None and pair.base.applied is not None and index < len(olds):
            there = surroundings(pair.base.symbol, olds[index], pair.base.applied.matches.get(name, ()))
        yield from _edit(_Compared(pair, before, after, edit, here, there))


def _places(count: int) -> str:
    return "one place" if count == 1 else f"{count} places"


@dataclass(frozen=True)
class _Compared:
    """One edit of a delta, in both releases.

    Attributes:
        pair: the delta in both releases.
        before: its record in the lock.
        after: its record now.
        edit: the edit at the new release.
        here: where it stands there.
        there: where it stood; None where the old text is not at hand.
    """

    pair: Pair
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    edit: Edit
    here: Surroundings
    there: Surroundings | None

    def difference(self, old: Span | None, now: Span | None) -> list[str]:
        """The difference of two places, as lines."""
        file = self.pair.new.symbol.file
        return changes(self._old, old, file, now) if self.there is not None else changes(None, None, file, now)

    @property
    def _old(self) -> SourceFile | None:
        return self.pair.base.symbol.file if self.pair.base is not None else None

    def alike(self, old: Sequence[Span | None], now: Sequence[Span | None]) -> bool:
        """Whether texts that differ in their tokens are the same code all the same: quotes, a formatter's parentheses."""
        old_file, file = self._old, self.pair.new.symbol.file
        if self.there is None or old_file is None or len(old) != len(now):
            return False
        return all(
            a is not None and b is not None and same_code(old_file.slice(a), file.slice(b))
            for a, b in zip(old, now, strict=True)
        )


def _edit(both: _Compared) -> Iterator[Finding]:
    pair, before, after = both.pair, both.before, both.after
    yield from _touched(both)
    yield from _around(both)
    if both.edit.does.call and pair.delta.call is not None:
        yield from _arguments(pair, before, after, both.here.touched.start)


def _touched(both: _Compared) -> Iterator[Finding]:
    """What upstream changed in the text that the edit touches, and in the statement that holds it."""
    pair, before, after, here, there = both.pair, both.before, both.after, both.here, both.there
    at = here.touched.start
    if names := _renamed(pair, both.edit, here, there) if before["touched"] != after["touched"] else None:
        yield pair.say(
            "PK652",
            "upstream renamed names in text that the delta replaces",
            at=at,
            details=[f"{old} is {new} now" for old, new in names.items()],
        )
    elif before["touched"] != after["touched"] and not both.alike([there.touched if there else None], [here.touched]):
        yield pair.say(
            "PK510",
            "upstream changed text that the delta touches",
            at=at,
            details=both.difference(there.touched if there else None, here.touched),
            help="Read both texts: does the delta still say what it should?",
        )
    elif before.get("holder") != after.get("holder") and before["touched"] == after["touched"]:
        yield pair.say(
            "PK510",
            "upstream changed the statement around what the delta touches",
            at=at,
            details=[f"now: {first_text(pair.new.symbol.file, _line(pair.new.symbol, at))}"],
            help="Read both texts: does the delta still say what it should?",
        )
    elif dropped := _layout(pair, before, after, both.edit):
        yield pair.say(
            "PK652",
            "upstream changed comments or layout of text that the delta replaces",
            at=at,
            details=[f"new: {text.strip()}" for text in dropped[:5]],
        )


def _around(both: _Compared) -> Iterator[Finding]:
    """What upstream changed in the blocks that the edit stands in, beside it, and in the names that it reads."""
    pair, before, after, here, there = both.pair, both.before, both.after, both.here, both.there
    at, file = here.touched.start, pair.new.symbol.file
    if before["headers"] != after["headers"] and not both.alike(there.headers if there else (), here.headers):
        yield pair.say(
            "PK511",
            "upstream changed a condition, loop or block that the delta stands in",
            at=at,
            details=_headers(before, after, pair, here, there),
            help="The delta applies, but may not mean the same any more: read the new header.",
        )
    for side, now, old in (
        ("before", here.before, there.before if there else None),
        ("after", here.after, there.after if there else None),
    ):
        if before[side] != after[side] and not both.alike([old], [now]):
            yield pair.say(
                "PK512",
                f"upstream changed the statement {side} the place of the delta",
                at=now.start if now else at,
                details=both.difference(old, now),
                help="Is this still the right place?",
            )
    if before["bindings"] != after["bindings"] and not both.alike(there.bindings if there else (), here.bindings):
        yield pair.say(
            "PK513",
            "upstream changed how a name gets its value that the delta reads",
            at=at,
            details=[
                f"now: {file.line_of(s.start)}: {first_text(file, s)}"
                for s, d in zip(here.bindings, after["bindings"], strict=True)
                if d not in before["bindings"]
            ],
            help="Does the name still hold what the delta expects?",
        )


def _renamed(pair: Pair, edit: Edit, here: Surroundings, there: Surroundings | None) -> Mapping[str, str] | None:
    """The new names in text of which the delta keeps nothing, when names are all that changed in it."""
    if edit.keeps or there is None or pair.base is None or not edit.span.contains(here.touched):
        return None
    return renamed(pair.base.symbol, there.touched, pair.new.symbol, here.touched)


def _line(symbol: Symbol, at: int) -> Span:
    line = symbol.file.line_of(at)
    return symbol.file.line_span(line, line)


def _headers(
    before: Mapping[str, Any], after: Mapping[str, Any], pair: Pair, here: Surroundings, there: Surroundings | None
) -> list[str]:
    file, out = pair.new.symbol.file, []
    if there is not None and pair.base is not None:
        gone = [s for s, d in zip(there.headers, before["headers"], strict=True) if d not in after["headers"]]
        out += [f"was: {first_text(pair.base.symbol.file, s)}" for s in gone]
    out += [
        f"now: {first_text(file, s)}"
        for s, d in zip(here.headers, after["headers"], strict=True)
        if d not in before["headers"]
    ]
    return out or [f"it stood in {len(before['headers'])} blocks, now in {len(after['headers'])}"]


def _layout(pair: Pair, before: Mapping[str, Any], after: Mapping[str, Any], edit: Edit) -> list[str]:
    """New lines of replaced text whose tokens are the old ones."""
    if edit.keeps or not len(edit.span) or not edit.does.drops:
        return []
    first, last = after["lines"]
    old = set(pair.lines.old[before["lines"][0] - 1 : before["lines"][1]])
    texts = own_line_texts(pair.new.symbol)
    return [texts[n - 1] for n in range(first, last + 1) if pair.lines.new[n - 1] not in old and texts[n - 1].strip()]


def _arguments(pair: Pair, before: Mapping[str, Any], after: Mapping[str, Any], at: int) -> Iterator[Finding]:
    """Arguments that upstream gives otherwise now, in a call of ours, or where a `*` or `**` may give what ours sets or drops."""
    change = pair.delta.call
    assert change is not None
    old, new = list(before.get("arguments", ())), list(after.get("arguments", ()))
    words = [f"new argument {_argument(a)}" for a in new if a not in old]
    words += [f"argument {_argument(a)} gone" for a in old if a not in new]
    if change.callee is not None:
        callee = change.callee.text.strip()
        message = f"the call that goes to {callee} changed upstream: {', '.join(words) or 'order of the arguments'}"
        advice = f"{callee} must take what it is now given; or `drop` the argument."
    else:
        splats = {"*", "**"}
        more = splats & set(new) - set(old) and (change.set or change.drop or change.rename)
        shifted = change.append and [a for a in old if a.isdigit() or a == "*"] != [
            a for a in new if a.isdigit() or a == "*"
        ]
        if not more and not shifted:
            return
        message = f"the call whose arguments the delta changes gives others now: {', '.join(words)}"
        advice = "Where does what the delta sets, drops, renames or appends go now? Say so in the delta."
    if old != new:
        yield pair.say("PK519", message, at=at, help=advice)


def _argument(name: str) -> str:
    return f"at position {name}" if name.isdigit() else name


# ---- early exits ------------------------------------------------------------------------------------------------------


def early_exits(one: One) -> list[tuple[ast.stmt, Edit]]:
    """Exits (`return`, `break`, `continue`) that deltas add, with the edit they stand in."""
    if one.applied is None:
        return []
    try:
        tree = parse_quietly(one.text)
    except (SyntaxError, ValueError):
        return []
    text = one.text
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    ranges = one.emitted()
    found: list[tuple[ast.stmt, Edit]] = []
    runs = list(one.applied.buffer.positioned())
    edits = {edit.id: edit for edit in one.applied.edits}
    for node in _own_statements(tree):
        if not isinstance(node, _EXITS):
            continue
        line = text.split("\n")[node.lineno - 1]
        at = offsets[node.lineno - 1] + len(line.encode()[: node.col_offset].decode())
        if not any(start <= at < end for start, end in ranges):
            continue
        run = next(run for start, run in runs if start <= at < start + len(run.text))
        edit = edits.get(run.edits[0]) if run.edits else None
        if edit is not None and not _replaces_exit(one.symbol, edit, type(node)):
            found.append((node, edit))
    return found


def _own_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes of the function itself, not of functions nested in it."""
    root = tree.body[-1] if isinstance(tree, ast.Module) and tree.body else tree
    stack = list(ast.iter_child_nodes(root))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)


def _replaces_exit(symbol: Symbol, edit: Edit, kind: type[ast.AST]) -> bool:
    """Whether upstream leaves in the text that the edit replaces, too."""
    return any(
        isinstance(node, kind) and edit.span.contains(symbol.file.node_span(node)) for node in statements_of(symbol)
    )


def _early_exit(pair: Pair) -> Iterator[Finding]:
    for node, edit in early_exits(pair.new):
        within = loop_around(pair.new.symbol, edit.span.start) if isinstance(node, (ast.Break, ast.Continue)) else None
        later = [
            s for s in added_statements(pair) if s.start >= edit.span.end and (within is None or within.contains(s))
        ]
        if later:
            file = pair.new.symbol.file
            word = type(node).__name__.lower()
            yield pair.say(
                "PK514",
                f"upstream added statements below a delta that leaves early (`{word}`): the early path skips them",
                at=later[0].start,
                details=[f"{file.path}:{file.line_of(s.start)}: {first_text(file, s)}" for s in later[:8]],
                help="Does the early path need them? If so, add them to the delta.",
            )
            return


# ---- names ------------------------------------------------------------------------------------------------------------


def _lost_names(pair: Pair) -> Iterator[Finding]:
    """Names that upstream's text under the delta binds and the delta's does not, read by lines that upstream added."""
    one = pair.new
    if one.applied is None or not any(len(edit.span) for edit in one.applied.edits):
        return
    try:
        ours = parse_quietly(one.text)
    except (SyntaxError, ValueError):
        return
    kept = _bound_count(ours.body)
    if one.applied is not pair.whole.applied and pair.whole.applied is not None:  # another delta may bind it
        with contextlib.suppress(SyntaxError, ValueError):
            kept |= _bound_count(parse_quietly(pair.whole.text).body)
    lost = {name for name, count in _bound_count(one.symbol.nodes).items() if kept[name] < count}
    if not lost:
        return
    file = one.symbol.file
    spans = [edit.span for edit in one.applied.edits if len(edit.span)]
    known = Counter(_code(n) for n in statements_of(pair.base.symbol)) if pair.base is not None else Counter()
    for node in statements_of(one.symbol):
        code = _code(node)
        if known[code]:  # however it is laid out now
            known[code] -= 1
            continue
        part = own_part(file, node)
        lines = range(own_line(one.symbol, part.start), own_line(one.symbol, part.end - 1) + 1)
        if any(s.contains(part) for s in spans) or not any(n in pair.lines.added for n in lines):
            continue
        used = sorted(lost & _reads(node))
        if used:
            yield pair.say(
                "PK517",
                f"new upstream text reads {', '.join(used)}, which upstream binds where the delta stands and the delta does not",
                at=part.start,
                details=[f"{file.path}:{file.line_of(part.start)}: {first_text(file, part)}"],
                help="Bind the name in the delta, or change the new line by a delta too.",
            )


def _code(node: ast.stmt) -> tuple[str, ...]:
    """A statement without its blocks, layout aside."""
    return (type(node).__name__, *(ast.dump(part) for part in own_parts(node)))


def _reads(node: ast.stmt) -> set[str]:
    own = own_parts(node)
    return names_read(own)


def _bound_count(roots: Sequence[ast.stmt]) -> Counter[str]:
    """Names with how many statements bind them, so that one binding lost of two is seen."""
    counts: Counter[str] = Counter()
    for root in roots:
        for node in ast.walk(root):
            if isinstance(node, _BINDING):
                counts.update(names_bound([node]))
            elif isinstance(node, ast.stmt):
                counts.update(names_bound(own_parts(node)))
    return counts


# ---- between two deltas -----------------------------------------------------------------------------------------------


def between(pairs: Sequence[Pair], old_symbol: Symbol | None) -> dict[str, list[Finding]]:
    """Findings for code that upstream put between two deltas which had none between them, by delta name."""
    old = sorted(
        ((r["lines"], pair, index) for pair in pairs for index, (_, r) in enumerate(pair.old)),
        key=lambda item: (item[0][0], item[0][1]),
    )
    found: dict[str, list[Finding]] = {}
    for (one_lines, one, one_index), (other_lines, other, other_index) in pairwise(old):
        if one is other or other_lines[0] <= one_lines[1]:
            continue
        first, last = max(one_lines[1], one_lines[0] - 1) + 1, other_lines[0] - 1
        if _has_code(one, old_symbol, first, last):
            continue
        new_one, new_other = _new_lines(one, one_index), _new_lines(other, other_index)
        if new_one is None or new_other is None:
            continue
        symbol = one.new.symbol
        gained = code_lines(symbol, max(new_one[1], new_one[0] - 1) + 1, new_other[0] - 1)
        if gained:
            texts = own_line_texts(symbol)
            numbers = [file_line(symbol.line_ranges, n) for n in gained]
            for pair, neighbour in ((one, other), (other, one)):
                found.setdefault(pair.delta.name, []).append(
                    finding(
                        "PK515",
                        f"upstream added code between this delta and its neighbour {neighbour.delta.name!r}",
                        entry=pair.entry,
                        delta=pair.delta.name,
                        manifest=pair.delta.where,
                        upstream=Position(symbol.file.path, numbers[0]),
                        details=tuple(
                            f"{symbol.file.path}:{n}: {texts[g - 1].strip()}"
                            for n, g in zip(numbers, gained, strict=True)
                        ),
                        help="It now stands between the two: read both deltas with it.",
                    )
                )
    return found


def _has_code(pair: Pair, old: Symbol | None, first: int, last: int) -> bool:
    from afd_patchkit.upgrade.sides import EMPTY

    if old is not None:
        return bool(code_lines(old, first, last))
    return any(digest != EMPTY for digest in pair.lines.old[first - 1 : last])


def _new_lines(pair: Pair, index: int) -> tuple[int, int] | None:
    records = flat(pair.new.records, pair.delta)
    if len(records) != len(pair.old):
        return None
    first, last = records[index][1]["lines"]
    return first, last


def is_serious(item: Finding) -> bool:
    """Whether a finding needs a person."""
    return item.severity is not Severity.NOTE
