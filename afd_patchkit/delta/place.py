"""Statements as places in the text: insertion points, whole-statement regions, one-line suites."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from afd_patchkit.source.locate import first_line
from afd_patchkit.source.text import SourceFile, Span
from afd_patchkit.source.tokens import significant, tokens

INDENT = "    "


@dataclass(frozen=True)
class Place:
    """A file and the arithmetic on its statements."""

    file: SourceFile

    def start(self, node: ast.stmt) -> int:
        """Offset of the statement's first character, decorators included (at their `@`)."""
        line = first_line(node)
        if line == node.lineno and not getattr(node, "decorator_list", None):
            return self.file.offset(node.lineno, node.col_offset)
        begin = self.file.starts[line - 1]
        return begin + len(self.line_indent(begin).encode())

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
        """White space at the start of the line of `offset`."""
        start = self.line_start(offset)
        line = self.file.data[start : self.line_end(offset)].decode()
        return line[: len(line) - len(line.lstrip(" \t\f"))]

    def starts_line(self, node: ast.stmt) -> bool:
        """Whether nothing but white space stands before the statement on its line."""
        start = self.start(node)
        return not self.file.data[self.line_start(start) : start].strip()

    def end(self, node: ast.stmt) -> int:
        """Offset behind the statement, with the comment that follows it on its last line."""
        end = self.file.node_span(node).end
        rest = self.file.data[end : self.line_end(end)].decode()
        stripped = rest.lstrip(" \t\f")
        if stripped.startswith(";") and not stripped[1:].strip():
            return self.line_end(end)  # a semicolon that separates nothing belongs to the statement
        return self.line_end(end) if not stripped or stripped.startswith("#") else end

    def ends_line(self, node: ast.stmt) -> bool:
        """Whether nothing but a comment follows the statement on its last line."""
        return self.end(node) == self.line_end(self.end(node)) and not self._followed(node)

    def _followed(self, node: ast.stmt) -> bool:
        end = self.file.node_span(node).end
        rest = self.file.data[end : self.line_end(end)].decode().strip()
        return bool(rest) and not rest.startswith("#") and rest.rstrip(" \t") != ";"

    def region(self, nodes: Sequence[ast.stmt]) -> Span:
        """Bytes of a run of statements, from the first one's first character to the end of the last one's line."""
        return Span(self.start(nodes[0]), self.end(nodes[-1]))

    def column(self, node: ast.stmt) -> str:
        """Indentation of the statement's line."""
        return self.line_indent(self.start(node))

    def before(self, body: Sequence[ast.stmt], index: int, owner: ast.AST) -> int:
        """Insertion point before a statement: above the comment lines that stand directly over it."""
        point = self.start(body[index])
        if index:
            floor = body[index - 1].end_lineno or 0
        else:
            floor = self.file.line_of(self.colon(owner, body) - 1) if not isinstance(owner, ast.Module) else 0
        for line in range(self.file.line_of(point) - 1, floor, -1):
            text = self.file.lines(line, line)[0]
            stripped = text.lstrip(" \t\f")
            if not stripped.startswith("#"):
                break
            point = self.file.starts[line - 1] + len(text.encode()) - len(stripped.encode())
        return point

    def colon(self, owner: ast.AST, body: Sequence[ast.stmt]) -> int:
        """Offset behind the colon that opens `body`, a suite of `owner`."""
        start = self.start(body[0])
        found = tokens(self.file, getattr(owner, "lineno", 1), self.file.line_of(start))
        return [t.span.end for t in significant(found) if t.text == ":" and t.span.end <= start][-1]

    def one_line_suite(self, owner: ast.AST, body: Sequence[ast.stmt]) -> int | None:
        """Offset behind the colon when the suite stands on its header's line; None for a block."""
        start = self.start(body[0])
        if self.starts_line(body[0]) and not self._continued(start):
            return None
        colon = self.colon(owner, body)
        between = self.file.data[colon:start].decode().replace("\\\n", "")
        return None if between.strip() or "\n" in between else colon

    def _continued(self, offset: int) -> bool:
        line = self.line_start(offset)
        return line >= 2 and self.file.data[line - 2 : line] == b"\\\n"


def docstring_of(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The docstring statement of a body, if it has one."""
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first
    return None
