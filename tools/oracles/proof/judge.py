"""Where a delta stands in a new release, judged without the engine: statements aligned by `git diff --histogram`.

The engine places a delta by matching its pattern (A) and by `git merge-file` on lines (B, Myers' algorithm), and aligns trees by
token likeness. This judge shares none of that. It reads the *output* (fences among upstream's lines), writes each of the two
upstream texts as one line per statement, clause and header in normal form (`ast.unparse`: no layout, no comments), and lets git's
histogram diff (anchored on rare lines, unlike Myers) say which line became which. One line per statement makes the answer exact:
a statement is the same one, another one, or in a stretch that was rewritten.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["same", "moved", "rewritten", "changed", "elsewhere", "vanished", "unreadable"]
"""What became of the anchor's statement, seen from where the delta stands now:

* `same`: the delta stands at it;
* `moved`: the diff lost it, but its text (and the text it stands in) is unique in both releases and the delta stands at it;
* `rewritten`: its text changed, and in the stretch that replaced it the delta stands at what is most like it, and the other way round;
* `changed`: the delta stands in the stretch that replaced it, at something else;
* `elsewhere`: it is another statement than the one at which the delta stands;
* `vanished`: it is gone, and the delta stands somewhere else;
* `unreadable`: the output's fences could not be read.
"""
SAME: frozenset[Verdict] = frozenset({"same", "moved"})
_ALIKE = 0.6

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Unit:
    """One statement (its header, if it is compound) or clause of a function.

    Attributes:
        kind: name of its node type; `elif`; `clause` for `else`, `except`, `finally` and `case`.
        text: its normal form.
        first: its first line in the symbol, from 1.
        own: the last line of its header (or of itself).
        last: its last line.
        column: its indentation in the dedented symbol.
        path: the normal forms of the headers around it.
    """

    kind: str
    text: str
    first: int
    own: int
    last: int
    column: int
    path: tuple[str, ...]


class Listing:
    """The statements of one function, in order."""

    def __init__(self, text: str) -> None:
        self.text = dedent(text)
        self.tree = ast.parse(self.text)
        self.units: list[Unit] = []
        for root in self.tree.body:
            self._block(getattr(root, "body", []), (), first=True)

    def _block(self, body: Sequence[ast.stmt], path: tuple[str, ...], *, first: bool = False) -> None:
        for node in body:
            docstring = first and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            first = False
            if not docstring:
                self._statement(node, path)

    def _statement(self, node: ast.stmt, path: tuple[str, ...], word: str = "") -> None:
        suites = list(_suites(node))
        text = word + _normal(node)
        kind = "elif" if word else type(node).__name__
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(d.lineno for d in decorators)])
        last = node.end_lineno or node.lineno
        own = max(start, _before(suites[0][1]) if suites else last)
        self.units.append(Unit(kind, text, start, own, last, node.col_offset, path))
        for head, body in suites:
            inside = (*path, text) if head is None else (*path, text, head)
            if (
                head == "else"
                and isinstance(node, ast.If)
                and len(body) == 1
                and isinstance(body[0], ast.If)
                and self._elif(body[0])
            ):
                self._statement(body[0], path, "el")
                continue
            if head is not None:
                at = _before(body)
                self.units.append(
                    Unit("clause", head, at, at, body[-1].end_lineno or at, node.col_offset, (*path, text))
                )
            self._block(body, inside)

    def _elif(self, node: ast.If) -> bool:
        return self.text.split("\n")[node.lineno - 1][node.col_offset :].startswith("elif")

    @cached_property
    def counts(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """How often a text stands under the same headers."""
        return Counter((u.text, u.path) for u in self.units)


def dedent(text: str) -> str:
    """A symbol's text at column 0; lines that are left of it (inside strings) stay."""
    lines = text.split("\n")
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return "\n".join(line.removeprefix(indent) for line in lines)


def _suites(node: ast.stmt) -> Iterator[tuple[str | None, list[ast.stmt]]]:
    body = getattr(node, "body", None)
    if isinstance(body, list):
        yield None, body
    for handler in getattr(node, "handlers", ()):
        kind = f" {ast.unparse(handler.type)}" if handler.type else ""
        yield f"except{kind}", handler.body
    for case in getattr(node, "cases", ()):
        yield f"case {ast.unparse(case.pattern)}", case.body
    for name, word in (("orelse", "else"), ("finalbody", "finally")):
        if getattr(node, name, None):
            yield word, getattr(node, name)


def _before(body: Sequence[ast.stmt]) -> int:
    """The line above a block; good enough for headers, which end on the line above or on the block's own line."""
    decorators: list[ast.expr] = getattr(body[0], "decorator_list", [])
    return max(1, min([body[0].lineno, *(d.lineno for d in decorators)]) - 1)


def _normal(node: ast.stmt) -> str:
    """The statement in normal form; a compound one without its blocks."""
    if not any(hasattr(node, name) for name in ("body", "cases")):
        return ast.unparse(node)
    fields: dict[str, Any] = {name: getattr(node, name, None) for name in node._fields}
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        if name in fields:
            fields[name] = []
    if isinstance(node, ast.Try):
        return "try"
    copy = type(node)(**fields)
    return ast.unparse(ast.copy_location(copy, node)).strip()


# ---- the alignment ------------------------------------------------------------------------------------------------


class Alignment:
    """Two listings and git's answer.

    Attributes:
        old: the listing at the base.
        new: the listing at the release.
        there: index of an old unit to index of the new unit it became.
        stretch: index of an old unit that the diff lost to the new indices that stand in its place.
    """

    def __init__(self, old: str, new: str, algorithm: str = "histogram") -> None:
        self.old, self.new = Listing(old), Listing(new)
        self.there: dict[int, int] = {}
        self.stretch: dict[int, range] = {}
        i = j = 0
        for one, count, other, others in _hunks(self.old.units, self.new.units, algorithm):
            while i < one:
                self.there[i] = j
                i, j = i + 1, j + 1
            self.stretch.update(dict.fromkeys(range(one, one + count), range(other, other + others)))
            i, j = one + count, other + others
        while i < len(self.old.units):
            self.there[i] = j
            i, j = i + 1, j + 1
        self.back = {b: a for a, b in self.there.items()}

    def verdict(self, old: int, new: int) -> Verdict:
        """Whether the new unit is what the old one became."""
        if self.there.get(old) == new:
            return "same"
        one, other = self.old.units[old], self.new.units[new]
        if self._unique(one) and (one.text, one.path) == (other.text, other.path):
            return "moved"
        if old in self.there or new in self.back:
            return "elsewhere"
        if new not in self.stretch[old]:
            return "vanished"
        return "rewritten" if self._partners(old, new) else "changed"

    def _partners(self, old: int, new: int) -> bool:
        """Whether two units of one stretch are most like each other, under the same headers."""
        one, other = self.old.units[old], self.new.units[new]
        value = _likeness(one, other)
        ours = [self.old.units[i] for i, there in self.stretch.items() if new in there and i != old]
        theirs = [self.new.units[j] for j in self.stretch[old] if j != new]
        rivals = [_likeness(u, other) for u in ours] + [_likeness(one, u) for u in theirs]
        return value >= _ALIKE and one.path == other.path and all(value > r for r in rivals)

    def _unique(self, unit: Unit) -> bool:
        key = (unit.text, unit.path)
        return self.old.counts[key] == self.new.counts[key] == 1


def _likeness(one: Unit, other: Unit) -> float:
    return SequenceMatcher(None, one.text, other.text, autojunk=False).ratio() if one.kind == other.kind else 0.0


def _hunks(old: Sequence[Unit], new: Sequence[Unit], algorithm: str) -> Iterator[tuple[int, int, int, int]]:
    """Changed stretches: first old unit, how many, first new unit, how many; from 0."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment = {**kept, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    with tempfile.TemporaryDirectory(prefix="afd-patchkit-proof-") as folder:
        for name, units in (("old", old), ("new", new)):
            (Path(folder) / name).write_text("".join(f"{u.text!r}\n" for u in units), encoding="utf-8")
        command = [
            "git",
            "diff",
            "--no-index",
            "--no-color",
            "--no-ext-diff",
            f"--diff-algorithm={algorithm}",
            "-U0",
            "old",
            "new",
        ]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(done.stderr.decode("utf-8", "replace"))
    for line in done.stdout.decode().split("\n"):
        found = _HUNK.match(line)
        if found:
            one, count, other, others = (1 if n is None else int(n) for n in found.groups())
            yield (one - 1 if count else one), count, (other - 1 if others else other), others


# ---- the place ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """What the fences of one delta say.

    Attributes:
        first: the first upstream line (of the symbol, from 1) that they hold; for an insertion the line it stands before.
        stop: the line behind the last one.
        column: indentation of the first line of code inside.
    """

    first: int
    stop: int
    column: int


def region(generated: str, new: str, marker: str) -> Region | None:
    """Where the fences stand among upstream's lines; None when the lines outside do not add up to upstream's."""
    lines = generated.rstrip("\n").split("\n")
    upstream = list(enumerate(dedent(new.rstrip("\n")).split("\n"), 1))
    if _STATIC not in map(str.strip, lines):  # a static method is a plain function outside its class
        upstream = [(n, line) for n, line in upstream if line.strip() != _STATIC]
    starts = [n for n, line in enumerate(lines) if line.strip().startswith(f"# {marker} START: ")]
    ends = [n for n, line in enumerate(lines) if line.strip().startswith(f"# {marker} END: ")]
    if not starts or not ends:
        return None
    before, after = starts[0], len(lines) - 1 - ends[-1]
    if before + after > len(upstream):
        return None
    above, below = upstream[:before], upstream[len(upstream) - after :]
    if not _alike(lines[:before], above) or not _alike(lines[ends[-1] + 1 :], below):
        return None
    code = [line for line in lines[starts[0] + 1 : ends[-1]] if line.strip() and not line.strip().startswith("#")]
    column = len(code[0]) - len(code[0].lstrip()) if code else len(lines[starts[0]]) - len(lines[starts[0]].lstrip())
    held = upstream[before : len(upstream) - after]
    end = below[0][0] if below else upstream[-1][0] + 1
    return Region(held[0][0] if held else end, end, column)


_STATIC = "@staticmethod"
_QUALIFIED = re.compile(r"\b_vllm_\w+\.")
_FEW = 3


def _alike(ours: Sequence[str], theirs: Sequence[tuple[int, str]]) -> bool:
    """Equal lines, but for declared changes of names: `module.name` for `name` (no `global` then), and few others."""

    def same(one: str, other: str) -> bool:
        plain = _QUALIFIED.sub("", one).strip()
        return plain == other.strip() or (plain == "pass" and other.strip().startswith("global "))

    return sum(not same(a, b) for a, (_, b) in zip(ours, theirs, strict=True)) <= _FEW


def at(listing: Listing, where: Region, place: str, kind: str) -> int | None:
    """The unit that a delta stands at.

    Args:
        listing: the new text.
        where: its fences.
        place: how it stands to the unit: `before`, `behind`, `inside`, `clause`.
        kind: node type of the unit that it stood at.
    """
    units = [(n, u) for n, u in enumerate(listing.units) if u.kind != "clause"]
    if place == "inside":
        inside = [(u.first, n) for n, u in units if u.first <= where.first <= u.own]
        return max(inside, default=(0, None))[1]
    units = [(n, u) for n, u in units if u.kind != "elif"]
    if place == "before":
        below = [(u.first, u.column, n) for n, u in units if u.first >= where.first]
        return min(below, default=(0, 0, None))[2]
    if place == "behind":
        above = [(u.last, u.column == where.column, u.kind == kind, n) for n, u in units if u.last < where.stop]
        return max(above, default=(0, False, False, None))[3]
    added = where.first == where.stop  # a clause in front of a line is no clause of what starts on that line
    around = [
        (u.first, n)
        for n, u in units
        if u.kind == kind and u.column == where.column and u.first + added <= where.first <= u.last + added
    ]
    return max(around, default=(0, None))[1]


def judge(
    alignment: Alignment, old: int, generated: str, new: str, place: str, kind: str, marker: str
) -> tuple[Verdict, int | None]:
    """Whether a delta that was at unit `old` stands where that unit went; with the unit it stands at.

    Args:
        alignment: which unit of the old function became which of the new one.
        old: number of the unit that the delta was at.
        generated: the new function with the delta.
        new: the new function without it.
        place: how the delta stands to the unit: `before`, `behind`, `inside`, `clause`.
        kind: kind of the unit.
        marker: what fences begin with.
    """
    where = region(generated, new, marker)
    now = at(alignment.new, where, place, kind) if where is not None else None
    if now is None:
        return "unreadable", None
    return alignment.verdict(old, now), now
