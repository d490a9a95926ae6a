"""Comma-separated lists (arguments, parameters): where to cut and what to write so that upstream's layout survives."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import Token, significant, tokens

Cut = tuple[Span, str]
"""A span of upstream bytes and the text that replaces it."""


@dataclass(frozen=True, slots=True)
class CommaList:
    """The items between two brackets.

    Attributes:
        file: where it stands.
        open: offset just behind the opening bracket.
        close: offset of the closing bracket.
        items: bytes of each item, prefix (`*`, `**`, `name=`) included.
    """

    file: SourceFile
    open: int
    close: int
    items: tuple[Span, ...]

    @property
    def vertical(self) -> bool:
        """Whether every item starts a line of its own."""
        return bool(self.items) and all(self._starts_line(item.start) for item in self.items)

    def _starts_line(self, offset: int) -> bool:
        start = self.file.starts[self.file.line_of(offset) - 1]
        return not self.file.data[start:offset].strip()

    def _indent(self, offset: int) -> str:
        start = self.file.starts[self.file.line_of(offset) - 1]
        line = self.file.data[start : self.file.starts[self.file.line_of(offset)]].decode()
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _comma_after(self, index: int) -> int | None:
        """Offset just behind the comma that follows item `index`, if there is one."""
        end = self.items[index].end
        stop = self.items[index + 1].start if index + 1 < len(self.items) else self.close
        for token in _tokens_between(self.file, end, stop):
            if token.text == ",":
                return token.span.end
        return None

    def _line_end(self, offset: int) -> int:
        """Offset of the newline that ends the line of `offset`."""
        return self.file.starts[self.file.line_of(offset)] - 1

    def insert(self, index: int, text: str) -> Cut:
        """Put `text` in front of item `index` (behind the last one when `index` is their number)."""
        if not self.items:
            return Span(self.open, self.open), text
        if index == 0:
            first = self.items[0].start
            gap = f",\n{self._indent(first)}" if self.vertical else ", "
            return Span(first, first), text + gap
        previous = self.items[index - 1]
        if not self.vertical:
            return Span(previous.end, previous.end), ", " + text
        indent = self._indent(previous.start)
        comma = self._comma_after(index - 1)
        if comma is None:
            return Span(previous.end, previous.end), f",\n{indent}{text}"
        rest = self.file.data[comma : self._line_end(comma)].decode().strip()
        if rest and not rest.startswith("#"):  # the next item or the bracket stands on the same line
            return Span(comma, comma), f"\n{indent}{text},"
        end = self._line_end(comma)
        return Span(end, end), f"\n{indent}{text},"

    def remove(self, index: int) -> Cut:
        """Take item `index` out, with one comma and the layout that belonged to it."""
        item = self.items[index]
        comma = self._comma_after(index)
        if self._starts_line(item.start) and comma is not None and comma <= self._line_end(item.end):
            rest = self.file.data[comma : self._line_end(comma)].decode().strip()
            if not rest or rest.startswith("#"):
                line = self.file.starts[self.file.line_of(item.start) - 1]
                return Span(line, self._line_end(comma) + 1), ""
        if index + 1 < len(self.items):
            return Span(item.start, self.items[index + 1].start), ""
        if index > 0:
            end = item.end if comma is None else comma
            return Span(self.items[index - 1].end, end), ""
        return Span(item.start, item.end if comma is None else comma), ""


def _tokens_between(file: SourceFile, start: int, stop: int) -> list[Token]:
    found = tokens(file, file.line_of(start), file.line_of(max(start, stop - 1)))
    return [t for t in significant(found) if start <= t.span.start and t.span.end <= stop]


def call_list(file: SourceFile, call: ast.Call) -> CommaList:
    """The arguments of a call, in source order."""
    end = file.node_span(call).end
    start = file.node_span(call.func).end
    opening = _opening(file, start, end)
    items = sorted(argument_span(file, node) for node in [*call.args, *call.keywords])
    return CommaList(file, opening, end - 1, tuple(items))


def argument_span(file: SourceFile, node: ast.expr | ast.keyword) -> Span:
    """Bytes of one argument, redundant parentheses around it included."""
    span = file.node_span(node)
    return span if isinstance(node, (ast.keyword, ast.Starred)) else with_parentheses(file, span)


def with_parentheses(file: SourceFile, span: Span) -> Span:
    """The span widened by parentheses that enclose nothing else, as `(a)` in `f((a), b)`."""
    data = file.data
    start, end = span.start, span.end
    while True:
        left, right = start, end
        while left > 0 and data[left - 1 : left] in (b" ", b"\t", b"\n"):
            left -= 1
        while right < len(data) and data[right : right + 1] in (b" ", b"\t", b"\n"):
            right += 1
        if data[left - 1 : left] != b"(" or data[right : right + 1] != b")":
            return Span(start, end)
        before = data[:left - 1].rstrip(b" \t")[-1:]
        if before and (before.isalnum() or before in b"_)]'\"" or before[0] >= 0x80):
            return Span(start, end)  # the bracket is a call's or a subscript's, or follows a keyword: leave it
        start, end = left - 1, right + 1


def _opening(file: SourceFile, start: int, end: int) -> int:
    depth = 0
    for token in _tokens_between(file, start, end):
        if token.text == ")" and depth == 0:
            continue  # closes redundant parentheses around the callee
        if token.text == "(":
            return token.span.end
        depth = 0
    raise AssertionError("a call without an opening bracket")


def parameter_list(file: SourceFile, node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[CommaList, list[str]]:
    """The parameters of a definition with their names; `*` and `/` are items named `*` and `/`."""
    body_start = file.offset(node.body[0].lineno, node.body[0].col_offset)
    found = _tokens_between(file, file.node_span(node).start, body_start)
    at = next(i for i, t in enumerate(found) if t.text == node.name) + 1
    if found[at].text == "[":  # type parameters (PEP 695)
        depth = 0
        while True:
            depth += {"[": 1, "]": -1}.get(found[at].text, 0)
            at += 1
            if depth == 0:
                break
    opening = found[at].span.end
    items, close = _split_items(found[at + 1 :])
    spans = tuple(Span(item[0].span.start, item[-1].span.end) for item in items)
    names = [_parameter_name(item) for item in items]
    return CommaList(file, opening, close, spans), names


def _split_items(found: Sequence[Token]) -> tuple[list[list[Token]], int]:
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
            if current:
                items.append(current)
            return items, token.span.start
        if depth == 0 and token.text == "," and not lambdas:
            items.append(current)
            current = []
            continue
        depth += token.text in ("(", "[", "{") and token.kind == "op"
        depth -= token.text in (")", "]", "}") and token.kind == "op"
        current.append(token)
    raise AssertionError("a parameter list without an end")


def _parameter_name(item: Sequence[Token]) -> str:
    for token in item:
        if token.kind == "name":
            return token.text
    return item[0].text
