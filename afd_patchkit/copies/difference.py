"""What differs between two canonical functions: statements kept, added, dropped and replaced, block by block."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from rapidfuzz.distance import Indel

from afd_patchkit.copies.canonical import Canonical, key, origin
from afd_patchkit.source.syntax import CLAUSE, Block, binding, blocks, own_parts
from afd_patchkit.source.text import Span
from afd_patchkit.upgrade.align import Statement, in_order, similarity

Sort = Literal["insert", "remove", "replace", "statement", "head", "clauses"]


@dataclass(frozen=True, eq=False)
class HandBlock:
    """A block of upstream's function.

    Attributes:
        owner: the statement or clause whose block it is; the function itself.
        name: which of its blocks, as `blocks` names it.
        body: its canonical statements.
    """

    owner: ast.AST
    name: str
    body: Sequence[ast.stmt]


@dataclass(frozen=True, eq=False)
class Contrast:
    """One difference.

    Attributes:
        sort: `insert`, `remove`, `replace` of whole statements; `statement`: one simple statement became another; `head`:
            the head of a compound one changed; `clauses`: its clauses are others.
        base: upstream's statements; one for `statement`, `head` and `clauses`, none for `insert`.
        wanted: the hand copy's.
        suite: upstream's block.
        at: index in the block: of the first of `base`, or of the statement in front of which something is inserted.
        around: the hand copy's statements before and behind, in its block; None at its ends.
    """

    sort: Sort
    base: tuple[ast.stmt, ...]
    wanted: tuple[ast.stmt, ...]
    suite: HandBlock
    at: int
    around: tuple[ast.stmt | None, ast.stmt | None] = (None, None)

    @property
    def lines(self) -> tuple[int, int]:
        """The first and last line in the hand copy; of a removal the lines between its neighbours."""
        if self.wanted:
            parts = [origin(n) for n in self.wanted]
            if self.sort in ("head", "clauses"):
                first, last = first_line(parts[0]), head_end(parts[0])
                return first, last
            return first_line(parts[0]), last_line(parts[-1])
        before, behind = self.around
        start = last_line(origin(before)) + 1 if before is not None else 0
        end = first_line(origin(behind)) - 1 if behind is not None else 0
        return (start or end, end or start)


def first_line(node: ast.AST) -> int:
    """The first line of a statement, decorators included."""
    line: int = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    return line


def last_line(node: ast.AST) -> int:
    """The last line of a statement."""
    end: int = node.end_lineno or node.lineno  # type: ignore[attr-defined]
    return end


def head_end(node: ast.AST) -> int:
    """The last line of a compound statement's head."""
    first = next((block.body[0] for block in blocks(node)), None)
    if first is None:
        return last_line(node)
    heads = [
        c for c in ast.iter_child_nodes(node) if not isinstance(c, (ast.stmt, *CLAUSE)) and hasattr(c, "end_lineno")
    ]
    return max([first_line(node), *(last_line(h) for h in heads if last_line(h) < first_line(first))])


def compare(base: Canonical, wanted: Canonical) -> list[Contrast]:
    """The differences between two bodies, in order; parameters and decorators are compared elsewhere."""
    return list(_suites(HandBlock(base.node, "body", base.node.body), wanted.node.body))


def compare_runs(base: Sequence[ast.stmt], wanted: Sequence[ast.stmt], suite: HandBlock, at: int) -> list[Contrast]:
    """The differences between a run of upstream's statements and what they became.

    Args:
        base: upstream's canonical statements, siblings.
        wanted: what they became.
        suite: upstream's block.
        at: index of the first of them in the block.
    """
    return list(_suites(suite, wanted, at, at + len(base)))


def _suites(
    suite: HandBlock, wanted: Sequence[ast.stmt], start: int = 0, stop: int | None = None
) -> Iterator[Contrast]:
    stop = len(suite.body) if stop is None else stop
    ours = [_node(s) for s in suite.body[start:stop]]
    theirs = [_node(s) for s in wanted]
    _no_wrappers(ours, theirs)
    index = {id(s): n for n, s in enumerate(ours)}
    other = {id(s): n for n, s in enumerate(theirs)}
    pairs = sorted(in_order(ours, theirs, _likeness), key=lambda p: index[id(p[0])])
    at = to = 0
    for one, two in [*pairs, (None, None)]:
        i, j = (index[id(one)], other[id(two)]) if one is not None and two is not None else (len(ours), len(theirs))
        if i > at or j > to:
            gone, new = tuple(suite.body[start + at : start + i]), tuple(wanted[to:j])
            sort: Sort = "replace" if gone and new else "remove" if gone else "insert"
            around = (wanted[to - 1] if to else None, wanted[j] if j < len(wanted) else None)
            yield Contrast(sort, gone, new, suite, start + at, around)
        if one is not None and two is not None:
            if one.digest != two.digest:
                yield from _statement(one.node, two.node, suite, start + i)
            at, to = i + 1, j + 1


def _statement(base: ast.stmt, wanted: ast.stmt, suite: HandBlock, at: int) -> Iterator[Contrast]:
    ours, theirs = list(blocks(base)), list(blocks(wanted))
    if not ours and not theirs:
        yield Contrast("statement", (base,), (wanted,), suite, at)
        return
    if heads(base) != heads(wanted):
        yield Contrast("head", (base,), (wanted,), suite, at)
    if [_clause(b) for b in ours] != [_clause(b) for b in theirs]:
        yield Contrast("clauses", (base,), (wanted,), suite, at)
        return
    for one, two in zip(ours, theirs, strict=True):
        yield from _suites(HandBlock(one.owner, one.name, one.body), two.body)


def heads(node: ast.stmt) -> list[str]:
    """What stands in the head of a compound statement."""
    return [key(c) for c in ast.iter_child_nodes(node) if not isinstance(c, (ast.stmt, *CLAUSE))] + (
        [node.name] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else []
    )


def _clause(block: Block) -> tuple[str, str]:
    owner = block.owner
    if not isinstance(owner, CLAUSE):
        return block.name, ""
    bound = binding(owner)
    return block.name, " ".join([*map(key, own_parts(owner)), bound[0] if bound else ""])


# ---- inside a statement ---------------------------------------------------------------------------------------------

Node = ast.AST


@dataclass(frozen=True, eq=False)
class Spot:
    """One place inside a statement where upstream and hand copy differ.

    Attributes:
        base: upstream's node; None for what the hand copy adds to a list.
        wanted: the hand copy's; None for what it drops.
        parents: upstream's and the hand copy's node directly around them.
        field: the field of these in which they stand.
    """

    base: ast.AST | None
    wanted: ast.AST | None
    parents: tuple[ast.AST, ast.AST]
    field: str

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of the hand copy; of what is dropped, those of what is around it."""
        node = origin(self.wanted if self.wanted is not None else self.parents[1])
        while not hasattr(node, "lineno"):
            inner = next((c for c in ast.iter_child_nodes(node) if hasattr(c, "lineno")), None)
            if inner is None:
                node = origin(self.parents[1])
                break
            node = inner
        return (first_line(node), last_line(node)) if hasattr(node, "lineno") else (0, 0)


def spots(base: ast.AST, wanted: ast.AST) -> list[Spot]:
    """The smallest places where two expressions, heads or simple statements differ; blocks and clauses are not entered."""
    return list(_spots(base, wanted))


def _spots(base: ast.AST, wanted: ast.AST) -> Iterator[Spot]:
    for name in base._fields:
        one, two = getattr(base, name, None), getattr(wanted, name, None)
        if name in ("ctx", "kind", "type_comment"):
            continue
        if isinstance(one, list) and isinstance(two, list):
            if (one or two) and not isinstance((one or two)[0], (ast.stmt, *CLAUSE)):
                yield from _lists(one, two, (base, wanted), name)
        elif isinstance(one, ast.AST) and isinstance(two, ast.AST):
            if key(one) == key(two):
                continue
            if type(one) is type(two) and not _ends(one, two):
                yield from _spots(one, two)
            else:
                yield Spot(one, two, (base, wanted), name)
        elif one != two or type(one) is not type(two):
            yield Spot(
                one if isinstance(one, ast.AST) else base,
                two if isinstance(two, ast.AST) else wanted,
                (base, wanted),
                name,
            )


def _ends(one: ast.AST, two: ast.AST) -> bool:
    """Whether two nodes of a kind differ in themselves, not in what stands in them."""
    if isinstance(one, (ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.cmpop)):
        return True
    if isinstance(one, ast.BoolOp):
        return not isinstance(one.op, type(two.op))  # type: ignore[attr-defined]
    if isinstance(one, ast.Attribute):
        return bool(one.attr != two.attr)  # type: ignore[attr-defined]
    return False


def _lists(one: Sequence[object], two: Sequence[object], parents: tuple[ast.AST, ast.AST], name: str) -> Iterator[Spot]:
    keys = [key(n) if isinstance(n, ast.AST) else repr(n) for n in one]
    others = [key(n) if isinstance(n, ast.AST) else repr(n) for n in two]
    if keys == others:
        return
    mine = {n.arg: n for n in one if isinstance(n, (ast.keyword, ast.arg)) and n.arg}
    if mine and len(mine) == len(one):  # by name, whatever their order
        theirs = {n.arg: n for n in two if isinstance(n, (ast.keyword, ast.arg))}
        for word in dict.fromkeys([*mine, *theirs]):
            ours, other = mine.get(word or ""), theirs.get(word)
            if ours is None or other is None:
                yield Spot(ours, other, parents, name)
            elif key(ours) != key(other):
                yield from _spots(ours, other)
        return
    start = 0
    while start < min(len(keys), len(others)) and keys[start] == others[start]:
        start += 1
    end = 0
    while end < min(len(keys), len(others)) - start and keys[-1 - end] == others[-1 - end]:
        end += 1
    for a, b in zip_longest(one[start : len(one) - end], two[start : len(two) - end]):
        if isinstance(a, ast.AST) and isinstance(b, ast.AST) and type(a) is type(b) and not _ends(a, b):
            yield from _spots(a, b)
        elif isinstance(a, ast.AST) or isinstance(b, ast.AST):
            yield Spot(a, b, parents, name)  # type: ignore[arg-type]


# ---- likeness -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Node(Statement):
    """A canonical statement, as the alignment of an upgrade wants it."""

    inner: Counter[str] = field(default_factory=Counter)
    wraps: bool = False


def _node(node: ast.stmt, parent: Statement | None = None) -> _Node:
    found = _Node(node, Span(node.lineno, node.end_lineno or node.lineno), key(node), _words(node), parent)
    found.suites = [(block.name, [_node(child, found) for child in block.body]) for block in blocks(node)]
    return found


def _words(node: ast.stmt) -> tuple[str, ...]:
    found: list[str] = [type(node).__name__]
    stack: list[ast.AST] = [node]
    while stack:
        here = stack.pop()
        for name in here._fields:
            value = getattr(here, name, None)
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, (ast.stmt, *CLAUSE)):
                    continue
                if isinstance(item, ast.expr_context):
                    continue
                if isinstance(item, ast.AST):
                    if not isinstance(item, (ast.Name, ast.Constant, ast.Attribute)):
                        found.append(type(item).__name__)
                    stack.append(item)
                elif item is not None:
                    found.append(str(item))
    return tuple(found)


def _likeness(one: Statement, other: Statement) -> float:
    """As for an upgrade, but that the head of a block counts for more: what a person changes is mostly inside."""
    found = similarity(one, other)
    if found < 1.0 and one.suites and other.suites and type(one.node) is type(other.node):
        own = Indel.normalized_similarity(one.words, other.words)
        return max(found, _HEAD * own)
    return found


_HEAD = 0.6


def _no_wrappers(ours: Sequence[_Node], theirs: Sequence[_Node]) -> None:
    """A new block around statements of this one is no changed form of any of them: it is given a kind of its own."""
    kept = {s.digest for s in theirs}
    moved = {s.digest for s in ours if s.digest not in kept and _weight(s) >= _LEAST_WEIGHT}
    mine = {s.digest for s in ours}
    inner = Counter(c.digest for s in ours for c in s.below())
    for statement in theirs:
        if statement.suites and statement.digest not in mine:
            held = {c.digest for c in statement.below()} & moved
            if any(not inner[digest] for digest in held):
                statement.words = ("wrapper",)
                statement.suites = []


_LEAST_WEIGHT = 4


def _weight(statement: Statement) -> int:
    return len(statement.words) + sum(len(c.words) for c in statement.below())
