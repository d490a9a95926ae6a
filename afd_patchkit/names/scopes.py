"""Which names of a piece of code are free, and where each of them stands."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from afd_patchkit.names.analysis import Analysis, mangle
from afd_patchkit.names.scope import Context, Use, Where
from afd_patchkit.names.spans import ident_span, listed_spans, quoted_base
from afd_patchkit.source.text import Span, Text

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One free occurrence of a name.

    Attributes:
        name: the name.
        span: its bytes in the analysed text.
        ctx: read, bound (also by `global` and an assignment), or deleted.
        where: `header` for decorators, defaults and bases of the statements themselves; `annotation`; else `body`.
        declared_global: a `global` statement names it in its scope.
        in_nested: it stands in a function, lambda, comprehension or class of the statements.
        deferred: it is looked up when something is called, not when the statements run.
        evaluated: False where Python never evaluates it (quoted, local variable annotations, `if TYPE_CHECKING:`).
        own: the statements themselves bind the name.
    """

    name: str
    span: Span
    ctx: Context
    where: Where
    declared_global: bool
    in_nested: bool
    deferred: bool = False
    evaluated: bool = True
    own: bool = False


def free_occurrences(nodes: Iterable[ast.stmt], text: Text) -> list[Occurrence]:
    """Names that are free in the statements, those written through `global` included.

    Args:
        nodes: statements of `text`.
        text: the text that they were parsed from.
    """
    analysis = Analysis(nodes)
    return [
        Occurrence(
            use.name,
            _place(use, text),
            use.ctx,
            use.where,
            analysis.declared_global(use),
            use.in_nested,
            use.deferred,
            use.evaluated,
            use.own,
        )
        for use in analysis.free()
    ]


def use_span(use: Use, text: Text) -> Span | None:
    """The bytes of the identifier of a use; None where they cannot be told (escapes or concatenation in a quoted type)."""
    if use.quoted is not None:
        base = quoted_base(text, use.quoted)
        if base is None or not isinstance(use.node, ast.Name) or use.node.lineno != 1:
            return None
        return Span(base + use.node.col_offset, base + (use.node.end_col_offset or 0))
    name = use.name
    if isinstance(use.node, ast.Name):
        name = use.node.id
    return ident_span(text, use.node, use.kind, name, use.fstring)


def _place(use: Use, text: Text) -> Span:
    if isinstance(use.node, ast.Global):
        spans = listed_spans(text, use.node)
        return spans[[mangle(n, use.scope.private) for n in use.node.names].index(use.name)]
    span = use_span(use, text)
    if span is not None:
        return span
    return text.node_span(use.quoted if use.quoted is not None else use.node)


def local_names(function_node: FunctionNode) -> frozenset[str]:
    """Names that are local to a function: parameters and everything its own body binds, without `global` and `nonlocal`."""
    if isinstance(function_node, ast.Lambda):
        analysis = Analysis([ast.Expr(function_node)])
    else:
        analysis = Analysis([function_node])
    scope = analysis.scope_of(function_node)
    return frozenset(scope.bound - scope.globals - scope.nonlocals)
