"""Finding of patterns in the tree of an upstream file; `patterns` says what they mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.patterns.compile import Pattern
from afd_patchkit.patterns.match import equal, statements
from afd_patchkit.source.fstrings import correct_positions
from afd_patchkit.source.syntax import CLAUSE, blocks
from afd_patchkit.source.text import SourceFile, Span


@dataclass(frozen=True, eq=False)
class Match:
    """One place that a pattern matches.

    Attributes:
        nodes: the matched statements (a run of siblings), or the one expression.
        span: bytes in the file, from the first statement's start (decorators included, indentation not) to the end of
            the last one; of an expression without parentheses around it.
        body: the statement list that holds the run; None for an expression.
        index: index in `siblings` of the run's first statement, or of the statement that holds the expression.
        owner: the node that owns `body`, or the statement that holds the expression.
        siblings: the statement list that holds the run, or the statement that holds the expression.
    """

    nodes: tuple[ast.AST, ...]
    span: Span
    body: Sequence[ast.stmt] | None
    index: int
    owner: ast.AST
    siblings: Sequence[ast.stmt]

    @property
    def end(self) -> int:
        """Index in `siblings` behind the last statement concerned."""
        return self.index + (1 if self.body is None else len(self.nodes))


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a statement list: where to search.

    Attributes:
        body: the whole list.
        start: first statement that counts.
        stop: index behind the last one.
        owner: the node that owns the list.
        headers: expressions and parameter lists of `owner` that are searched too (for expression patterns).
    """

    body: Sequence[ast.stmt]
    start: int
    stop: int
    owner: ast.AST
    headers: tuple[ast.AST, ...] = ()


def start_of(node: ast.AST, file: SourceFile) -> int:
    """Byte at which a statement starts, its decorators' `@` included."""
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    if not decorators:
        return file.node_span(node).start
    line = decorators[0].lineno
    while not file.lines(line, line)[0].lstrip(" \t\f").startswith("@"):
        line -= 1  # the decorator's expression starts below its `@`, in parentheses
    return file.data.index(b"@", file.offset(line))


def statement_span(nodes: Sequence[ast.AST], file: SourceFile) -> Span:
    """Bytes from the first statement's start to the last one's end."""
    return Span(start_of(nodes[0], file), file.node_span(nodes[-1]).end)


def is_elif(owner: ast.AST, suite: Sequence[ast.stmt], file: SourceFile) -> bool:
    """Whether `suite`, the `orelse` of `owner`, is an `elif` (and not an `else` that holds an `if`)."""
    return (
        isinstance(owner, ast.If)
        and suite is owner.orelse
        and len(suite) == 1
        and isinstance(suite[0], ast.If)
        and file.data.startswith(b"elif", file.offset(suite[0].lineno, suite[0].col_offset))
    )


def find_all(pattern: Pattern, root: ast.AST | Sequence[ast.stmt] | Sequence[Window], file: SourceFile) -> list[Match]:
    """All matches of `pattern`, in source order, at any depth (nested functions and classes included).

    Args:
        pattern: what to look for.
        root: where: inside a node (the node itself is no match, its header is searched for expressions), in a list of
            statements, or in windows.
        file: the file that `root` is part of.
    """
    windows = _windows(root)
    find = _find_statements if pattern.kind == "statements" else _find_expressions
    try:
        found = list(find(pattern, windows, file))
    except RecursionError:
        raise ManifestError(
            finding(
                "PK030",
                "the pattern is nested too deeply to be compared",
                manifest=pattern.code.position,
                help="Write `...` for inner parts.",
            )
        ) from None
    return sorted(found, key=lambda m: (m.span.start, -m.span.end))


def inside(node: ast.AST) -> list[Window]:
    """Windows on everything inside `node`, its header included; the node itself is not a match."""
    windows = [Window(block.body, 0, len(block.body), block.owner) for block in blocks(node)]
    headers: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, CLAUSE):
            headers += [h for h in ast.iter_child_nodes(child) if not isinstance(h, ast.stmt)]
        elif not isinstance(child, ast.stmt):
            headers.append(child)
    return [*windows, Window((), 0, 0, node, tuple(headers))]


def _windows(root: ast.AST | Sequence[ast.stmt] | Sequence[Window]) -> list[Window]:
    if isinstance(root, ast.AST):
        return inside(root)
    windows = [item for item in root if isinstance(item, Window)]
    if windows or not root:
        return windows
    body: Sequence[ast.stmt] = root  # type: ignore[assignment]
    return [Window(body, 0, len(body), ast.Module(list(body), []))]


def below(windows: Sequence[Window]) -> Iterator[Window]:
    """The windows and all statement lists below their statements."""
    stack = list(windows)
    while stack:
        window = stack.pop()
        yield window
        for statement in window.body[window.start : window.stop]:
            stack += [Window(block.body, 0, len(block.body), block.owner) for block in blocks(statement)]


def _find_statements(pattern: Pattern, windows: Sequence[Window], file: SourceFile) -> Iterator[Match]:
    wanted: tuple[ast.stmt, ...] = pattern.nodes  # type: ignore[assignment]
    for window in below(windows):
        if is_elif(window.owner, window.body, file):
            continue
        body = window.body if window.stop == len(window.body) else window.body[: window.stop]
        for index in range(window.start, window.stop):
            end = statements(wanted, body, index, whole=False)
            if end is not None:
                nodes = tuple(body[index:end])
                yield Match(nodes, statement_span(nodes, file), window.body, index, window.owner, window.body)


def _find_expressions(pattern: Pattern, windows: Sequence[Window], file: SourceFile) -> Iterator[Match]:
    wanted = pattern.nodes[0]
    for node, parent, joined, window, index in expressions(windows):
        if equal(wanted, node):
            if joined is not None:
                correct_positions(joined, file)
            holder: ast.AST = window.body[index] if window.body else window.owner
            siblings: Sequence[ast.stmt] = window.body or ((holder,) if isinstance(holder, ast.stmt) else ())
            yield Match((node,), expression_span(node, parent, file), None, index, holder, siblings)


def expression_span(node: ast.AST, parent: ast.AST, file: SourceFile) -> Span:
    """Bytes of an expression; the parentheses of a call are not part of a generator that is its only argument."""
    span = file.node_span(node)
    if isinstance(node, ast.GeneratorExp) and isinstance(parent, ast.Call) and file.node_span(parent).end == span.end:
        inner = file.data[span.start + 1 : span.end - 1]
        lead, tail = len(inner) - len(inner.lstrip()), len(inner) - len(inner.rstrip())
        return Span(span.start + 1 + lead, span.end - 1 - tail)
    return span


def expressions(
    windows: Sequence[Window],
) -> Iterator[tuple[ast.expr, ast.AST, ast.JoinedStr | None, Window, int]]:
    """All expressions: the node, its parent, the f-string around it, the window and index of the statement that holds it."""
    for window in below(windows):
        roots: list[tuple[ast.AST, int]] = [(header, 0) for header in window.headers]
        roots += [(window.body[i], i) for i in range(window.start, window.stop)]
        for root, index in roots:
            stack: list[tuple[ast.AST, ast.AST, ast.JoinedStr | None]] = [(root, window.owner, None)]
            while stack:
                node, parent, joined = stack.pop()
                literal = isinstance(parent, ast.JoinedStr) and isinstance(node, ast.Constant)
                format_spec = isinstance(parent, ast.FormattedValue) and node is parent.format_spec
                if (
                    isinstance(node, ast.expr)
                    and not literal
                    and not format_spec
                    and not isinstance(node, ast.FormattedValue)
                ):
                    yield node, parent, joined, window, index
                if isinstance(node, ast.JoinedStr) and joined is None:
                    joined = node
                for child in ast.iter_child_nodes(node):
                    if not isinstance(child, (ast.stmt, *CLAUSE)):
                        stack.append((child, node, joined))
                    elif isinstance(child, CLAUSE):
                        stack += [
                            (c, child, joined) for c in ast.iter_child_nodes(child) if not isinstance(c, ast.stmt)
                        ]
