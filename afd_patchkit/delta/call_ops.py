"""`call:` change callee, arguments or targets of one call and leave the other arguments alone."""

from __future__ import annotations

import ast

from afd_patchkit.delta.comma import CommaList, argument_span, call_list, with_parentheses
from afd_patchkit.delta.operations import Builder, enclosing_statement
from afd_patchkit.delta.patterns import Match, Pattern, compile_pattern
from afd_patchkit.delta.template import expression_pieces
from afd_patchkit.manifest.model import CallChange, Code, Delta
from afd_patchkit.source.text import Span


def call(builder: Builder, delta: Delta) -> None:
    """Add the edits of a `call:` delta."""
    change = delta.call
    assert change is not None
    kind = "expression" if _is_call_pattern(change.match) else "statements"
    for match in builder.select(delta, change.match, kind):
        node = _call_of(builder, delta, match)
        if change.callee is not None:
            span = with_parentheses(builder.file, builder.file.node_span(node.func))
            _swap(builder, delta, node.func, change.callee, span)
        if change.targets is not None:
            _targets(builder, delta, node, change.targets)
        _arguments(builder, delta, node, change)


def _is_call_pattern(code: Code) -> bool:
    pattern: Pattern = compile_pattern(code, "auto")
    if pattern.kind == "expression":
        return True
    return len(pattern.nodes) == 1 and isinstance(pattern.nodes[0], ast.Expr)


def _call_of(builder: Builder, delta: Delta, match: Match) -> ast.Call:
    node: ast.AST = match.nodes[0]
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
        node = node.value if node.value is not None else node
    if isinstance(node, (ast.Await, ast.YieldFrom)):
        node = node.value
    if len(match.nodes) != 1 or not isinstance(node, ast.Call):
        raise builder.fail(
            "PK218",
            "`call.match` matches something that is not one call",
            delta,
            at=match.span.start,
            help="Match the call itself, or a statement whose whole value is the call.",
        )
    return node


def _swap(builder: Builder, delta: Delta, node: ast.expr, code: Code, span: Span) -> None:
    statement = enclosing_statement(builder.symbol, node)
    own = builder.file.node_span(node)
    pieces = expression_pieces(builder.file, statement, node, code, own)
    builder.add(delta, own, pieces, touched=span)


def _targets(builder: Builder, delta: Delta, node: ast.Call, code: Code) -> None:
    statement = enclosing_statement(builder.symbol, node)
    touched = builder.file.node_span(node.func)
    if isinstance(statement, ast.Expr):
        start = builder.place.start(statement)
        builder.add(delta, Span(start, start), [f"{code.text.strip()} = "], touched=touched)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        span = with_parentheses(builder.file, builder.file.node_span(statement.targets[0]))
        builder.add(delta, span, [code.text.strip()], touched=span)
    else:
        raise builder.fail("PK218", "`targets` needs a statement `call(...)` or `target = call(...)`", delta, at=touched.start)


def _arguments(builder: Builder, delta: Delta, node: ast.Call, change: CallChange) -> None:
    items = call_list(builder.file, node)
    touched = builder.file.node_span(node.func)
    appended: list[str] = []
    for key, code in change.set.items():
        found = _argument(builder, delta, node, key, required=isinstance(key, int))
        if found is None:
            appended.append(f"{key}={code.text.strip()}")
            continue
        value = found.value if isinstance(found, ast.keyword) else found
        _swap(builder, delta, value, code, argument_span(builder.file, found))
    for key in change.drop:
        found = _argument(builder, delta, node, key, required=True)
        assert found is not None
        index = items.items.index(argument_span(builder.file, found))
        span, text = items.remove(index)
        builder.add(delta, span, [text] if text else [], touched=argument_span(builder.file, found))
    if appended:
        _append(builder, delta, node, items, appended, change.drop, touched)


def _append(
    builder: Builder,
    delta: Delta,
    node: ast.Call,
    items: CommaList,
    appended: list[str],
    drop: tuple[str | int, ...],
    touched: Span,
) -> None:
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.GeneratorExp) and builder.file.node_span(only).end == builder.file.node_span(node).end:
        # a bare generator argument must get parentheses of its own before it can have company
        builder.add(delta, Span(items.open, items.open), ["("], touched=touched)
        builder.add(delta, Span(items.close, items.close), ["), " + ", ".join(appended)], touched=touched)
        return
    dropped = {argument_span(builder.file, _dropped(node, key)) for key in drop}
    kept = [index for index, item in enumerate(items.items) if item not in dropped]
    separator = ",\n" + builder.place.line_indent(items.items[-1].start) if items.vertical else ", "
    text = separator.join(appended)
    span, emitted = items.insert(kept[-1] + 1, text) if kept else (Span(items.open, items.open), text)
    builder.add(delta, span, [emitted], touched=touched)


def _dropped(node: ast.Call, key: str | int) -> ast.expr | ast.keyword:
    if isinstance(key, int):
        return node.args[key]
    return next(keyword for keyword in node.keywords if keyword.arg == key)


def _argument(
    builder: Builder, delta: Delta, node: ast.Call, key: str | int, *, required: bool
) -> ast.expr | ast.keyword | None:
    if isinstance(key, int):
        if 0 <= key < len(node.args) and not any(isinstance(a, ast.Starred) for a in node.args[: key + 1]):
            return node.args[key]
    else:
        for keyword in node.keywords:
            if keyword.arg == key:
                return keyword
    if required:
        raise builder.fail(
            "PK219",
            f"the call has no argument {key!r}",
            delta,
            at=builder.file.node_span(node).start,
            help="Positions count from 0 and cannot reach behind a starred argument.",
        )
    return None
