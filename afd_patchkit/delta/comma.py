"""Comma-separated lists (arguments, parameters): where to cut and what to write so that upstream's layout survives."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.place import Place
from afd_patchkit.source.locate import FunctionNode
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import Token, significant, tokens_in

Cut = tuple[Span, str]
"""A span of upstream bytes and the text that replaces it."""


@dataclass(frozen=True, slots=True)
class CommaList:
    """The items between two brackets.

    Attributes:
        file: where it stands.
        open: offset just behind the opening bracket.
        close: offset of the closing bracket.
        items: bytes of each item, prefix (`*`, `**`, `name=`) and redundant parentheses included.
    """

    file: SourceFile
    open: int
    close: int
    items: tuple[Span, ...]

    @property
    def vertical(self) -> bool:
        """Whether every item starts a line of its own."""
        return bool(self.items) and all(self._starts_line(item.start) for item in self.items)

    @property
    def separator(self) -> str:
        """What stands between two new items."""
        return f",\n{self._indent(self.items[-1].start)}" if self.vertical else ", "

    def insert(self, index: int, text: str) -> list[Cut]:
        """Put `text` in front of item `index` (behind the last one when `index` is their number)."""
        if not self.items:
            return [(Span(self.open, self.open), text)]
        if index == 0:
            first = self.items[0].start
            gap = f",\n{self._indent(first)}" if self.vertical else ", "
            return [(Span(first, first), text + gap)]
        previous = self.items[index - 1]
        end = previous.end
        if not self.vertical:
            return [(Span(end, end), ", " + text)]
        line = f"\n{self._indent(previous.start)}{text}"
        comma = self.comma_after(index - 1)
        behind = end if comma is None else comma
        stop = Place(self.file).line_end(behind)
        if self._rest(behind):  # the next item or the bracket stands on the same line
            return [(Span(end, end), f",{line}")] if comma is None else [(Span(comma, comma), f"{line},")]
        if comma is not None:
            return [(Span(stop, stop), f"{line},")]
        if stop == end:
            return [(Span(end, end), f",{line}")]
        return [(Span(end, end), ","), (Span(stop, stop), line)]  # the comment stays with its item

    def remove(self, indices: Collection[int], commented: Collection[int] = ()) -> list[tuple[int, int, Span]]:
        """What goes when items are taken out.

        Args:
            indices: the items.
            commented: those whose own comments, directly above them, stay.

        Returns:
            for each run of neighbours its first and last index, and its bytes with one comma and the layout that belonged to it.
        """
        runs: list[tuple[int, int, Span]] = []
        gone = sorted(set(indices))
        while gone:
            first = last = gone.pop(0)
            while gone and gone[0] == last + 1:
                last = gone.pop(0)
            runs.append((first, last, self._run(first, last, comments=first not in commented)))
        return runs

    def _run(self, first: int, last: int, *, comments: bool) -> Span:
        """What goes with items `first` to `last`, with the comments above the first one or not."""
        item, end = self.items[first], self.items[last].end
        place = Place(self.file)
        comma = self.comma_after(last)
        behind = end if comma is None else comma
        more = last + 1 < len(self.items)
        if self._starts_line(item.start) and not self._rest(behind) and (comma is not None or not more):
            floor = self.file.line_of(self.items[first - 1].end if first else self.open)
            start = place.above(item.start, floor, self._indent(item.start)) if comments else item.start
            return Span(start, place.line_end(behind))  # whole lines
        if more and not (first and self._starts_line(self.items[last + 1].start)):
            return Span(item.start, self.items[last + 1].start)
        if first and not self._commented(self.items[first - 1].end, item.start):
            return Span(self.items[first - 1].end, end if more or comma is None else comma)
        return Span(item.start, behind)

    def _starts_line(self, offset: int) -> bool:
        return Place(self.file).starts_line(offset)

    def _indent(self, offset: int) -> str:
        return Place(self.file).line_indent(offset)

    def _rest(self, offset: int) -> bool:
        """Whether code stands behind `offset` on its line."""
        rest = self.file.data[offset : Place(self.file).line_end(offset)].decode().strip()
        return bool(rest) and not rest.startswith("#")

    def _commented(self, start: int, stop: int) -> bool:
        return any(t.kind == "comment" for t in tokens_in(self.file, Span(start, stop)))

    def comma_after(self, index: int) -> int | None:
        """Offset just behind the comma that follows item `index`, if there is one."""
        end = self.items[index].end
        stop = self.items[index + 1].start if index + 1 < len(self.items) else self.close
        for token in significant(tokens_in(self.file, Span(end, stop))):
            if token.text == ",":
                return token.span.end
        return None


def call_list(file: SourceFile, call: ast.Call) -> tuple[CommaList, list[ast.expr | ast.keyword]]:
    """The arguments of a call, in source order, and their nodes."""
    end = file.node_span(call).end
    found = significant(tokens_in(file, Span(file.node_span(call.func).end, end)))
    at = next(i for i, token in enumerate(found) if token.text == "(")  # `)` before it closes parentheses of the callee
    items, close = _split_items(found[at + 1 :])
    nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    nodes.sort(key=file.node_span)
    spans = _spans(items)
    if len(nodes) == 1 and isinstance(nodes[0], ast.GeneratorExp):  # the commas of `for a, b in` are its own
        spans = (Span(spans[0].start, spans[-1].end),)
    return CommaList(file, found[at].span.end, close, spans), nodes


def display_list(file: SourceFile, node: ast.Tuple | ast.List | ast.Set) -> tuple[CommaList, bool]:
    """The elements of a tuple, list or set, and whether it is a tuple without parentheses."""
    span = file.node_span(node)
    found = significant(tokens_in(file, span))
    depth, closed = 0, 0
    for number, token in enumerate(found):  # does the first bracket close with the last token?
        depth += _depth(token)
        if depth == 0:
            closed = number
            break
    bare = _depth(found[0]) != 1 or closed != len(found) - 1
    inner = found if bare else found[1:-1]
    items, depth, current = [], 0, list[Token]()
    for token in inner:
        depth += _depth(token)
        if depth == 0 and token.text == ",":
            items.append(current)
            current = []
        else:
            current.append(token)
    items += [current] if current else []
    start, stop = (span.start, span.end) if bare else (found[0].span.end, found[-1].span.start)
    return CommaList(file, start, stop, _spans(items)), bare


def _depth(token: Token) -> int:
    return (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}")) if token.kind == "op" else 0


def parameter_list(file: SourceFile, node: FunctionNode) -> tuple[CommaList, list[str]]:
    """The parameters of a definition with their names; `*` and `/` are items named `*` and `/`."""
    body = file.offset(node.body[0].lineno, node.body[0].col_offset)
    found = significant(tokens_in(file, Span(file.node_span(node).start, body)))
    at = next(i for i, token in enumerate(found) if token.text == "def") + 2
    if found[at].text == "[":  # type parameters (PEP 695)
        depth = 0
        while True:
            depth += {"[": 1, "]": -1}.get(found[at].text, 0)
            at += 1
            if depth == 0:
                break
    items, close = _split_items(found[at + 1 :])
    return CommaList(file, found[at].span.end, close, _spans(items)), [_parameter_name(item) for item in items]


def _spans(items: Sequence[Sequence[Token]]) -> tuple[Span, ...]:
    return tuple(Span(item[0].span.start, item[-1].span.end) for item in items)


def _split_items(found: Sequence[Token]) -> tuple[list[list[Token]], int]:
    """The items up to the bracket that closes the list, and that bracket's offset."""
    items: list[list[Token]] = []
    current: list[Token] = []
    depth = 0
    lambdas: list[int] = []  # depths of lambdas whose parameters are being read: their commas split nothing
    for token in found:
        if token.text == "lambda":
            lambdas.append(depth)
        elif token.text == ":" and lambdas and lambdas[-1] == depth:
            lambdas.pop()
        if depth == 0 and token.text == ")":
            return [*items, current] if current else items, token.span.start
        if depth == 0 and token.text == "," and not lambdas:
            items.append(current)
            current = []
            continue
        if token.kind == "op":
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        current.append(token)
    raise AssertionError("a list without an end")


def _parameter_name(item: Sequence[Token]) -> str:
    return next((token.text for token in item if token.kind == "name"), item[0].text)
