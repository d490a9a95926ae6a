"""Statements as places in the text: where they start and end, what stands between them, where code can be put."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from afd_patchkit.fence import bounds_lines
from afd_patchkit.patterns.search import start_of
from afd_patchkit.source.syntax import blocks, line_of
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import significant, tokens, tokens_in

INDENT = "    "


def indent_of(line: str) -> str:
    """The indentation of a line as Python counts it: white space behind the last form feed."""
    return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]


def width(indent: str) -> int:
    """Columns of an indentation; only for comparing indentations of one file."""
    return len(indent.expandtabs(8))


@dataclass(frozen=True)
class Place:
    """A file and the arithmetic on its statements.

    Attributes:
        file: the file.
        ranges: line ranges (1-based, inclusive) that nothing may reach out of, such as a symbol's; none for the whole file.
    """

    file: SourceFile
    ranges: tuple[tuple[int, int], ...] = ()

    def start(self, node: ast.stmt) -> int:
        """Offset of the statement's first character, decorators included (at their `@`)."""
        return start_of(node, self.file)

    def line_start(self, offset: int) -> int:
        """Offset of the start of the line of `offset`."""
        return self.file.starts[self.file.line_of(offset) - 1]

    def line_end(self, offset: int) -> int:
        """Offset of the end of the line of `offset`, before its newline."""
        line = self.file.line_of(offset)
        if line < len(self.file.starts):
            return self.file.starts[line] - 1
        return len(self.file.data)

    def line_indent(self, offset: int) -> str:
        """Indentation of the line of `offset`."""
        return indent_of(self.file.data[self.line_start(offset) : self.line_end(offset)].decode())

    def starts_line(self, offset: int) -> bool:
        """Whether nothing but white space stands before `offset` on its line."""
        return not self.file.data[self.line_start(offset) : offset].strip()

    def end(self, node: ast.stmt, indent: str | None = None) -> int:
        """Offset behind the statement and what belongs to it.

        That is a semicolon that separates nothing, a comment on its last line, and the comment lines below that are indented
        deeper than it: those of its block.

        Args:
            node: the statement.
            indent: deeper than this; the statement's own indentation by default.
        """
        end = self.file.node_span(node).end
        stop = self.line_end(end)
        rest = self.file.data[end:stop].decode().lstrip(" \t\f")
        rest = rest.removeprefix(";").lstrip(" \t\f")
        if rest and not rest.startswith("#"):
            return end
        least = width(self.column(node) if indent is None else indent)
        last = self._last_line(self.file.line_of(end))
        for line in range(self.file.line_of(end) + 1, last + 1):
            text = self.file.lines(line, line)[0]
            if not text.strip():
                continue
            if not text.lstrip(" \t\f").startswith("#") or width(indent_of(text)) <= least:
                break
            stop = self.line_end(self.file.offset(line))
        return stop

    def _last_line(self, line: int) -> int:
        return next((last for first, last in self.ranges if first <= line <= last), self.file.line_count)

    def above(self, point: int, floor: int, indent: str) -> int:
        """Offset of the first of the comment lines that stand directly over `point`, with its indentation; else `point`.

        A comment that opens or closes a stretch of lines is none of them.

        Args:
            point: where something starts a line.
            floor: a line above, which is none of them, nor are those above it.
            indent: the indentation that they must have.
        """
        for line in range(self.file.line_of(point) - 1, floor, -1):
            text = self.file.lines(line, line)[0]
            comment = text.lstrip(" \t\f")
            if not comment.startswith("#") or indent_of(text) != indent or bounds_lines(comment):
                break
            point = self.file.offset(line, len(text.encode()) - len(text.lstrip(" \t\f").encode()))
        return point

    def whole(self, node: ast.stmt) -> Span:
        """Bytes of a statement alone, decorators included."""
        return Span(self.start(node), self.file.node_span(node).end)

    def region(self, nodes: Sequence[ast.stmt]) -> Span:
        """Bytes of a run of statements, from the first one's first character to the end of the last one (see `end`)."""
        return Span(self.start(nodes[0]), self.end(nodes[-1]))

    def column(self, node: ast.stmt) -> str:
        """The white space that the statement's line begins with."""
        return self.line_indent(self.start(node))

    def colon(self, owner: ast.AST, body: Sequence[ast.stmt]) -> int:
        """Offset behind the colon that opens `body`, a suite of `owner`."""
        start = self.start(body[0])
        found = tokens(self.file, line_of(owner), self.file.line_of(start))
        return [t.span.end for t in significant(found) if t.text == ":" and t.span.end <= start][-1]

    def suite(self, owner: ast.AST, body: Sequence[ast.stmt]) -> Suite:
        """The statement list `body` of `owner`."""
        return Suite(self, owner, body)


@dataclass(frozen=True, eq=False)
class Suite:
    """A list of statements of one block, and the lines it stands on."""

    place: Place
    owner: ast.AST
    body: Sequence[ast.stmt]

    @cached_property
    def opening(self) -> int | None:
        """Offset behind the colon that opens it; None where no colon does (a module's or symbol's own statements)."""
        if isinstance(self.owner, ast.Module) or not any(self.body is block.body for block in blocks(self.owner)):
            return None
        return self.place.colon(self.owner, self.body)

    @cached_property
    def inline(self) -> bool:
        """Whether it stands on its header's line."""
        return self.opening is not None and not self.own_line(0)

    @cached_property
    def indent(self) -> str:
        """Indentation of its statements once they stand on lines of their own."""
        if not self.inline:
            return self.place.column(self.body[0])
        header = self.place.line_indent(self.place.file.offset(line_of(self.owner)))
        return header + ("\t" if header.endswith("\t") else INDENT)

    def gap(self, index: int) -> Span | None:
        """What stands between statement `index` and the one before it (or the colon); None if there is neither."""
        start = self.place.start(self.body[index])
        if index:
            return Span(self.place.file.node_span(self.body[index - 1]).end, start)
        return None if self.opening is None else Span(self.opening, start)

    def own_line(self, index: int) -> bool:
        """Whether statement `index` starts a line (a line that a backslash continues is the same line)."""
        gap = self.gap(index)
        if gap is None:
            return True
        return any(t.kind in ("newline", "nl") for t in tokens_in(self.place.file, gap))

    def before(self, index: int) -> int:
        """Insertion point before statement `index`: above the comment lines that stand directly over it.

        Only comments with the statement's indentation are its own; others belong to the block above.
        """
        point, gap = self.place.start(self.body[index]), self.gap(index)
        floor = self.place.file.line_of(gap.start) if gap else self.place.file.line_of(point) - 1
        return self.place.above(point, floor, self.indent)

    def behind(self, index: int) -> int:
        """Insertion point behind statement `index` when the next one starts a line of its own."""
        return self.place.end(self.body[index])

    def region(self, first: int, last: int) -> Span:
        """Bytes of statements `first` to `last`: up to the end of the line where nothing else stands on it."""
        shared = last + 1 < len(self.body) and not self.own_line(last + 1)
        end = self.place.file.node_span(self.body[last]).end if shared else self.place.end(self.body[last])
        return Span(self.place.start(self.body[first]), end)
