"""`call:` change callee, arguments or targets of one call and leave the other arguments alone."""

from __future__ import annotations

import ast

from afd_patchkit.delta.builder import Builder, enclosing_statement
from afd_patchkit.delta.comma import CommaList, call_list
from afd_patchkit.model import CallChange, Code, Delta
from afd_patchkit.patterns.select import Match, compile_pattern
from afd_patchkit.source.text import Span

Argument = ast.expr | ast.keyword


def call(builder: Builder, delta: Delta) -> None:
    """Add the edits of a `call:` delta."""
    change = delta.call
    assert change is not None
    for match in builder.select(delta, change.match, compile_pattern(change.match).kind):
        node = _call_of(builder, delta, match)
        span = builder.file.node_span(node.func)
        if change.callee is not None:
            builder.swap(delta, node.func, span, change.callee, span)
        if change.targets is not None:
            _targets(builder, delta, node, change.targets)
        _arguments(builder, delta, node, change)


def _call_of(builder: Builder, delta: Delta, match: Match) -> ast.Call:
    node: ast.AST | None = match.nodes[0]
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
        node = node.value
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
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


# ---- targets --------------------------------------------------------------------------------------------------------


def _targets(builder: Builder, delta: Delta, node: ast.Call, code: Code) -> None:
    statement = enclosing_statement(builder.symbol, node)
    file, text = builder.file, code.text.strip()
    touched = file.node_span(node.func)
    if not _is_value(statement, node):
        raise builder.fail(
            "PK218", "`targets` needs a statement whose whole value is the call", delta, at=touched.start,
            help="`call(...)`, `target = call(...)` or `target: T = call(...)`; for others use `replace`.",
        )  # fmt: skip
    start = builder.place.start(statement)
    if isinstance(statement, ast.Expr):
        builder.add(delta, Span(start, start), [f"{text} = "], touched=touched, part=True)
        return
    if isinstance(statement, ast.AnnAssign) and _is_single(code):
        end = file.node_span(statement.target).end  # one target keeps the annotation
        if not statement.simple and file.data[start:end].startswith(b"("):
            end = file.data.index(b")", end) + 1
    elif isinstance(statement, ast.AnnAssign):
        end = file.node_span(statement.annotation).end
    else:
        assert isinstance(statement, ast.Assign)
        end = file.node_span(statement.targets[0]).end
        end = start + len(file.data[start : file.data.index(b"=", end)].rstrip())
    builder.add(delta, Span(start, end), [text], touched=Span(start, end))


def _is_value(statement: ast.stmt, node: ast.Call) -> bool:
    if isinstance(statement, ast.Assign) and len(statement.targets) != 1:
        return False
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
    return value is node or (isinstance(value, ast.Await) and value.value is node)


def _is_single(code: Code) -> bool:
    target = ast.parse(f"{code.text.strip()} = 0").body[0]
    return isinstance(target, ast.Assign) and isinstance(target.targets[0], (ast.Name, ast.Attribute, ast.Subscript))


# ---- arguments ------------------------------------------------------------------------------------------------------


def _arguments(builder: Builder, delta: Delta, node: ast.Call, change: CallChange) -> None:
    items, nodes = call_list(builder.file, node)
    touched = builder.file.node_span(node.func)
    appended: list[str] = []
    for key, code in change.set.items():
        found = _argument(builder, delta, node, key, required=isinstance(key, int))
        if found is None:
            appended.append(f"{key}={code.text.strip()}")
            continue
        value = found.value if isinstance(found, ast.keyword) else found
        item, own = items.items[nodes.index(found)], builder.file.node_span(value)
        # the parentheses of a call are not part of a generator that is its only argument
        builder.swap(delta, value, own if item.contains(own) else item, code, item)
    for old, new in change.rename.items():
        _rename(builder, delta, node, items.items[nodes.index(_required(builder, delta, node, old))], new)
    dropped = {nodes.index(_required(builder, delta, node, key)) for key in change.drop}
    if dropped:
        gone = Span(items.items[min(dropped)].start, items.items[max(dropped)].end)
        builder.drop(delta, items, dropped, gone)
    if change.append:
        _positional(builder, delta, node, items, [code.text.strip() for code in change.append], dropped, touched)
    if appended:
        _append(builder, delta, node, items, appended, dropped, touched)


def _rename(builder: Builder, delta: Delta, node: ast.Call, item: Span, new: str) -> None:
    """Give a keyword another name."""
    if any(keyword.arg == new for keyword in node.keywords):
        raise builder.fail(
            "PK219", f"the call has an argument {new!r} already", delta, at=item.start,
            help="Drop that one, or `set` the value instead.",
        )  # fmt: skip
    end = item.start + len(builder.file.data[item.start : builder.file.data.index(b"=", item.start)].rstrip())
    builder.add(delta, Span(item.start, end), [new], touched=item)


def _positional(
    builder: Builder,
    delta: Delta,
    node: ast.Call,
    items: CommaList,
    texts: list[str],
    dropped: set[int],
    touched: Span,
) -> None:
    """Add positional arguments behind the last one of upstream's.

    Args:
        builder: the edits so far.
        delta: whose edits they are.
        node: the call.
        items: its arguments.
        texts: the new ones.
        dropped: numbers of the arguments that the delta takes out.
        touched: bytes whose meaning it depends on, for the lock.
    """
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp):
        _append(builder, delta, node, items, texts, dropped, touched)
        return
    index = len(node.args)
    kept = [number for number in range(len(items.items)) if number not in dropped]
    text = items.separator.join(texts) if items.items else ", ".join(texts)
    if not items.items:
        builder.add_to_empty(delta, items.open, text, touched)
        return
    before, behind = [n for n in kept if n < index], [n for n in kept if n >= index]
    if before:
        cuts = items.insert(before[-1] + 1, text)
    elif behind:
        cuts = items.insert(behind[0], text)
    else:  # in place of what goes
        cuts = [(Span(items.open, items.open), text)]
    for span, emitted in cuts:
        builder.add(delta, span, [emitted], touched=touched)


def _append(
    builder: Builder,
    delta: Delta,
    node: ast.Call,
    items: CommaList,
    appended: list[str],
    dropped: set[int],
    touched: Span,
) -> None:
    file = builder.file
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.GeneratorExp) and file.node_span(only).end == file.node_span(node).end:
        # a bare generator argument must get parentheses of its own before it can have company
        inner = items.items[0]
        builder.add(delta, Span(inner.start, inner.start), ["("], touched=touched)
        builder.add(delta, Span(inner.end, inner.end), ["), " + ", ".join(appended)], touched=touched)
        return
    if not items.items:
        for text in appended:
            builder.add_to_empty(delta, items.open, text, touched)
        return
    kept = [index for index in range(len(items.items)) if index not in dropped]
    text = items.separator.join(appended)
    if kept:
        cuts = items.insert(kept[-1] + 1, text)
    else:  # in place of what goes
        cuts = [(Span(items.open, items.open), text)]
    for span, emitted in cuts:
        builder.add(delta, span, [emitted], touched=touched)


def _required(builder: Builder, delta: Delta, node: ast.Call, key: str | int) -> Argument:
    found = _argument(builder, delta, node, key, required=True)
    assert found is not None
    return found


def _argument(builder: Builder, delta: Delta, node: ast.Call, key: str | int, *, required: bool) -> Argument | None:
    if isinstance(key, int):
        if 0 <= key < len(node.args) and not any(isinstance(a, ast.Starred) for a in node.args[: key + 1]):
            return node.args[key]
    else:
        for keyword in node.keywords:
            if keyword.arg == key:
                return keyword
    if required:
        there = [str(i) if not isinstance(a, ast.Starred) else "*" for i, a in enumerate(node.args)]
        there += [k.arg or "**" for k in node.keywords]
        raise builder.fail(
            "PK219",
            f"the call has no argument {key!r}",
            delta,
            at=builder.file.node_span(node).start,
            help=f"It has: {', '.join(there) or 'none'}. Positions count from 0 and cannot reach behind a starred argument.",
        )
    return None
