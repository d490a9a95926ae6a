"""`parameter`, `returns`, `decorator`: declared changes of a function's or class's header."""

from __future__ import annotations

import ast

from afd_patchkit.delta.comma import CommaList, parameter_list
from afd_patchkit.delta.operations import Builder
from afd_patchkit.delta.patterns import compile_pattern, equal
from afd_patchkit.manifest.model import Code, Delta
from afd_patchkit.source.locate import DefinitionNode, FunctionNode, first_line
from afd_patchkit.source.text import Span
from afd_patchkit.source.tokens import significant, tokens


def _function(builder: Builder, delta: Delta) -> FunctionNode:
    node = builder.symbol.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise builder.fail("PK215", f"{builder.symbol.reference} is not a function", delta)
    return node


def parameter(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `parameter:` delta."""
    change = delta.parameter
    assert change is not None
    items, names = parameter_list(builder.file, _function(builder, delta))
    touched = Span(items.open, items.close)
    for name in (change.replace, change.remove, change.before, change.after):
        if name is not None and name not in names:
            raise builder.fail("PK219", f"{builder.symbol.reference} has no parameter {name!r}", delta, at=items.open)
    if change.remove is not None:
        span, text = items.remove(names.index(change.remove))
        builder.add(delta, span, [text] if text else [], touched=touched)
    elif change.replace is not None:
        assert isinstance(delta.with_, Code)
        builder.add(delta, items.items[names.index(change.replace)], [delta.with_.text.strip()], touched=touched)
    else:
        assert change.add is not None
        text = change.add.text.strip()
        name = text.lstrip("*").split(":")[0].split("=")[0].strip()
        if name in names:
            raise builder.fail(
                "PK221",
                f"{builder.symbol.reference} has a parameter {name!r} already",
                delta,
                at=items.open,
                help="Upstream may have absorbed the delta: delete it, or `replace` the parameter.",
            )
        index = _index(names, items, change.before, change.after, keyword_only=change.kind == "keyword-only")
        if change.kind == "keyword-only" and not any(n == "*" or _is_star(builder, items, i) for i, n in enumerate(names)):
            separator = ",\n" + builder.place.line_indent(items.items[0].start) if items.vertical else ", "
            text = f"*{separator}{text}"
        span, emitted = items.insert(index, text)
        builder.add(delta, span, [emitted], touched=touched)


def _is_star(builder: Builder, items: CommaList, index: int) -> bool:
    text = builder.file.slice(items.items[index])
    return text.startswith("*") and not text.startswith("**")


def _index(names: list[str], items: CommaList, before: str | None, after: str | None, *, keyword_only: bool) -> int:
    if before is not None:
        return names.index(before)
    if after is not None:
        return names.index(after) + 1
    count = len(names)
    texts = [items.file.slice(span) for span in items.items]
    if texts and texts[-1].startswith("**"):
        count -= 1
    if keyword_only:
        return count
    for index, text in enumerate(texts):  # a plain parameter goes before `*`, `*args`
        if text.startswith("*"):
            return index
    return count


def returns(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `returns:` delta."""
    assert delta.returns is not None
    node = _function(builder, delta)
    items, _ = parameter_list(builder.file, node)
    text = delta.returns.text.strip()
    close = items.close + 1
    if node.returns is None:
        if text == "none":
            raise builder.fail("PK221", f"{builder.symbol.reference} has no return annotation to remove", delta, at=close)
        builder.add(delta, Span(close, close), [f" -> {text}"], touched=Span(items.open, close))
        return
    span = builder.file.node_span(node.returns)
    if text == "none":
        builder.add(delta, Span(close, _end_of_annotation(builder, node, span.end)), [], touched=span)
    else:
        builder.add(delta, span, [text], touched=span)


def _end_of_annotation(builder: Builder, node: FunctionNode, end: int) -> int:
    """Offset of the header's colon: redundant brackets around the annotation go with it."""
    start = builder.file.offset(node.body[0].lineno, node.body[0].col_offset)
    found = tokens(builder.file, builder.file.line_of(end), builder.file.line_of(start))
    return next(t.span.start for t in significant(found) if t.span.start >= end and t.text == ":")


def decorator(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `decorator:` delta."""
    change = delta.decorator
    node = builder.symbol.node
    assert change is not None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        raise builder.fail("PK215", f"{builder.symbol.reference} takes no decorators", delta)
    indent = builder.symbol.indent
    if change.add is not None:
        text = "@" + change.add.text.strip().removeprefix("@") + "\n" + indent
        point = _decorator_point(builder, delta, node, change.before, change.after)
        builder.add(delta, Span(point, point), [text], touched=Span(point, point))
        return
    code = change.replace or change.remove
    assert code is not None
    span = _decorator_span(builder, delta, node, code)
    if change.replace is not None:
        assert isinstance(delta.with_, Code)
        builder.add(delta, span, ["@" + delta.with_.text.strip().removeprefix("@")], touched=span)
    else:
        builder.add(delta, span, [], touched=span)


def _decorator_point(
    builder: Builder, delta: Delta, node: DefinitionNode, before: Code | None, after: Code | None
) -> int:
    if before is not None:
        return _decorator_span(builder, delta, node, before).start
    if after is None:  # outermost
        start = builder.file.starts[first_line(node) - 1]
        return start + len(builder.symbol.indent.encode())
    span = _decorator_span(builder, delta, node, after)
    following = [d for d in node.decorator_list if builder.file.node_span(d).start > span.end]
    line = following[0].lineno if following else node.lineno
    return builder.file.starts[line - 1] + len(builder.symbol.indent.encode())


def _decorator_span(builder: Builder, delta: Delta, node: DefinitionNode, code: Code) -> Span:
    """Bytes of one decorator from its `@` to the end of its line."""
    plain = Code(code.text.strip().removeprefix("@"), code.position, code.indent)
    pattern = compile_pattern(plain, "expression")
    found = [d for d in node.decorator_list if equal(pattern, d)]
    if len(found) != 1:
        raise builder.fail(
            "PK201" if not found else "PK202",
            f"{len(found)} decorators of {builder.symbol.reference} match `{plain.text}`",
            delta,
            at=builder.file.offset(first_line(node)),
            help="Decorators: " + (", ".join("@" + builder.file.slice(builder.file.node_span(d)) for d in node.decorator_list) or "none"),
        )
    span = builder.file.node_span(found[0])
    start = builder.file.data.rindex(b"@", 0, span.start)
    return Span(start, builder.place.line_end(span.end))
