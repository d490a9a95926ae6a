"""Operations on statements and expressions; each turns one delta into edits on the pristine symbol."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from afd_patchkit.delta import call_ops, class_ops, clause_ops, element_ops, header_ops
from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.builder import Builder
from afd_patchkit.delta.edits import STATEMENT, Keep, Piece, keeps
from afd_patchkit.delta.place import Suite, width
from afd_patchkit.delta.template import UPSTREAM, Held, statement_pieces
from afd_patchkit.model import Body, ClauseOf, Code, Delta, TakeBody
from afd_patchkit.patterns.select import Match, Window, compile_pattern, find_all, select, select_clause
from afd_patchkit.source.syntax import blocks, docstring_of, line_of
from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import tokens


def apply_delta(builder: Builder, delta: Delta) -> None:
    """Add the edits of one delta.

    Raises:
        DeltaError: an anchor does not match as often as it must, or the operation cannot be done there.
    """
    APPLIED[delta.operation](builder, delta)


def rebind(builder: Builder, delta: Delta) -> None:
    """Names of the body that mean something else here; the name step writes them."""
    assert delta.rebind is not None
    for name, code in delta.rebind.items():
        if name in builder.rebound:
            message = f"`{name}` is rebound twice: by {builder.rebound[name]!r} and by {delta.name!r}"
            raise builder.fail("PK214", message, delta, help="Keep one of the two.")
        builder.rebound[name] = delta.name
        builder.rebind[name] = code


# ---- code that a delta brings ---------------------------------------------------------------------------------------


def body_pieces(builder: Builder, body: Body, indent: str, held: Mapping[str, Held] | None = None) -> tuple[Piece, ...]:
    """Pieces of `with:`/`insert:`; all lines but the first stand behind `indent`.

    Args:
        builder: the edits so far.
        body: code, or what to take from another pin's symbol.
        indent: what stands before each line but the first.
        held: upstream text that placeholders in the code stand for.
    """
    if isinstance(body, TakeBody):
        assert builder.taker is not None
        return (builder.taker(body.take).reindent("", indent, skip_first=True),)
    return statement_pieces(body, held or {}, indent)


def is_inline(pieces: Sequence[Piece]) -> bool:
    """Whether emitted code is simple statements on one line, which may share a line with others."""
    text = "".join(UPSTREAM if isinstance(p, Keep) else p.text if isinstance(p, Buffer) else p for p in pieces)
    plain = Text(text.encode())
    if "\n" in text or any(t.kind == "comment" for t in tokens(plain, 1, 1)):
        return False
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return not any(next(blocks(node), None) for node in body)


# ---- insert ---------------------------------------------------------------------------------------------------------


def insert(builder: Builder, delta: Delta) -> None:
    """`insert:` with `before:`, `after:` or `at:`."""
    if delta.at:
        owner, body = _block(builder, delta)
        suite = builder.place.suite(owner, body)
        documented = isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and docstring_of(body)
        if delta.at == "end":
            insert_behind(builder, delta, suite, len(body) - 1, end=True)
        elif documented:
            insert_behind(builder, delta, suite, 0)
        else:
            insert_before(builder, delta, suite, 0)
        return
    code = delta.before or delta.after
    assert code is not None
    for match in builder.select(delta, code):
        assert match.body is not None
        suite = builder.place.suite(match.owner, match.body)
        if delta.before:
            insert_before(builder, delta, suite, match.index, match.span)
        else:
            insert_behind(builder, delta, suite, match.index + len(match.nodes) - 1, match.span)


def _block(builder: Builder, delta: Delta) -> tuple[ast.AST, Sequence[ast.stmt]]:
    """The suite that `at:` speaks of: of the symbol, or of what `within` names."""
    within, windows = delta.within, builder.windows
    if within is None:
        if windows is not None:
            raise builder.fail(
                "PK215",
                "`at` in a nested delta needs `within`",
                delta,
                help="Say which block: give `within`, or use `before`/`after`.",
            )
        node = builder.definition(delta)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            raise builder.fail(
                "PK215", f"{builder.symbol.reference} has no body", delta, help="`at` needs a function or class."
            )
        return node, node.body
    if isinstance(within, ClauseOf):
        clause = select_clause(within, builder.symbol, entry=builder.entry, delta=delta.name, windows=windows)
        return clause.node, clause.suite
    (match,) = select(
        compile_pattern(within, "statements"), builder.symbol, entry=builder.entry, delta=delta.name, windows=windows
    )
    builder.matches.setdefault(delta.name, []).append(match)
    body = getattr(match.nodes[0], "body", None)
    if len(match.nodes) != 1 or not isinstance(body, list):
        raise builder.fail(
            "PK215", "`within` names a statement without a body", delta, at=match.span.start,
            help="`at` needs a compound statement; for one of its clauses write `{of: ..., clause: ...}`.",
        )  # fmt: skip
    return match.nodes[0], body


def insert_before(builder: Builder, delta: Delta, suite: Suite, index: int, touched: Span | None = None) -> None:
    """Put `insert:` before statement `index`.

    Args:
        builder: the edits so far.
        delta: the delta.
        suite: the block.
        index: number of the statement in the block.
        touched: bytes whose meaning it depends on, for the lock; the statement by default.
    """
    assert delta.insert is not None
    start = builder.place.start(suite.body[index])
    touched = touched or builder.file.node_span(suite.body[index])
    pieces = body_pieces(builder, delta.insert, suite.indent)
    if not builder.alone(suite, index):
        if not suite.inline and is_inline(pieces):
            builder.add_inline(delta, suite, index, start, [*pieces, "; "], touched)
            return
        builder.break_lines(delta, suite, index)
    builder.put_before(delta, suite, index, pieces, touched)


def insert_behind(
    builder: Builder, delta: Delta, suite: Suite, index: int, touched: Span | None = None, *, end: bool = False
) -> None:
    """Put `insert:` behind statement `index`; with `end` below the comments that end the block, too.

    Args:
        builder: the edits so far.
        delta: the delta.
        suite: the block.
        index: number of the statement in the block.
        touched: bytes whose meaning it depends on, for the lock; the statement by default.
        end: the statement ends the block, and the code goes below its last comments.
    """
    assert delta.insert is not None
    body, place = suite.body, builder.place
    last = builder.file.node_span(body[index]).end
    touched = touched or builder.file.node_span(body[index])
    pieces = body_pieces(builder, delta.insert, suite.indent)
    shared = index + 1 < len(body) and not suite.own_line(index + 1)
    if shared and not suite.inline and not builder.alone(suite, index + 1) and is_inline(pieces):
        builder.add_inline(delta, suite, index + 1, last, ["; ", *pieces], touched)
        return
    builder.break_lines(delta, suite, index + 1)
    if not shared:
        header = place.line_indent(builder.file.offset(line_of(suite.owner))) if end and suite.indent else None
        last = builder.kept(place.end(body[index], header), place.end(body[index]))
    builder.add(
        delta,
        Span(last, last),
        ["\n" + suite.indent, *pieces],
        touched=touched,
        order=(-width(suite.indent), STATEMENT),
        indent=suite.indent,
    )


# ---- replace, remove ------------------------------------------------------------------------------------------------


def replace(builder: Builder, delta: Delta) -> None:
    """`replace:` with `with:`; `__upstream__` and `parts` keep upstream text inside."""
    assert delta.replace is not None
    assert delta.with_ is not None
    for match in builder.statements(delta, delta.replace):
        assert match.body is not None
        suite = builder.place.suite(match.owner, match.body)
        first, last = match.index, match.index + len(match.nodes) - 1
        region = suite.region(first, last)
        only = match.nodes[0].value if len(match.nodes) == 1 and isinstance(match.nodes[0], ast.Expr) else None
        held = {UPSTREAM: Held(builder.file, region, suite.indent, value=only)}
        for name, code in delta.parts.items():
            held[f"__{name}__"] = _part(builder, delta, match, name, code)
        # a one-line body stays on its line when the new code fits there
        inline = not builder.alone(suite, first) or (last + 1 < len(suite.body) and not builder.alone(suite, last + 1))
        pieces = body_pieces(builder, delta.with_, suite.indent, held)
        if inline and not is_inline(pieces):
            builder.break_lines(delta, suite, first, last + 1)
        whole = Span(builder.owned(delta, suite, first), region.end) if not keeps(pieces) else region
        edit = builder.add(delta, whole, pieces, touched=region, indent=suite.indent)
        if delta.deltas:
            _nested(builder, delta, match, edit.id)


def _nested(builder: Builder, delta: Delta, match: Match, parent: int) -> None:
    outer = builder.windows
    builder.windows = [Window(match.siblings, match.index, match.end, match.owner)]
    builder.parents.append(parent)
    try:
        for inner in delta.deltas:
            apply_delta(builder, inner)
    finally:
        builder.parents.pop()
        builder.windows = outer
    keeps = builder.edits[parent].keeps
    for edit in builder.edits:
        if edit.parent == parent and not any(keep.contains(edit.span) for keep in keeps):
            raise builder.fail(
                "PK217",
                f"nested delta {edit.delta!r} lies outside the upstream text that {delta.name!r} keeps",
                delta,
                at=edit.span.start,
                help="Nest only changes of the kept text (`__upstream__` or a part); move others to the top level.",
            )


def _part(builder: Builder, delta: Delta, match: Match, name: str, code: Code) -> Held:
    """A named piece of the replaced text: statements, or else an expression."""
    window = Window(match.siblings, match.index, match.end, match.owner)
    pattern = compile_pattern(code)
    kinds = ["statements", "expression"] if pattern.kind == "expression" else ["statements"]
    for kind in kinds:
        pattern = compile_pattern(code, "statements" if kind == "statements" else "expression")
        found = find_all(pattern, [window], builder.file)
        if len(found) > 1:
            raise builder.fail(
                "PK202", f"part {name!r} matches {len(found)} places of the replaced text", delta, at=match.span.start,
                details=tuple(f"candidate: {builder.file.position(m.span.start)}" for m in found),
                help="Write more of it; a part is one piece of the replaced text.",
            )  # fmt: skip
        if found:
            return _held_part(builder, delta, found[0])
    raise builder.fail(
        "PK201", f"part {name!r} matches nothing in the replaced text", delta, at=match.span.start,
        help="A part is statements or an expression inside what `replace` matches.",
    )  # fmt: skip


def _held_part(builder: Builder, delta: Delta, found: Match) -> Held:
    builder.matches.setdefault(delta.name, []).append(found)
    node = found.nodes[0]
    if found.body is None:
        assert isinstance(node, ast.expr)
        return Held(builder.file, found.span, builder.place.line_indent(found.span.start), node)
    suite = builder.place.suite(found.owner, found.body)
    region = suite.region(found.index, found.index + len(found.nodes) - 1)
    value = node.value if len(found.nodes) == 1 and isinstance(node, ast.Expr) else None
    return Held(builder.file, region, suite.indent, value=value)


def remove(builder: Builder, delta: Delta) -> None:
    """`remove:`; a block that would be empty gets `pass`."""
    assert delta.remove is not None
    for match in builder.statements(delta, delta.remove):
        assert match.body is not None
        builder.remove(
            delta, builder.place.suite(match.owner, match.body), match.index, match.index + len(match.nodes) - 1
        )


# ---- expr -----------------------------------------------------------------------------------------------------------


def expression(builder: Builder, delta: Delta) -> None:
    """Do `expr:`: replace expressions by what `with:` says."""
    assert delta.expr is not None
    assert isinstance(delta.with_, Code)
    for match in builder.select(delta, delta.expr, "expression"):
        node = match.nodes[0]
        assert isinstance(node, ast.expr)
        builder.swap(delta, node, match.span, delta.with_, match.span)


APPLIED: Mapping[str, Callable[[Builder, Delta], None]] = {
    "insert": insert,
    "replace": replace,
    "remove": remove,
    "expr": expression,
    "call": call_ops.call,
    "elements": element_ops.elements,
    "clause": clause_ops.clause,
    "parameter": header_ops.parameter,
    "returns": header_ops.returns,
    "decorator": header_ops.decorator,
    "member": class_ops.member,
    "field": class_ops.member,
    "rebind": rebind,
}
"""How each operation of `afd_patchkit.operations` is applied."""
