"""Collects the edits of one entry while its deltas are worked through."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.comma import CommaList
from afd_patchkit.delta.edits import STATEMENT, Edit, Keep, Piece
from afd_patchkit.delta.place import Place, Suite, width
from afd_patchkit.delta.template import UPSTREAM, expression_pieces, new_tree, text_of
from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Code, Delta, Pattern, Range, Take
from afd_patchkit.patterns.select import Match, Window, compile_pattern, find_ranges, select
from afd_patchkit.source.locate import Node, Symbol, which_accessor
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import tokens_in

_SWAPS = 30
"""Deltas that may change one and the same expression; each is proved around all the others."""


@dataclass
class Parameters:
    """Changes of one parameter list.

    Attributes:
        items: the list.
        names: the names of its items; `*` and `/` are named so.
        removed: index of each item that goes, and the delta that removes it.
        added: where items are added: the index they go before, and whether keyword-only.
    """

    items: CommaList
    names: list[str]
    removed: dict[int, Delta] = field(default_factory=dict)
    added: list[tuple[int, bool]] = field(default_factory=list)


@dataclass
class Builder:
    """Collects the edits of one entry.

    Attributes:
        symbol: the pristine symbol.
        entry: `module.py::name`, for findings.
        taker: renders the text of a `take:`.
        edits: what has been built so far.
        matches: per delta name, the anchors found (for the lock).
        rebind: names the deltas declare to mean something else.
        rebound: the deltas that do so, by name.
        parents: ids of the wrapping edits whose nested deltas are being built, outermost first.
        windows: where the patterns of nested deltas are searched; None for the whole symbol.
        clauses: `else` and `finally` that deltas add, by the statement's offset, and the delta's name.
        parameters: what deltas do to the parameter list of each of the symbol's functions, by its place, for `finish`.
        displays: what deltas do to tuples, lists and sets, by their offset, for `finish`.
    """

    symbol: Symbol
    entry: str
    taker: Callable[[Take], Buffer] | None = None
    edits: list[Edit] = field(default_factory=list)
    matches: dict[str, list[Match]] = field(default_factory=dict)
    rebind: dict[str, Code] = field(default_factory=dict)
    rebound: dict[str, str] = field(default_factory=dict)
    parents: list[int] = field(default_factory=list)
    windows: Sequence[Window] | None = None
    parameters: dict[int, Parameters] = field(default_factory=dict)
    displays: dict[int, object] = field(default_factory=dict)
    clauses: dict[tuple[int, str], str] = field(default_factory=dict)
    _broken: set[int] = field(default_factory=set)
    _inline: dict[int, list[int]] = field(default_factory=dict)
    _removed: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    _commented: dict[int, set[int]] = field(default_factory=dict)
    _owned: dict[int, int] = field(default_factory=dict)
    _swaps: dict[Span, list[tuple[int, Code]]] = field(default_factory=dict)
    _added: dict[int, list[tuple[Edit, str, bool]]] = field(default_factory=dict)
    _dropped: dict[int, dict[int, int]] = field(default_factory=dict)

    @property
    def file(self) -> SourceFile:
        """The upstream file that the symbol is in."""
        return self.symbol.file

    @property
    def place(self) -> Place:
        """Statement arithmetic on that file, kept inside the symbol."""
        return Place(self.symbol.file, self.symbol.line_ranges)

    def definition(self, delta: Delta) -> Node:
        """The statement of the symbol that a delta means: its implementation, of a property the accessor that is named.

        Raises:
            DeltaError: the property has several, and nobody says which (PK226).
        """
        known = self.symbol.accessors
        named = delta.accessor or self.symbol.accessor
        if named is not None and named not in (known or ("getter",)):
            raise DeltaError(self._accessors(f"has no {named}", delta))
        if named is None and len(known) > 1:
            raise DeltaError(self._accessors(f"has {len(known)} accessors", delta))
        return known[named] if named is not None and known else self.symbol.node

    def _accessors(self, why: str, delta: Delta) -> Finding:
        return which_accessor(self.symbol, why).at(entry=self.entry, delta=delta.name, manifest=delta.where)

    def add(
        self,
        delta: Delta,
        span: Span,
        pieces: Sequence[Piece],
        *,
        touched: Span | None = None,
        order: tuple[int, int] = (0, 0),
        indent: str | None = None,
        part: bool = False,
        group: int | None = None,
    ) -> Edit:
        """Record an edit of `delta`; `indent` is that of the statements it replaces or adds.

        Args:
            delta: whose edit it is.
            span: bytes of the symbol that it replaces; empty for an insertion.
            pieces: what stands there afterwards.
            touched: bytes whose meaning the edit depends on, for the lock; `span` by default.
            order: at one insertion point, smaller ones come first, then manifest order.
            indent: indentation of the statements that it replaces or adds; None inside a statement.
            part: it belongs to the statement at whose edge it is inserted, not beside it.
            group: number that edits of the delta share which must stand in one fence; None for all others.
        """
        edit = Edit(
            id=len(self.edits),
            span=span,
            pieces=tuple(pieces),
            delta=delta.name,
            operation=delta.operation,
            order=order,
            width=None if indent is None else width(indent),
            part=part,
            group=group,
            parent=self.parents[-1] if self.parents else None,
            touched=touched,
            where=delta.where,
        )
        self.edits.append(edit)
        return edit

    # ---- finding the place ------------------------------------------------------------------------------------------

    def select(self, delta: Delta, code: Code, kind: str = "statements") -> list[Match]:
        """The matches of a pattern of `delta`, narrowed and counted as it says."""
        return self._found(select, compile_pattern(code, "expression" if kind == "expression" else "statements"), delta)

    def statements(self, delta: Delta, pattern: Pattern) -> list[Match]:
        """Matches of a statement pattern or range."""
        return self._found(find_ranges, pattern, delta) if isinstance(pattern, Range) else self.select(delta, pattern)

    def _found(self, find: Callable[..., list[Match]], wanted: object, delta: Delta) -> list[Match]:
        found = find(
            wanted,
            self.symbol,
            within=delta.within,
            next_to=delta.next_to,
            nth=delta.nth,
            count=delta.count,
            entry=self.entry,
            delta=delta.name,
            windows=self.windows,
        )
        self.matches.setdefault(delta.name, []).extend(found)
        return found

    def fail(
        self,
        code: str,
        message: str,
        delta: Delta,
        *,
        help: str | None = None,
        at: int | None = None,
        details: tuple[str, ...] = (),
    ) -> DeltaError:
        """A `DeltaError` at this delta.

        Args:
            code: the finding's code.
            message: what is wrong.
            delta: where in the manifest.
            help: what to do.
            at: byte of the upstream file; None for the symbol's beginning.
            details: further lines.
        """
        return DeltaError(
            finding(
                code,
                message,
                entry=self.entry,
                delta=delta.name,
                manifest=delta.where,
                upstream=self.symbol.position if at is None else self.file.position(at),
                help=help,
                details=details,
            )
        )

    # ---- lines ------------------------------------------------------------------------------------------------------

    def alone(self, suite: Suite, index: int) -> bool:
        """Whether statement `index` stands at the start of a line, upstream or by what has been built."""
        gap = suite.gap(index)
        return gap is None or suite.own_line(index) or gap.start in self._broken

    def break_lines(self, delta: Delta, suite: Suite, *indices: int) -> None:
        """Give statements lines of their own; all statements of a suite that stands on its header's line.

        One edit for each gap between statements, so that the statements themselves stay untouched.
        """
        group = suite.opening if suite.inline else None
        for index in range(len(suite.body)) if suite.inline else indices:
            gap = suite.gap(index) if index < len(suite.body) else None
            if gap is not None and not self.alone(suite, index):
                self._broken.add(gap.start)
                line = "\n" + suite.indent
                for number in self._inline.get(gap.start, ()):  # what was put on this line gets lines of its own, too
                    one = self.edits[number]
                    pieces = tuple(line if piece == "; " else piece for piece in one.pieces)
                    self.edits[number] = replace(one, pieces=pieces, width=width(suite.indent))
                self.add(delta, gap, [line], touched=gap, group=group)
        self._lay_out_removals(suite)

    def put_before(
        self, delta: Delta, suite: Suite, index: int, pieces: Sequence[Piece], touched: Span, *, gap: str = "\n"
    ) -> None:
        """Add code before a statement that starts a line, above its comments; `gap` are the line ends between them.

        Args:
            delta: whose code it is.
            suite: the block.
            index: the statement of the block that it goes before.
            pieces: the code.
            touched: bytes whose meaning it depends on, for the lock.
            gap: the line ends between code and statement.
        """
        start = self.place.start(suite.body[index])
        point = self.kept(suite.before(index), start) if suite.own_line(index) else start
        line = self.place.line_start(point)
        if b"\f" in self.file.data[line:point] and self.kept(line, point) == line:  # it stays with its own line
            self.add(delta, Span(line, line), [suite.indent, *pieces, gap], touched=touched, indent=suite.indent)
        else:
            self.add(delta, Span(point, point), [*pieces, gap + suite.indent], touched=touched, indent=suite.indent)

    def add_inline(
        self, delta: Delta, suite: Suite, gap: int, point: int, pieces: Sequence[Piece], touched: Span
    ) -> None:
        """Put code between statements `gap - 1` and `gap`, which share a line; `pieces` hold the separator.

        Args:
            delta: whose code it is.
            suite: the block.
            gap: number of the statement behind it.
            point: the byte that it goes before.
            pieces: the code with its separator.
            touched: bytes whose meaning it depends on, for the lock.
        """
        found = suite.gap(gap)
        assert found is not None
        order = (-width(suite.indent), STATEMENT) if pieces[0] == "; " else (0, 0)
        edit = self.add(delta, Span(point, point), pieces, touched=touched, order=order)
        self._inline.setdefault(found.start, []).append(edit.id)

    def kept(self, point: int, otherwise: int) -> int:
        """`point`, or `otherwise` when only that lies in what the wrapping delta keeps."""
        if not self.parents:
            return point
        keeps = [p.span for p in self.edits[self.parents[-1]].pieces if isinstance(p, Keep)]
        here, there = Span(point, point), Span(otherwise, otherwise)
        fits = any(k.contains(here) for k in keeps) or not any(k.contains(there) for k in keeps)
        return point if fits else otherwise

    # ---- removal ----------------------------------------------------------------------------------------------------

    def owned(self, delta: Delta, suite: Suite, index: int) -> int:
        """Offset from which statement `index` goes: the comments that stand directly over it go along, unless `delta` keeps them."""
        start = self.place.start(suite.body[index])
        if delta.comments == "keep" or not suite.own_line(index):
            return start
        return self.kept(suite.before(index), start)

    def remove(self, delta: Delta, suite: Suite, first: int, last: int) -> None:
        """Take statements `first` to `last` out; a suite that several deltas empty gets one `pass`.

        Args:
            delta: who takes them out.
            suite: the block.
            first: number of the first statement in the block.
            last: number of the last one, which goes too.
        """
        region = suite.region(first, last)
        edit = self.add(delta, region, (), touched=region, indent=suite.indent)
        self._owned[edit.id] = self.owned(delta, suite, first)
        self._removed.setdefault(id(suite.body), []).append((first, last, edit.id))
        self._lay_out_removals(suite)

    def _lay_out_removals(self, suite: Suite) -> None:
        """Say for each removal what goes with it: on a line that others share, one separator for each statement."""
        gone = sorted(self._removed.get(id(suite.body), ()))
        empty = len({n for first, last, _ in gone for n in range(first, last + 1)}) == len(suite.body)
        for run in self._runs(suite, gone):
            span = self._removed_run(suite, run[0][0], run[-1][1])
            span = Span(min(span.start, self._owned[run[0][2]]), span.end)
            starts = [span.start, *(self.place.start(suite.body[first]) for first, _, _ in run[1:]), span.end]
            for index, (_, last, number) in enumerate(run):
                pieces = ("pass",) if empty and last == gone[-1][1] else ()
                self.edits[number] = replace(
                    self.edits[number], span=Span(starts[index], starts[index + 1]), pieces=pieces
                )

    def _runs(self, suite: Suite, gone: list[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
        """Removals that stand beside each other on one line."""
        runs: list[list[tuple[int, int, int]]] = []
        for one in gone:
            if runs and runs[-1][-1][1] + 1 == one[0] and not self.alone(suite, one[0]):
                runs[-1].append(one)
            else:
                runs.append([one])
        return runs

    def _removed_run(self, suite: Suite, first: int, last: int) -> Span:
        region = suite.region(first, last)
        if first > 0 and not self.alone(suite, first):
            return Span(self.file.node_span(suite.body[first - 1]).end, region.end)
        if last + 1 < len(suite.body) and not self.alone(suite, last + 1):
            return Span(region.start, self.place.start(suite.body[last + 1]))
        return region  # a line that is left empty goes when the fences are drawn

    # ---- pieces of statements ---------------------------------------------------------------------------------------

    def swap(self, delta: Delta, node: ast.expr, span: Span, code: Code, touched: Span) -> None:
        """Replace expression `node`, whose bytes are `span`, by `code`.

        Several deltas may change one expression, as long as all but one keep it: the first one stands outermost.

        Args:
            delta: who replaces it.
            node: the expression.
            span: its bytes, parentheses included where they belong to it.
            code: what stands there afterwards; may keep the expression.
            touched: bytes whose meaning it depends on, for the lock.
        """
        statement = enclosing_statement(self.symbol, node)
        self._check_quotes(delta, statement, code, span)
        chain = self._swaps.setdefault(span, [])
        if len(chain) == _SWAPS:
            raise self.fail(
                "PK210", f"{delta.name!r} changes an expression that {_SWAPS} other deltas change already", delta, at=span.start,
                help="Join some of them.",
            )  # fmt: skip
        edit = self.add(delta, span, (), touched=touched)
        chain.append((edit.id, code))
        inner: tuple[str, ast.expr] | None = None
        for number, one in sorted(chain, key=lambda c: (not _keeps(c[1]), c[0]), reverse=True):
            pieces = expression_pieces(self.file, statement, node, one, span, inner=inner)
            self.edits[number] = replace(self.edits[number], pieces=pieces)
            text, tree = inner or (self.file.slice(span), node)
            inner = text_of(pieces, text), new_tree(one, tree)

    def drop(self, delta: Delta, items: CommaList, indices: Collection[int], touched: Span) -> None:
        """Take items out of a list; neighbours may go by several deltas.

        Args:
            delta: who takes them out.
            items: the list, with its commas.
            indices: numbers of the items in the list.
            touched: bytes whose meaning it depends on, for the lock.
        """
        dropped = self._dropped.setdefault(items.open, {})
        for index in sorted(indices):
            if index in dropped:
                other = self.edits[dropped[index]]
                raise self.fail(
                    "PK210",
                    f"{delta.name!r} and {other.delta!r} drop the same item",
                    delta,
                    at=items.items[index].start,
                )
            dropped[index] = self.add(delta, items.items[index], (), touched=touched).id
        if delta.comments == "keep":
            self._commented.setdefault(items.open, set()).update(indices)
        for first, last, span in items.remove(dropped, self._commented.get(items.open, ())):
            for index in range(first, last + 1):  # each item's share of what goes
                start = span.start if index == first else items.items[index].start
                end = span.end if index == last else items.items[index + 1].start
                number = dropped[index]
                self.edits[number] = replace(self.edits[number], span=Span(start, end))

    def _check_quotes(self, delta: Delta, statement: ast.stmt, code: Code, span: Span) -> None:
        """Refuse in an f-string what only Python 3.12 and later can read there."""
        found = tokens_in(self.file, self.place.whole(statement))
        around = [t for t in found if t.span.start < span.start < t.span.end]
        if not around or around[0].kind != "string":
            return
        text = code.text.strip()
        quote = around[0].text.lstrip("rRfFtT")[:3]
        quote = quote if quote in ('"""', "'''") else quote[0]
        held = {"the string's own quotes": quote, "a backslash": "\\", "a comment": "#"}
        if len(quote) == 1:
            held["a line break"] = "\n"
        for what, mark in held.items():
            if mark in text:
                error = self.fail(
                    "PK213", f"before Python 3.12 an expression in an f-string cannot hold {what}", delta, at=span.start,
                    help="Write it in another way, or use `replace:` on the whole statement.",
                )  # fmt: skip
                raise DeltaError(replace(error.findings[0], manifest=code.position))

    def swapped(self) -> Iterator[tuple[int, Code]]:
        """The ids of the edits that replace expressions, and the new ones."""
        for chain in self._swaps.values():
            yield from chain

    def add_to_empty(
        self, delta: Delta, point: int, text: str, touched: Span, *, star: bool = False, last: bool = False
    ) -> None:
        """Add an item to a list that upstream leaves empty.

        Args:
            delta: the delta.
            point: offset behind the opening bracket.
            text: the item.
            touched: as for `add`.
            star: it must stand behind a `*`; such items come behind the plain ones.
            last: it is `*args` or `**kwargs`.
        """
        order = (0, 2 * text.startswith("**") + (star or last))
        edit = self.add(delta, Span(point, point), (), touched=touched, order=order)
        items = self._added.setdefault(point, [])
        items.append((edit, text, star))
        items.sort(key=lambda i: (i[0].order, i[0].id))
        opened = False
        for index, (one, item, starred) in enumerate(items):
            opening = starred and not opened and not any(_variadic(other) for _, other, _ in items)
            opened = opened or starred
            lead = ", " * (index > 0) + "*, " * opening
            self.edits[one.id] = replace(one, pieces=(lead + item,))


def _variadic(text: str) -> bool:
    return text.startswith("*") and not text.startswith("**")


def _keeps(code: Code) -> bool:
    return any(isinstance(n, ast.Name) and n.id == UPSTREAM for n in ast.walk(new_tree(code, ast.Name(UPSTREAM))))


def enclosing_statement(symbol: Symbol, node: ast.AST) -> ast.stmt:
    """The innermost statement around `node` that can be parsed on its own (an `elif` is its chain's first `if`)."""
    stack: list[tuple[ast.AST, ast.stmt]] = [(n, n) for n in symbol.nodes]
    while stack:
        current, statement = stack.pop()
        if current is node:
            return statement
        for child in ast.iter_child_nodes(current):
            standalone = isinstance(child, ast.stmt) and not _is_elif(symbol.file, child)
            stack.append((child, child if standalone and isinstance(child, ast.stmt) else statement))
    raise AssertionError("the node is not in the symbol")


def _is_elif(file: SourceFile, node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and file.data.startswith(b"elif", file.offset(node.lineno, node.col_offset))
