"""Which statement of the old text is which statement of the new one."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Indel

from afd_patchkit.delta.context import digest_of
from afd_patchkit.delta.place import Place
from afd_patchkit.digests import short
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.syntax import blocks
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import significant, tokens_in

_LEAST = 0.5
_TABLE = 40_000  # cells of one table; beyond, only equal statements anchor it


@dataclass(eq=False)
class Statement:
    """One statement of a symbol.

    Attributes:
        node: its tree.
        span: its bytes.
        digest: digest of all of it, by its tokens.
        words: its own tokens (of its header, if it is compound).
        parent: the statement around it; None for the symbol's own.
        suites: its blocks, by what they are.
    """

    node: ast.stmt
    span: Span
    digest: str
    words: tuple[str, ...]
    parent: Statement | None
    suites: list[tuple[str, list[Statement]]] = field(default_factory=list)

    def below(self) -> Iterator[Statement]:
        """The statements inside it, at any depth."""
        for _, suite in self.suites:
            for statement in suite:
                yield statement
                yield from statement.below()


class Tree:
    """The statements of one symbol; `by_id` finds one by its node."""

    def __init__(self, symbol: Symbol) -> None:
        self.symbol, self.place = symbol, Place(symbol.file)
        self.by_id: dict[int, Statement] = {}
        self.roots = [self._build(node, None) for node in symbol.nodes]

    def _build(self, node: ast.stmt, parent: Statement | None) -> Statement:
        file = self.symbol.file
        span = Span(self.place.start(node), file.node_span(node).end)
        suites = [(block.name, block.body) for block in blocks(node)]
        own = Span(span.start, self.place.start(suites[0][1][0])) if suites else span
        words = tuple(t.text for t in significant(tokens_in(file, own)))
        found = Statement(node, span, "", words, parent)
        found.suites = [(name, [self._build(child, found) for child in suite]) for name, suite in suites]
        found.digest = self._digest(found)
        self.by_id[id(node)] = found
        return found

    def _digest(self, statement: Statement) -> str:
        """By the digests of the statements in it, and of what stands between them: a long `elif` chain is read once."""
        children = sorted((s for _, suite in statement.suites for s in suite), key=lambda s: s.span.start)
        edges = [statement.span.start, *(at for c in children for at in (c.span.start, c.span.end)), statement.span.end]
        between = [digest_of(self.symbol.file, Span(a, b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        return between[0] if not children else short(" ".join([*between, *(c.digest for c in children)]))

    @property
    def file(self) -> SourceFile:
        """The upstream file that the symbol is in."""
        return self.symbol.file


@dataclass(frozen=True)
class Alignment:
    """Pairs of statements; `confidence` by the old statement's node id."""

    base: Tree
    new: Tree
    pairs: dict[int, Statement]
    confidence: dict[int, float]

    def find(self, node: ast.AST) -> Statement | None:
        """The new statement that the old `node` became."""
        return self.pairs.get(id(node))

    def both(self) -> Iterator[tuple[Statement, Statement]]:
        """Each old statement that is still there, with what it became."""
        for key, new in self.pairs.items():
            yield self.base.by_id[key], new

    def unmatched(self) -> list[Statement]:
        """New statements that no old one became, outermost only, in order."""
        taken = {id(s.node) for s in self.pairs.values()}
        found: list[Statement] = []

        def walk(statement: Statement) -> None:
            for _, suite in statement.suites:
                for child in suite:
                    if id(child.node) in taken:
                        walk(child)
                    elif not any(id(s.node) in taken for s in child.below()):
                        found.append(child)
                    else:  # a new block around old statements
                        found.append(Statement(child.node, child.span, child.digest, child.words, child.parent))
                        walk(child)

        for root in self.new.roots:
            walk(root)
        return found


def align(base: Symbol, new: Symbol) -> Alignment:
    """Align two versions of a symbol: within aligned blocks first, then what moved to other blocks."""
    return _Aligner(Tree(base), Tree(new)).run()


def similarity(one: Statement, other: Statement) -> float:
    """How alike two statements are, 0 to 1; statements of different kinds are not alike."""
    if one.digest == other.digest:
        return 1.0
    if type(one.node) is not type(other.node):
        return 0.0
    own = Indel.normalized_similarity(one.words, other.words)
    if not one.suites and not other.suites:
        return own
    ours, theirs = Counter(s.digest for s in one.below()), Counter(s.digest for s in other.below())
    total = sum(ours.values()) + sum(theirs.values())
    inner = 2 * sum((ours & theirs).values()) / total if total else 1.0
    return 0.5 * own + 0.5 * inner


class _Aligner:
    def __init__(self, base: Tree, new: Tree) -> None:
        self.base, self.new = base, new
        self.pairs: dict[int, Statement] = {}
        self.taken: set[int] = set()
        self.confidence: dict[int, float] = {}

    def run(self) -> Alignment:
        if not self.base.symbol.qualname:  # modules are blocks themselves
            self._suite(self.base.roots, self.new.roots)
        else:
            for one, other in zip(reversed(self.base.roots), reversed(self.new.roots), strict=False):
                self._pair(one, other)
                self._blocks(one, other)
        self._moved()
        self._beside_moved()
        self._alike()
        return Alignment(self.base, self.new, self.pairs, self.confidence)

    def _pair(self, one: Statement, other: Statement) -> None:
        self.pairs[id(one.node)] = other
        self.taken.add(id(other.node))
        self.confidence[id(one.node)] = similarity(one, other)

    def _whole(self, one: Statement, other: Statement) -> None:
        """Pair two equal statements with all that is inside."""
        self._pair(one, other)
        for (_, ours), (_, theirs) in zip(one.suites, other.suites, strict=False):
            for a, b in zip(ours, theirs, strict=False):
                self._whole(a, b)

    def _blocks(self, one: Statement, other: Statement) -> None:
        theirs = dict(other.suites)
        for name, suite in one.suites:
            if name in theirs:
                self._suite(suite, theirs[name])

    def _suite(self, ours: Sequence[Statement], theirs: Sequence[Statement]) -> None:
        ours = [s for s in ours if id(s.node) not in self.pairs]
        theirs = [s for s in theirs if id(s.node) not in self.taken]
        for one, other in in_order(ours, theirs):
            if one.digest == other.digest:
                self._whole(one, other)
            else:
                self._pair(one, other)
                self._blocks(one, other)

    def _left(self, tree: Tree, used: dict[int, Statement] | set[int]) -> list[Statement]:
        return [s for s in tree.by_id.values() if id(s.node) not in used and s.parent is not None]

    def _moved(self) -> None:
        """Equal statements that are unique among what is left, largest first."""
        ours, theirs = self._left(self.base, self.pairs), self._left(self.new, self.taken)
        count, other_count = Counter(s.digest for s in ours), Counter(s.digest for s in theirs)
        there = {s.digest: s for s in theirs}
        for one in sorted(ours, key=lambda s: (-len(s.span), s.span.start)):
            if count[one.digest] == other_count[one.digest] == 1 and id(one.node) not in self.pairs:
                other = there[one.digest]
                if id(other.node) not in self.taken:
                    self._whole(one, other)

    def _beside_moved(self) -> None:
        """What is left of a block, against what is left of the blocks that its neighbours moved to."""
        for statement in list(self.base.by_id.values()):
            for _, suite in statement.suites:
                left = [s for s in suite if id(s.node) not in self.pairs]
                if not left:
                    continue
                homes = Counter(
                    id(home.parent) for s in suite if (home := self.pairs.get(id(s.node))) and home.parent is not None
                )
                for parent_id, _ in homes.most_common():
                    parent = next(s for s in self.new.by_id.values() if id(s) == parent_id)
                    for _, block in parent.suites:
                        self._suite(left, block)

    def _alike(self) -> None:
        """Statements left over whose best likeness is clear."""
        for one in self._left(self.base, self.pairs):
            if id(one.node) in self.pairs:
                continue
            scores = sorted(
                ((similarity(one, other), -other.span.start, other) for other in self._left(self.new, self.taken)),
                key=lambda s: s[:2],
                reverse=True,
            )
            if scores and scores[0][0] >= 0.7 and (len(scores) < 2 or scores[1][0] < scores[0][0] - 0.1):
                self._pair(one, scores[0][2])
                self._blocks(one, scores[0][2])


def in_order(
    ours: Sequence[Statement],
    theirs: Sequence[Statement],
    likeness: Callable[[Statement, Statement], float] = similarity,
) -> list[tuple[Statement, Statement]]:
    """The in-order pairing of two blocks with the greatest likeness; what is not alike has no partner."""
    start = 0
    while start < min(len(ours), len(theirs)) and ours[start].digest == theirs[start].digest:
        start += 1
    end = 0
    while end < min(len(ours), len(theirs)) - start and ours[-1 - end].digest == theirs[-1 - end].digest:
        end += 1
    found = list(zip(ours[:start], theirs[:start], strict=True))
    found += list(zip(ours[len(ours) - end :], theirs[len(theirs) - end :], strict=True))
    a, b = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    exact_only = len(a) * len(b) > _TABLE
    rows = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    values: dict[tuple[int, int], float] = {}
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            if exact_only:
                value = 1.0 if a[i].digest == b[j].digest else 0.0
            else:
                value = likeness(a[i], b[j])
            if a[i].digest == b[j].digest:
                value += 0.5  # an equal statement is worth more than two halves
            values[i, j] = value if value >= _LEAST else -1.0
            take = values[i, j] + rows[i + 1][j + 1] if values[i, j] > 0 else -1.0
            rows[i][j] = max(rows[i + 1][j], rows[i][j + 1], take)
    i = j = 0
    while i < len(a) and j < len(b):
        value = values[i, j]
        if value > 0 and rows[i][j] == value + rows[i + 1][j + 1]:
            found.append((a[i], b[j]))
            i, j = i + 1, j + 1
        elif rows[i][j] == rows[i + 1][j]:
            i += 1
        else:
            j += 1
    return found
