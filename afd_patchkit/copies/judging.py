"""What one pair of a hand copy and its upstream function shows: changes in and outside of fences, and what is only cosmetic."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from afd_patchkit.copies.canonical import Canonical, key, origin
from afd_patchkit.copies.difference import Contrast, compare, first_line, last_line, spots
from afd_patchkit.copies.marks import HandFence, comments_of, fence_mark
from afd_patchkit.copies.pairing import CopyPair
from afd_patchkit.source.signature import Signature, signature
from afd_patchkit.source.syntax import docstring_of


@dataclass(frozen=True, eq=False)
class Portion:
    """One change as a reader sees it: a run of lines of the hand copy, in one fence or in none.

    Attributes:
        change: the difference that it is (a part of).
        lines: first and last line in the hand copy; of a removal the lines between its neighbours.
        fence: the fence that it lies in.
        wanted: the hand copy's statements that it is about.
        base: upstream's.
    """

    change: Contrast
    lines: tuple[int, int]
    fence: HandFence | None
    wanted: tuple[ast.stmt, ...]
    base: tuple[ast.stmt, ...]

    @property
    def upstream_lines(self) -> tuple[int, int] | None:
        """Upstream's lines that it is about; None for what is only added."""
        if not self.base:
            return None
        return first_line(origin(self.base[0])), last_line(origin(self.base[-1]))


@dataclass
class Compared:
    """One pair, looked at.

    Attributes:
        pair: the pair.
        parts: the changes, in order.
        cosmetic: how often each of `COSMETIC` differs.
    """

    pair: CopyPair
    parts: list[Portion]
    cosmetic: Counter[str] = field(default_factory=Counter)

    @property
    def fenced(self) -> list[Portion]:
        """The changes that lie in fences."""
        return [p for p in self.parts if p.fence is not None]

    @property
    def unfenced(self) -> list[Portion]:
        """The changes that do not."""
        return [p for p in self.parts if p.fence is None]

    @cached_property
    def signatures(self) -> tuple[Signature, Signature]:
        """Upstream's and the hand copy's."""
        return signature(self.pair.symbol.node, self.pair.symbol.file), signature(
            self.pair.hand.node, self.pair.hand.file.source
        )


def judge(pair: CopyPair) -> Compared:
    """Look at one pair."""
    fences = [f for f in pair.hand.fences if f.end is not None and not f.stray]
    parts = [part for change in compare(pair.base, pair.wanted) for part in _split(change, fences)]
    judged = Compared(pair, parts)
    if pair.delegates:
        judged.parts = [p for p in parts if p.fence is not None]
        return judged
    _cosmetics(judged, fences)
    return judged


def _fence_at(fences: Sequence[HandFence], first: int, last: int) -> HandFence | None:
    found = [f for f in fences if f.holds(first, last)]
    return found[-1] if found else None


def _split(change: Contrast, fences: Sequence[HandFence]) -> Iterator[Portion]:
    """A difference by the fences that its lines lie in; what replaces upstream's text belongs to the fence beside it."""
    if change.sort in ("statement", "head", "clauses"):
        first, last = change.lines
        fence = _fence_at(fences, first, last)
        if fence is None and change.sort != "clauses":
            fence = _spots_fenced(change, fences)
        if fence is None and change.sort == "clauses":
            fence = _clauses_fenced(change, fences)
        yield Portion(change, (first, last), fence, change.wanted, change.base)
        return
    if not change.wanted:
        first, last = change.lines
        beside = next((f for f in fences if f.start <= last and (f.end or 0) >= first), None)
        yield Portion(change, (first, last), beside, (), change.base)
        return
    runs: list[tuple[HandFence | None, list[ast.stmt]]] = []
    for statement in change.wanted:
        node = origin(statement)
        fence = _fence_at(fences, first_line(node), last_line(node))
        if runs and runs[-1][0] is fence:
            runs[-1][1].append(statement)
        else:
            runs.append((fence, [statement]))
    # upstream's statements that went belong to the fence of the run, when there is one
    holder = next((n for n, (fence, _) in enumerate(runs) if fence is not None), 0)
    for number, (fence, statements) in enumerate(runs):
        lines = first_line(origin(statements[0])), last_line(origin(statements[-1]))
        yield Portion(change, lines, fence, tuple(statements), change.base if number == holder else ())


def _spots_fenced(change: Contrast, fences: Sequence[HandFence]) -> HandFence | None:
    """The fence that holds every place of a statement that differs."""
    found = spots(change.base[0], change.wanted[0])
    held = [_fence_at(fences, *spot.lines) or _touching(fences, spot.lines, change) for spot in found]
    return held[0] if held and all(h is not None for h in held) else None


def _touching(fences: Sequence[HandFence], lines: tuple[int, int], change: Contrast) -> HandFence | None:
    """For what was dropped inside a statement: a fence that stands inside the statement."""
    first, last = change.lines
    inside = [f for f in fences if first <= f.start and (f.end or 0) <= last]
    return inside[0] if inside and lines == change.lines else None


def _clauses_fenced(change: Contrast, fences: Sequence[HandFence]) -> HandFence | None:
    node = origin(change.wanted[0])
    inside = [f for f in fences if first_line(node) <= f.start and (f.end or 0) <= last_line(node) + 1]
    return inside[0] if inside else None


# ---- cosmetics ------------------------------------------------------------------------------------------------------


def _cosmetics(judged: Compared, fences: Sequence[HandFence]) -> None:
    pair, count = judged.pair, judged.cosmetic
    hand, symbol = pair.hand.node, pair.symbol.node
    assert isinstance(symbol, (ast.FunctionDef, ast.AsyncFunctionDef))
    if _docstring(hand) != _docstring(symbol):
        count["docstring"] += 1
    count["locals"] += len(pair.locals)
    count["names"] += len(pair.wanted.late)
    ours, theirs = judged.signatures
    annotated = {p.name: p.annotation for p in theirs.parameters}
    count["annotations"] += sum(annotated[p.name] != p.annotation for p in ours.parameters if p.name in annotated)
    count["annotations"] += ours.returns != theirs.returns
    count["annotations"] += sum(
        _fence_at(fences, first_line(n), last_line(n)) is None for n in _annotation_changes(pair.base, pair.wanted)
    )
    count["comments"] += _comments(pair, fences)


def _docstring(node: ast.AST) -> str | None:
    found = docstring_of(node.body)  # type: ignore[attr-defined]
    return None if found is None else " ".join(found.value.value.split())  # type: ignore[attr-defined]


def _annotation_changes(base: Canonical, wanted: Canonical) -> Iterator[ast.stmt]:
    """Assignments that are the same but for an annotation, which one has and the other has not."""
    annotated: dict[str, Counter[bool]] = {}
    for node in ast.walk(base.node):
        if isinstance(node, ast.Assign):
            annotated.setdefault(key(node), Counter())[isinstance(origin(node), ast.AnnAssign)] += 1
    for node in ast.walk(wanted.node):
        if isinstance(node, ast.Assign) and key(node) in annotated:
            found = origin(node)
            if not annotated[key(node)][isinstance(found, ast.AnnAssign)]:
                yield found  # type: ignore[misc]


def _comments(pair: CopyPair, fences: Sequence[HandFence]) -> int:
    """How many comments of either side the other one lacks, those in fences left out."""
    first, last = pair.hand.lines
    ours = Counter(
        _words(t.text)
        for line, t in comments_of(pair.hand.file.source).items()
        if first <= line <= last and fence_mark(t.text) is None and _fence_at(fences, line, line) is None
    )
    begin, end = pair.symbol.line_ranges[-1]
    theirs = Counter(_words(t.text) for line, t in comments_of(pair.symbol.file).items() if begin <= line <= end)
    return sum((ours - theirs).values()) + sum((theirs - ours).values())


def _words(text: str) -> str:
    return " ".join(text.lstrip("# ").split())
