"""CodeText of the wanted function as a delta has it: upstream's names for renamed locals and for what is reached through its module."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from afd_patchkit.copies.canonical import Canonical, origin
from afd_patchkit.copies.difference import first_line, last_line
from afd_patchkit.copies.marks import comments_of, fence_mark
from afd_patchkit.source.text import SourceFile, Span


class CodeText(str):
    """Text that is Python: a manifest has it as a block scalar."""

    __slots__ = ()


class Texts:
    """Slices of the wanted function's file.

    Args:
        file: the file.
        wanted: the function in canonical form.
        upstream: where upstream's own names lead: name, to the dotted text.
        locals_: renamed locals: name here, to upstream's.
    """

    def __init__(
        self, file: SourceFile, wanted: Canonical, upstream: Mapping[str, str], locals_: Mapping[str, str]
    ) -> None:
        self.file = file
        self._edits: list[tuple[Span, str]] = []
        self.late: set[str] = set()
        for node in ast.walk(wanted.node):
            self._edit(node, upstream, locals_)

    def _edit(self, node: ast.AST, upstream: Mapping[str, str], locals_: Mapping[str, str]) -> None:
        here = origin(node)
        if isinstance(node, ast.Name) and isinstance(here, ast.Attribute):
            short = here.attr
            if upstream.get(short) == node.id and isinstance(node.ctx, ast.Load):
                self._edits.append((self.file.node_span(here), short))
                self.late.add(short)
        elif isinstance(here, ast.Name) and here.id in locals_:
            self._edits.append((self.file.node_span(here), locals_[here.id]))
        elif isinstance(here, ast.arg) and here.arg in locals_:
            start = self.file.node_span(here).start
            self._edits.append((Span(start, start + len(here.arg.encode())), locals_[here.arg]))
        elif isinstance(here, ast.ExceptHandler) and here.name is not None and here.name in locals_:
            span = self.file.node_span(here)
            found = re.search(rb"\bas\s+(" + here.name.encode() + rb")\b", self.file.data[span.start : span.end])
            if found:
                self._edits.append((Span(span.start + found.start(1), span.start + found.end(1)), locals_[here.name]))

    def expression(self, node: ast.AST, kept: Mapping[int, str] | None = None) -> CodeText:
        """The text of an expression; nodes of `kept` (by the id of the canonical one) by the names that stand for them."""
        span = self.file.node_span(origin(node))
        rows = self._sliced(span, self._kept(node, kept)).split("\n")
        if len(rows) == 1:
            return CodeText(rows[0])
        # inside brackets lines may begin anywhere; comments there would not survive as an expression
        margin = min((len(r) - len(r.lstrip()) for r in rows[1:] if r.strip()), default=0)
        return CodeText("\n".join([rows[0], *("    " + r[margin:] if r.strip() else "" for r in rows[1:])]))

    def statements(
        self, nodes: Sequence[ast.stmt], kept: Mapping[int, str] | None = None, *, comments: bool = True
    ) -> CodeText:
        """Whole lines of some siblings, with the comments directly above the first; fences are left out.

        Args:
            nodes: canonical statements.
            kept: canonical nodes, by id, that a name stands for.
            comments: take the comments above along.
        """
        first, last = first_line(origin(nodes[0])), last_line(origin(nodes[-1]))
        known = comments_of(self.file)
        if comments:
            while first - 1 in known and self.file.lines(first - 1, first - 1)[0].lstrip().startswith("#"):
                if fence_mark(known[first - 1].text) is not None:
                    break
                first -= 1
        span = self.file.line_span(first, last)
        spots = [spot for node in nodes for spot in self._kept(node, kept)]
        for line, token in known.items():
            if first <= line <= last and fence_mark(token.text) is not None:
                spots.append((self.file.line_span(line, line), ""))
        return CodeText(_dedent(self._sliced(span, spots)))

    def _kept(self, node: ast.AST, kept: Mapping[int, str] | None) -> list[tuple[Span, str]]:
        found = []
        stack: list[ast.AST] = [node]
        while stack:
            here = stack.pop()
            if kept and id(here) in kept:
                word = kept[id(here)]
                if word:
                    found.append((self._span(here), word))
                elif isinstance(here, ast.stmt):  # the rest of a run that one name stands for
                    at = origin(here)
                    found.append((self.file.line_span(first_line(at), last_line(at)), ""))
                continue
            stack += list(ast.iter_child_nodes(here))
        return found

    def _span(self, node: ast.AST) -> Span:
        here = origin(node)
        span = self.file.node_span(here)
        if isinstance(here, ast.stmt) and first_line(here) < here.lineno:
            start = self.file.starts[first_line(here) - 1]
            row = self.file.lines(first_line(here), first_line(here))[0]
            return Span(start + len(row) - len(row.lstrip()), span.end)
        return span

    def _sliced(self, span: Span, spots: Sequence[tuple[Span, str]]) -> str:
        edits = [*spots, *(e for e in self._edits if not any(s.contains(e[0]) for s, _ in spots))]
        inside = sorted((e for e in edits if span.contains(e[0])), key=lambda e: (e[0].start, -e[0].end))
        out: list[bytes] = []
        at = span.start
        for part, text in inside:
            if part.start < at:
                continue
            out += [self.file.data[at : part.start], text.encode()]
            at = part.end
        out.append(self.file.data[at : span.end])
        return b"".join(out).decode()


def _dedent(text: str) -> str:
    rows = text.rstrip("\n").split("\n")
    margin = min((len(r) - len(r.lstrip()) for r in rows if r.strip()), default=0)
    first = next((r for r in rows if r.strip()), "")
    margin = min(margin, len(first) - len(first.lstrip())) if first else margin
    return "\n".join(r[margin:] if r[:margin].strip() == "" else r for r in rows).strip("\n") + "\n"
