"""Whether what a removal condition waits for was dropped by the new release, and not moved, renamed or rewritten."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.assemble.probes import Targets, holds, lookup, matches
from afd_patchkit.assemble.record import symbol_record
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Code, InPattern, Probe
from afd_patchkit.patterns.select import Match
from afd_patchkit.source.locate import Symbol, parse_place, whole
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upgrade.align import Alignment, Statement, align
from afd_patchkit.upgrade.merge import line_digests
from afd_patchkit.upgrade.moved import Release, search
from afd_patchkit.upgrade.sides import first_text

_ALIKE = 0.7
"""From this likeness on something of another name is what was looked for; as in the alignment of statements."""
_TELLING = 8
"""Tokens; shorter text stands in other files by chance."""


@dataclass(frozen=True)
class Sides:
    """Both sides of an upgrade, as removal conditions see them.

    Attributes:
        old: the targets at the base; None when the old text is not at hand.
        new: the targets now.
        release: the files of the pin that moves.
    """

    old: Targets | None
    new: Targets
    release: Release


def doubts(probes: Sequence[Probe], sides: Sides) -> list[Finding]:
    """Why none of the conditions that hold now is sure; empty when one is.

    Raises:
        UpstreamError: a file that exists cannot be read.
    """
    found: list[Finding] = []
    for probe in probes:
        if holds(probe, sides.new):
            why = list(_doubts(probe, sides))
            if not why:
                return []
            found += why
    return found


def _doubts(probe: Probe, sides: Sides) -> Iterator[Finding]:
    if probe.missing is not None:
        yield from _missing(probe.missing, sides)
    elif probe.absent is not None:
        yield from _absent(probe.absent, sides)
    elif probe.any is not None:
        yield from doubts(probe.any, sides)
    elif probe.all is not None:
        for each in probe.all:
            yield from _doubts(each, sides)


def _say(message: str, code: Code, at: Position | None, details: Sequence[str] = ()) -> Finding:
    return finding(
        "PK544",
        message,
        manifest=code.position,
        upstream=at,
        details=tuple(details),
        help="Read what upstream did. Is the entry superfluous? Then accept it, or delete the entry; else correct the condition.",
    )


def _unknown(code: Code) -> Finding:
    return _say("the removal condition holds, but the old text is not at hand: was it dropped or changed?", code, None)


# ---- a symbol or module that shall be gone ------------------------------------------------------------------------------


def _missing(reference: Code, sides: Sides) -> Iterator[Finding]:
    if sides.old is None:
        yield _unknown(reference)
        return
    base = lookup(reference, sides.old)
    if base is None:  # it was not there before: nothing was dropped, the condition held at the pin
        return
    if not parse_place(reference.text)[1]:
        became = _module(base.file, sides.release)
    else:
        found = search(symbol_record(base), base, sides.release)
        became = [(found.same.reference, 1.0)] if found.same else [s for s in found.successors if s[1] >= _ALIKE]
    if became:
        yield _say(
            f"{reference.text} is not gone, it is called {became[0][0]} now",
            reference,
            None,
            [f"likely successor: {name} ({value:.0%} alike)" for name, value in became],
        )


def _module(base: SourceFile, release: Release) -> list[tuple[str, float]]:
    """Modules that hold what the lost one held, most alike first."""
    digests = line_digests(base.text.split("\n"))
    old, found = Counter(digests), []
    for file in release.sharing(digests):
        new = Counter(line_digests(file.text.split("\n")))
        value = 2 * sum((old & new).values()) / (sum(old.values()) + sum(new.values()))
        if value >= _ALIKE:
            found.append((file.module, value))
    return sorted(found, key=lambda item: -item[1])


# ---- a pattern that shall be gone ---------------------------------------------------------------------------------------


def _absent(test: InPattern, sides: Sides) -> Iterator[Finding]:
    if sides.old is None:
        yield _unknown(test.pattern)
        return
    base, new = lookup(test.in_, sides.old), lookup(test.in_, sides.new)
    if base is None or new is None:
        return
    before = matches(test.pattern, base)
    alignment = align(base, new) if before else None
    for match in before:
        assert alignment is not None
        text = first_text(base.file, match.span)
        became = _became(match, alignment)
        if became is not None:
            what = f"`{text}` of {test.in_.text} was changed, not dropped"
            yield _say(
                what, test.pattern, _at(new.file, became), [f"was: {text}", f"now: {first_text(new.file, became)}"]
            )
        elif (place := _moved(test, match, base, new, sides)) is not None:
            yield _say(f"`{text}` of {test.in_.text} was moved, not dropped", test.pattern, place)


def _at(file: SourceFile, span: Span) -> Position:
    return Position(file.path, file.line_of(span.start), 1)


def _became(match: Match, alignment: Alignment) -> Span | None:
    """What stands in the new text for what matched; None when nothing does."""
    run = list(match.siblings[match.index : match.end])
    if not run:  # in the header of the symbol itself
        return _changed(match.owner, alignment)
    inside = match.body is None and not (isinstance(run[0], ast.Expr) and run[0].value is match.nodes[0])
    if inside and alignment.find(run[0]) is not None:
        return _changed(run[0], alignment)
    heirs = (heir(node, alignment) for node in run)
    return next((found.span for found in heirs if found is not None), None)


def heir(node: ast.stmt, alignment: Alignment) -> Statement | None:
    """What stands in the new text for a statement that is not there as it was; None when nothing does."""
    found = alignment.find(node)
    if found is None:
        return _in_its_place(node, alignment)
    return found if found.digest != alignment.base.by_id[id(node)].digest else None


def _changed(node: ast.AST, alignment: Alignment) -> Span | None:
    """The statement that this one became, when that says something that this one did not."""
    old, new = alignment.base.by_id.get(id(node)), alignment.find(node)
    return new.span if old is not None and new is not None and Counter(new.words) - Counter(old.words) else None


def _in_its_place(node: ast.stmt, alignment: Alignment) -> Statement | None:
    """A new statement between what the neighbours of a lost statement became."""
    lost = alignment.base.by_id[id(node)]
    siblings = _siblings(lost, alignment)
    index = next(i for i, s in enumerate(siblings) if s is lost)
    before = next((f for s in reversed(siblings[:index]) if (f := alignment.find(s.node))), None)
    after = next((f for s in siblings[index + 1 :] if (f := alignment.find(s.node))), None)
    parent = alignment.find(lost.parent.node) if lost.parent is not None else None
    beside = before or after
    if beside is not None:
        suite = next((s for s in _suites(beside.parent, alignment) if beside in s), [])
    elif lost.parent is not None and parent is None:
        return _in_its_place(lost.parent.node, alignment)  # the block went with it
    else:
        name = next((n for n, s in lost.parent.suites if lost in s), "body") if lost.parent is not None else "body"
        suite = dict(parent.suites).get(name, []) if parent is not None else alignment.new.roots
    start = suite.index(before) + 1 if before in suite else 0
    stop = suite.index(after) if after in suite else len(suite)
    taken = {id(s.node) for s in alignment.pairs.values()}
    return next((s for s in suite[start:stop] if id(s.node) not in taken), None)


def _siblings(statement: Statement, alignment: Alignment) -> list[Statement]:
    if statement.parent is None:
        return alignment.base.roots
    return next(suite for _, suite in statement.parent.suites if statement in suite)


def _suites(parent: Statement | None, alignment: Alignment) -> list[list[Statement]]:
    return [alignment.new.roots] if parent is None else [suite for _, suite in parent.suites]


# ---- the same text elsewhere --------------------------------------------------------------------------------------------


def _moved(test: InPattern, match: Match, base: Symbol, new: Symbol, sides: Sides) -> Position | None:
    """Where upstream has what matched now, in another symbol or, if the text says enough, in another file."""
    there = matches(test.pattern, whole(new.file))
    outside = [m for m in there if not any(span.contains(m.span) for span in new.spans)] if new.qualname else []
    if len(outside) > len(matches(test.pattern, whole(base.file))) - len(matches(test.pattern, base)):
        return _at(new.file, outside[0].span)
    if len(significant(tokens_in(base.file, match.span))) < _TELLING:
        return None
    first = base.file.slice(match.span).strip().split("\n")[0].encode()
    for path, data in sides.release.files():
        file = sides.release.source(path) if first in data and path != new.file.path else None
        if file is not None and len(found := matches(test.pattern, whole(file))) > _before(test.pattern, file, sides):
            return _at(file, found[0].span)
    return None


def _before(pattern: Code, file: SourceFile, sides: Sides) -> int:
    """How often the old file of the same module holds a pattern."""
    assert sides.old is not None
    old = lookup(Code(file.module, pattern.position), sides.old)
    return len(matches(pattern, old)) if old is not None else 0
