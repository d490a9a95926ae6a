"""`parameter`, `returns`, `decorator`: declared changes of a function's or class's header."""

from __future__ import annotations

import ast

from afd_patchkit.delta.builder import Builder, Parameters
from afd_patchkit.delta.comma import CommaList, Cut, parameter_list
from afd_patchkit.model import ClauseOf, Code, Delta, ParameterChange
from afd_patchkit.patterns.select import compile_pattern, equal, select
from afd_patchkit.source.locate import DefinitionNode, FunctionNode
from afd_patchkit.source.text import Span
from afd_patchkit.source.tokens import significant, tokens_in


def _definition(builder: Builder, delta: Delta) -> ast.AST:
    """The definition whose header is meant: the symbol's own, or that of a nested one which `within` names."""
    if delta.within is None:
        return builder.definition(delta)
    if isinstance(delta.within, ClauseOf):
        raise builder.fail("PK215", "a clause has no header", delta, help="`within` must match one nested definition.")
    (match,) = select(
        compile_pattern(delta.within, "statements"),
        builder.symbol,
        entry=builder.entry,
        delta=delta.name,
        windows=builder.windows,
    )
    builder.matches.setdefault(delta.name, []).append(match)
    return match.nodes[0]


def _function(builder: Builder, delta: Delta) -> FunctionNode:
    node = _definition(builder, delta)
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise builder.fail(
            "PK215",
            f"{'what `within` matches' if delta.within else builder.symbol.reference} is not a function",
            delta,
            help="It works on functions only.",
        )
    return node


def _called(builder: Builder, delta: Delta) -> str:
    return builder.symbol.reference if delta.within is None else f"the nested function of {builder.symbol.reference}"


# ---- parameters -----------------------------------------------------------------------------------------------------


def parameter(builder: Builder, delta: Delta) -> None:
    """Add the edits of a `parameter:` delta."""
    change = delta.parameter
    assert change is not None
    node = _function(builder, delta)
    if node.lineno not in builder.parameters:
        builder.parameters[node.lineno] = Parameters(*parameter_list(builder.file, node))
    known = builder.parameters[node.lineno]
    items, names = known.items, known.names
    touched = Span(items.open, items.close)
    for name in (change.replace, change.remove, change.before, change.after):
        if name is not None and name not in names:
            there = ", ".join(n for n in names if n.isidentifier()) or "none"
            raise builder.fail(
                "PK219",
                f"{_called(builder, delta)} has no parameter {name!r}",
                delta,
                at=items.open,
                help=f"It has: {there}.",
            )
    if change.remove is not None:
        index = names.index(change.remove)
        builder.drop(delta, items, {index}, touched)
        known.removed[index] = delta
    elif change.replace is not None:
        assert isinstance(delta.with_, Code)
        builder.add(delta, items.items[names.index(change.replace)], [delta.with_.text.strip()], touched=touched)
    else:
        _add(builder, delta, change, known, touched)


def finish(builder: Builder) -> None:
    """Take out a `*` or `/` that cannot stand any more, once all deltas are known."""
    for found in builder.parameters.values():
        _finish(builder, found)


def _finish(builder: Builder, found: Parameters) -> None:
    names, removed = found.names, found.removed
    touched = Span(found.items.open, found.items.close)
    if "*" in names:
        star = names.index("*")
        behind = [i for i in range(star + 1, len(names)) if not _text(found.items, i).startswith("**")]
        if all(i in removed for i in behind) and not any(keyword for _, keyword in found.added):
            builder.drop(removed[behind[-1]], found.items, {star}, touched)
    if "/" in names:
        slash = names.index("/")
        if all(i in removed for i in range(slash)) and not any(index <= slash for index, _ in found.added):
            builder.drop(removed[slash - 1], found.items, {slash}, touched)


def _text(items: CommaList, index: int) -> str:
    return items.file.slice(items.items[index])


def _add(builder: Builder, delta: Delta, change: ParameterChange, there: Parameters, touched: Span) -> None:
    assert change.add is not None
    items, names = there.items, there.names
    text = change.add.text.strip()
    name = text.lstrip("*").split(":")[0].split("=")[0].strip()
    if name in names:
        raise builder.fail(
            "PK221",
            f"{_called(builder, delta)} has a parameter {name!r} already",
            delta,
            at=items.open,
            help="Upstream may have absorbed the delta: delete it, or `replace` the parameter.",
        )
    keyword_only = change.kind == "keyword-only"
    if not names:
        builder.add_to_empty(delta, items.open, text, touched, star=keyword_only, last=text.startswith("*"))
        return
    stars = [i for i, span in enumerate(items.items) if _is_star(items.file.slice(span))]
    index = _index(names, items, change, stars)
    if keyword_only:
        _check_keyword_only(builder, delta, items, index, stars, _plain_end(items))
    if keyword_only and not stars and not any(keyword for _, keyword in there.added):
        text = f"*{items.separator}{text}"
    there.added.append((index, keyword_only or bool(stars and index > stars[0])))
    cuts: list[Cut] = items.insert(index, text)
    for span, emitted in cuts:
        builder.add(delta, span, [emitted], touched=touched, order=(0, int(keyword_only)))


def _is_star(text: str) -> bool:
    return text.startswith("*") and not text.startswith("**")


def _plain_end(items: CommaList) -> int:
    """Index behind the last parameter that is not `**kwargs`."""
    return len(items.items) - int(items.file.slice(items.items[-1]).startswith("**"))


def _index(names: list[str], items: CommaList, change: ParameterChange, stars: list[int]) -> int:
    if change.before is not None:
        return names.index(change.before)
    if change.after is not None:
        return names.index(change.after) + 1
    if change.kind == "keyword-only" or (change.add and change.add.text.lstrip().startswith("*")) or not stars:
        # a new `**kwargs` goes to the very end
        last = change.add is not None and change.add.text.lstrip().startswith("**")
        return len(names) if last else _plain_end(items)
    return stars[0]  # a plain parameter goes before `*`, `*args`


def _check_keyword_only(
    builder: Builder, delta: Delta, items: CommaList, index: int, stars: list[int], end: int
) -> None:
    if (stars and index <= stars[0]) or (not stars and index != end):
        raise builder.fail(
            "PK219",
            "a keyword-only parameter cannot go there: it must stand behind the `*`, and none of upstream's parameters may "
            "come to stand behind a new one",
            delta,
            at=items.open,
            help="Leave out `before` and `after`.",
        )


# ---- returns --------------------------------------------------------------------------------------------------------


def returns(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `returns:` delta."""
    assert delta.returns is not None
    node = _function(builder, delta)
    items, _ = parameter_list(builder.file, node)
    text = delta.returns.text.strip()
    close = items.close + 1
    if node.returns is None:
        if text == "none":
            raise builder.fail(
                "PK221", f"{builder.symbol.reference} has no return annotation to remove", delta, at=close,
                help='Delete the delta; to annotate with None, write "None".',
            )  # fmt: skip
        builder.add(delta, Span(close, close), [f" -> {text}"], touched=Span(items.open, close))
        return
    span = builder.file.node_span(node.returns)
    if text == "none":
        builder.add(delta, Span(close, _header_colon(builder, node, span.end)), [], touched=span)
    else:
        builder.add(delta, span, [text], touched=span)


def _header_colon(builder: Builder, node: FunctionNode, end: int) -> int:
    """Offset of the header's colon: redundant brackets around the annotation go with it."""
    start = builder.file.offset(node.body[0].lineno, node.body[0].col_offset)
    return next(t.span.start for t in significant(tokens_in(builder.file, Span(end, start))) if t.text == ":")


# ---- decorators -----------------------------------------------------------------------------------------------------


def decorator(builder: Builder, delta: Delta) -> None:
    """Add the edit of a `decorator:` delta."""
    change = delta.decorator
    node = _definition(builder, delta)
    assert change is not None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        raise builder.fail(
            "PK215",
            f"{builder.symbol.reference} takes no decorators",
            delta,
            help="Only functions and classes have any.",
        )
    indent = builder.place.line_indent(builder.file.node_span(node).start)
    if change.add is not None:
        point = _decorator_point(builder, delta, node, change.before, change.after)
        builder.add(delta, Span(point, point), [_line(change.add, indent) + "\n" + indent], touched=Span(point, point))
        return
    code = change.replace or change.remove
    assert code is not None
    span = _decorator_span(builder, delta, node, code)
    if change.replace is not None:
        assert isinstance(delta.with_, Code)
        builder.add(delta, span, [_line(delta.with_, indent)], touched=span)
    else:
        builder.add(delta, span, [], touched=span)


def _line(code: Code, indent: str) -> str:
    return ("@" + code.text.strip().removeprefix("@")).replace("\n", "\n" + indent)


def _decorator_point(
    builder: Builder, delta: Delta, node: DefinitionNode, before: Code | None, after: Code | None
) -> int:
    if before is not None:
        return _decorator_span(builder, delta, node, before).start
    if after is None:  # outermost
        return builder.place.start(node)
    span = _decorator_span(builder, delta, node, after)
    following = [s.start for s in (_bytes(builder, d, node) for d in node.decorator_list) if s.start > span.start]
    return min([*following, builder.file.node_span(node).start])


def _bytes(builder: Builder, found: ast.expr, node: DefinitionNode) -> Span:
    """From a decorator's `@` to the end of its line, the closing brackets of redundant parentheses included."""
    span = builder.file.node_span(found)
    start = builder.file.data.rindex(b"@", 0, span.start)
    end = span.end
    for token in tokens_in(builder.file, Span(span.end, builder.file.node_span(node).start)):
        if token.text == ")":
            end = token.span.end
        elif token.kind not in ("nl", "newline", "comment"):
            break
    return Span(start, builder.place.line_end(end))


def _decorator_span(builder: Builder, delta: Delta, node: DefinitionNode, code: Code) -> Span:
    """Bytes of the one decorator that `code` matches."""
    plain = Code(code.text.strip().removeprefix("@"), code.position, code.indent)
    pattern = compile_pattern(plain, "expression")
    found = [d for d in node.decorator_list if equal(pattern, d)]
    if len(found) != 1:
        there = ", ".join("@" + builder.file.slice(builder.file.node_span(d)) for d in node.decorator_list)
        raise builder.fail(
            "PK202" if found else "PK201",
            f"{len(found) or 'no'} decorator{'s' if len(found) > 1 else ''} of {builder.symbol.reference} "
            f"match{'' if len(found) > 1 else 'es'} `{plain.text}`",
            delta,
            help=f"It has: {there or 'none'}.",
        )
    return _bytes(builder, found[0], node)
