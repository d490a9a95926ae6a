"""True positions of the expressions inside f-strings.

Before Python 3.12 `ast` gives wrong ones. The lexer of `tokens` knows where each replacement field stands, so the expression is
parsed again from there and the positions are carried over.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

from afd_patchkit.source.text import Span, Text, parse_quietly
from afd_patchkit.source.tokens import ReplacementField, fields, significant, tokens_in


def correct_positions(tree: ast.AST, text: Text) -> None:
    """Give every node inside an f-string of `tree` its true position in `text`, in place.

    A replacement field gets the span of its braces; literal pieces keep what they have. Running it again changes nothing.
    """
    if sys.version_info >= (3, 12):  # right already
        return
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.JoinedStr):
            # Its inner f-strings come later, when their own positions are right.
            _correct(node, text)
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.FormattedValue) and child is node.format_spec:
                # A format is written as an f-string in the tree, but is part of the one around it.
                stack.extend(ast.iter_child_nodes(child))
            else:
                stack.append(child)


def _correct(joined: ast.JoinedStr, text: Text) -> None:
    found: list[ReplacementField] = []
    for token in tokens_in(text, text.node_span(joined)):
        if token.kind == "string":
            found += fields(text, token)
    _assign(joined, found, text)


def _assign(joined: ast.JoinedStr, found: Sequence[ReplacementField], text: Text) -> None:
    values = [v for v in joined.values if isinstance(v, ast.FormattedValue)]
    if len(values) != len(found):  # not what Python read: leave it rather than guess
        return
    for value, field in zip(values, found, strict=True):
        _place(value, field.span, text)
        _carry(value.value, field.expression, text)
        if isinstance(value.format_spec, ast.JoinedStr):
            _assign(value.format_spec, field.nested, text)


def _carry(node: ast.expr, span: Span, text: Text) -> None:
    """Parse `span` alone and carry its positions over to `node`."""
    alone = Text(b"(" + text.data[span.start : span.end] + b"\n)")
    try:
        parsed = parse_quietly(alone.text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return
    if not isinstance(parsed, ast.Expr):
        return
    for theirs, ours in zip(_outside_strings(parsed.value), _outside_strings(node), strict=False):
        if type(theirs) is not type(ours):
            return
        if hasattr(theirs, "lineno"):
            here = alone.node_span(theirs)
            if here.start == 0:  # a bare tuple took our parentheses
                inner = significant(tokens_in(alone, Span(1, len(alone.data) - 2)))
                here = Span(inner[0].span.start, inner[-1].span.end)
            _place(ours, here.shift(span.start - 1), text)


def _outside_strings(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of an expression in a fixed order, without what is inside its f-strings."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        if not isinstance(item, ast.JoinedStr):
            stack.extend(ast.iter_child_nodes(item))


def _place(node: ast.AST, span: Span, text: Text) -> None:
    line, end_line = text.line_of(span.start), text.line_of(span.end)
    node.lineno, node.col_offset = line, span.start - text.starts[line - 1]  # type: ignore[attr-defined]
    node.end_lineno, node.end_col_offset = end_line, span.end - text.starts[end_line - 1]  # type: ignore[attr-defined]
