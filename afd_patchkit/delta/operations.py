"""Operations: each turns one delta into edits on the pristine symbol."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.edits import Edit, Piece
from afd_patchkit.delta.patterns import Match, compile_pattern, find_all, find_range, select, select_clause
from afd_patchkit.delta.place import INDENT, Place, docstring_of
from afd_patchkit.delta.template import UPSTREAM, Held, expression_pieces, statement_pieces
from afd_patchkit.errors import DeltaError
from afd_patchkit.manifest.model import Body, ClauseOf, Code, Delta, Pattern, Range, Take, TakeBody
from afd_patchkit.review.finding import finding
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import SourceFile, Span


@dataclass
class Builder:
    """Collects the edits of one entry.

    Attributes:
        symbol: the pristine symbol.
        entry: `module.py::name`, for findings.
        taker: renders the text of a `take:`.
        edits: what has been built so far.
        matches: per delta name, the anchors found (for the lock).
        rebind: names the deltas declare to mean something else.
    """

    symbol: Symbol
    entry: str
    taker: Callable[[Take], Buffer] | None = None
    edits: list[Edit] = field(default_factory=list)
    matches: dict[str, list[Match]] = field(default_factory=dict)
    rebind: dict[str, Code] = field(default_factory=dict)
    parents: list[int] = field(default_factory=list)

    @property
    def file(self) -> SourceFile:
        """The symbol's file."""
        return self.symbol.file

    @property
    def place(self) -> Place:
        """Statement arithmetic on that file."""
        return Place(self.symbol.file)

    def add(
        self,
        delta: Delta,
        span: Span,
        pieces: Sequence[Piece],
        *,
        touched: Span | None = None,
        layer: int = 1,
    ) -> Edit:
        """Record an edit of `delta`."""
        edit = Edit(
            id=len(self.edits),
            span=span,
            pieces=tuple(pieces),
            delta=delta.name,
            operation=delta.operation,
            layer=layer,
            parent=self.parents[-1] if self.parents else None,
            touched=touched,
            where=delta.where,
        )
        self.edits.append(edit)
        return edit

    def select(self, delta: Delta, code: Code, kind: str = "statements") -> list[Match]:
        """The matches of a pattern of `delta`, narrowed and counted as it says."""
        pattern = compile_pattern(code, "expression" if kind == "expression" else "statements")
        found = select(
            pattern,
            self.symbol,
            within=delta.within,
            next_to=delta.next_to,
            nth=delta.nth,
            count=delta.count,
            entry=self.entry,
            delta=delta.name,
        )
        self.matches.setdefault(delta.name, []).extend(found)
        return found

    def fail(self, code: str, message: str, delta: Delta, *, help: str | None = None, at: int | None = None) -> DeltaError:  # noqa: A002
        """A `DeltaError` at this delta."""
        return DeltaError(
            finding(
                code,
                message,
                entry=self.entry,
                delta=delta.name,
                manifest=delta.where,
                upstream=self.symbol.position if at is None else self.file.position(at),
                help=help,
            )
        )


def apply_delta(builder: Builder, delta: Delta) -> None:
    """Add the edits of one delta.

    Raises:
        DeltaError: an anchor does not match as often as it must, or the operation cannot be done there.
    """
    from afd_patchkit.delta import call_ops, class_ops, clause_ops, header_ops

    table: Mapping[str, Callable[[Builder, Delta], None]] = {
        "insert": insert,
        "replace": replace,
        "remove": remove,
        "expr": expression,
        "call": call_ops.call,
        "clause": clause_ops.clause,
        "parameter": header_ops.parameter,
        "returns": header_ops.returns,
        "decorator": header_ops.decorator,
        "member": class_ops.member,
        "field": class_ops.member,
        "rebind": rebind,
    }
    table[delta.operation](builder, delta)


def rebind(builder: Builder, delta: Delta) -> None:
    """Names of the body that mean something else here; the name step writes them."""
    assert delta.rebind is not None
    for name, code in delta.rebind.items():
        if name in builder.rebind:
            raise builder.fail("PK214", f"`{name}` is rebound twice", delta)
        builder.rebind[name] = code


# ---- code that a delta brings ---------------------------------------------------------------------------------------


def body_pieces(builder: Builder, body: Body, indent: str, held: Mapping[str, Held] | None = None) -> tuple[Piece, ...]:
    """Pieces of `with:`/`insert:`; all lines but the first stand behind `indent`."""
    if isinstance(body, TakeBody):
        assert builder.taker is not None
        return (builder.taker(body.take).reindent("", indent, skip_first=True),)
    return statement_pieces(body, held or {}, indent)


def is_inline(pieces: Sequence[Piece]) -> bool:
    """Whether emitted code is simple statements on one line, which may share a line with others."""
    text = "".join(piece.text if isinstance(piece, Buffer) else piece for piece in pieces if not hasattr(piece, "span"))
    if "\n" in text or text.lstrip().startswith(("#", "@")):
        return False
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return all(not hasattr(node, "body") and not isinstance(node, ast.Match) for node in body)


# ---- insert ---------------------------------------------------------------------------------------------------------


def insert(builder: Builder, delta: Delta) -> None:
    """`insert:` with `before:`, `after:` or `at:`."""
    if delta.at:
        for owner, body in _suites(builder, delta):
            _insert_at(builder, delta, owner, body, delta.at)
        return
    code = delta.before or delta.after
    assert code is not None
    for match in builder.select(delta, code):
        body = _body(match)
        last = match.index + len(match.nodes) - 1
        index = match.index if delta.before else last + 1
        _insert_statement(builder, delta, match.owner, body, index, match.span)


def _body(match: Match) -> Sequence[ast.stmt]:
    assert match.body is not None
    return match.body


def _suites(builder: Builder, delta: Delta) -> list[tuple[ast.AST, Sequence[ast.stmt]]]:
    """The suites that `at:` speaks of: of the symbol, or of what `within` names."""
    within = delta.within
    if within is None:
        node = builder.symbol.node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            raise builder.fail("PK215", f"{builder.symbol.reference} has no body", delta)
        return [(node, node.body)]
    if isinstance(within, ClauseOf):
        clause = select_clause(within, builder.symbol, entry=builder.entry, delta=delta.name)
        return [(clause.node, clause.suite)]
    (match,) = select(
        compile_pattern(within, "statements"), builder.symbol,
        within=None, next_to=None, nth=None, count=1, entry=builder.entry, delta=delta.name,
    )  # fmt: skip
    builder.matches.setdefault(delta.name, []).append(match)
    body = getattr(match.nodes[0], "body", None)
    if len(match.nodes) != 1 or not isinstance(body, list):
        raise builder.fail("PK215", "`within` names a statement without a body", delta, at=match.span.start)
    return [(match.nodes[0], body)]


def _insert_at(builder: Builder, delta: Delta, owner: ast.AST, body: Sequence[ast.stmt], at: str) -> None:
    if at == "end":
        index = len(body)
    else:
        documented = isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and docstring_of(body)
        index = 1 if documented else 0
    neighbour = body[index - 1] if index == len(body) else body[index]
    _insert_statement(builder, delta, owner, body, index, builder.file.node_span(neighbour))


def _insert_statement(
    builder: Builder, delta: Delta, owner: ast.AST, body: Sequence[ast.stmt], index: int, touched: Span
) -> None:
    """Insert before `body[index]`, or behind the last statement."""
    assert delta.insert is not None
    place, layer = builder.place, 1
    colon = place.one_line_suite(owner, body)
    after = index > 0 and (delta.before is None)
    neighbour = body[index - 1] if after else body[index]
    indent = place.column(neighbour) if colon is None else place.column(neighbour) + INDENT
    pieces = body_pieces(builder, delta.insert, indent)
    if colon is not None:
        _explode(builder, delta, body, colon, indent, index, pieces, touched)
        return
    if after:
        _insert_behind(builder, delta, body, index, indent, pieces, touched, layer)
        return
    if place.starts_line(neighbour):
        point = place.before(body, index, owner)
        builder.add(delta, Span(point, point), [*pieces, "\n" + indent], touched=touched, layer=layer)
    else:  # `a; b`: before b
        gap = Span(builder.file.node_span(body[index - 1]).end, place.start(neighbour))
        joint = ("; ", "; ") if is_inline(pieces) else ("\n" + indent, "\n" + indent)
        builder.add(delta, gap, [joint[0], *pieces, joint[1]], touched=touched, layer=layer)


def _insert_behind(
    builder: Builder,
    delta: Delta,
    body: Sequence[ast.stmt],
    index: int,
    indent: str,
    pieces: Sequence[Piece],
    touched: Span,
    layer: int,
) -> None:
    place, previous = builder.place, body[index - 1]
    if index < len(body) and not place.starts_line(body[index]):  # `a; b`: behind a
        gap = Span(builder.file.node_span(previous).end, place.start(body[index]))
        joint = ("; ", "; ") if is_inline(pieces) else ("\n" + indent, "\n" + indent)
        builder.add(delta, gap, [joint[0], *pieces, joint[1]], touched=touched, layer=layer)
        return
    end = place.end(previous)
    builder.add(delta, Span(end, end), ["\n" + indent, *pieces], touched=touched, layer=layer)


def _explode(
    builder: Builder,
    delta: Delta,
    body: Sequence[ast.stmt],
    colon: int,
    indent: str,
    index: int,
    pieces: Sequence[Piece],
    touched: Span,
) -> None:
    """Give the statements of a one-line suite lines of their own, with `pieces` before statement `index`.

    One edit for each gap, so that the statements themselves stay untouched.
    """
    file, place = builder.file, builder.place
    line = "\n" + indent
    for number, node in enumerate(body):
        start = colon if number == 0 else file.node_span(body[number - 1]).end
        middle = [*pieces, line] if number == index else []
        builder.add(delta, Span(start, place.start(node)), [line, *middle], touched=touched)
    if index == len(body):
        end = place.end(body[-1])
        builder.add(delta, Span(end, end), [line, *pieces], touched=touched)


# ---- replace, remove ------------------------------------------------------------------------------------------------


def match_statements(builder: Builder, delta: Delta, pattern: Pattern) -> list[Match]:
    """Matches of a statement pattern or range."""
    if isinstance(pattern, Range):
        match = find_range(
            pattern, builder.symbol, within=delta.within, next_to=delta.next_to, nth=delta.nth,
            entry=builder.entry, delta=delta.name,
        )  # fmt: skip
        builder.matches.setdefault(delta.name, []).append(match)
        return [match]
    return builder.select(delta, pattern)


def _statements(match: Match) -> list[ast.stmt]:
    return [node for node in match.nodes if isinstance(node, ast.stmt)]


def _region(builder: Builder, match: Match) -> Span:
    """What a replaced run covers: whole lines' content where nothing else stands on its last line."""
    place, nodes = builder.place, _statements(match)
    body = _body(match)
    last = match.index + len(nodes) - 1
    shared = last + 1 < len(body) and not place.starts_line(body[last + 1])
    end = builder.file.node_span(nodes[-1]).end if shared else place.end(nodes[-1])
    return Span(place.start(nodes[0]), end)


def replace(builder: Builder, delta: Delta) -> None:
    """`replace:` with `with:`; `__upstream__` and `parts` keep upstream text inside."""
    assert delta.replace is not None
    assert delta.with_ is not None
    for match in match_statements(builder, delta, delta.replace):
        place, nodes = builder.place, _statements(match)
        region = _region(builder, match)
        colon = place.one_line_suite(match.owner, _body(match))
        column = place.column(nodes[0])
        held = {UPSTREAM: Held(region, column)}
        for name, code in delta.parts.items():
            held[f"__{name}__"] = _part(builder, delta, match, name, code)
        indent = column if colon is None else column + INDENT
        pieces = body_pieces(builder, delta.with_, indent, held)
        multiline = colon is not None and not is_inline(pieces)
        if multiline and len(_body(match)) > len(nodes):
            raise builder.fail(
                "PK216",
                "a block cannot replace one of several statements on one line",
                delta,
                at=region.start,
                help="Replace the whole compound statement.",
            )
        start = region.start
        if multiline:
            assert colon is not None
            region, pieces = Span(colon, region.end), ("\n" + indent, *pieces)
        elif not place.starts_line(nodes[0]) and colon is None and not is_inline(pieces):
            previous = builder.file.node_span(_body(match)[match.index - 1]).end
            region, pieces = Span(previous, region.end), ("\n" + indent, *pieces)
        edit = builder.add(delta, region, pieces, touched=Span(start, region.end))
        if delta.deltas:
            builder.parents.append(edit.id)
            for inner in delta.deltas:
                apply_delta(builder, inner)
            builder.parents.pop()
            _check_nested(builder, delta, edit)


def _check_nested(builder: Builder, delta: Delta, edit: Edit) -> None:
    for inner in builder.edits:
        if inner.parent == edit.id and not any(keep.contains(inner.span) for keep in edit.keeps):
            raise builder.fail(
                "PK217",
                f"nested delta {inner.delta!r} lies outside the upstream text that {delta.name!r} keeps",
                delta,
                at=inner.span.start,
                help="Nest only changes of the kept text (`__upstream__` or a part); move others to the top level.",
            )


def _part(builder: Builder, delta: Delta, match: Match, name: str, code: Code) -> Held:
    """A named piece of the replaced text: statements, or else an expression."""
    statements = _statements(match)
    for kind in ("statements", "expression"):
        pattern = compile_pattern(code, "statements" if kind == "statements" else "expression")
        found = _find_in(pattern, statements, match, builder.file)
        if len(found) == 1:
            part = found[0]
            builder.matches.setdefault(delta.name, []).append(part)
            node = part.nodes[0]
            if isinstance(node, ast.expr):
                return Held(part.span, builder.place.line_indent(part.span.start), node)
            return Held(_region(builder, part), builder.place.column(_statements(part)[0]))
        if len(found) > 1:
            raise builder.fail("PK202", f"part {name!r} matches {len(found)} places of the replaced text", delta)
        if kind == "statements" and not _is_expression(code):
            break
    raise builder.fail("PK201", f"part {name!r} matches nothing in the replaced text", delta, at=match.span.start)


def _is_expression(code: Code) -> bool:
    try:
        ast.parse(code.text.strip().replace("...", "x"), mode="eval")
    except SyntaxError:
        return False
    return True


def _find_in(pattern: object, statements: list[ast.stmt], match: Match, file: SourceFile) -> list[Match]:
    return [
        found
        for found in find_all(pattern, statements, file)  # type: ignore[arg-type]
        if match.span.contains(found.span)
    ]


def remove(builder: Builder, delta: Delta) -> None:
    """`remove:`; a block that would be empty gets `pass`."""
    assert delta.remove is not None
    for match in match_statements(builder, delta, delta.remove):
        place, body, nodes = builder.place, _body(match), _statements(match)
        region = _region(builder, match)
        last = match.index + len(nodes)
        if len(nodes) == len(body):
            builder.add(delta, region, ["pass"], touched=region)
        elif not place.starts_line(nodes[0]) and match.index > 0:  # `a; b`: drop the separator too
            previous = builder.file.node_span(body[match.index - 1]).end
            builder.add(delta, Span(previous, region.end), [], touched=region)
        elif last < len(body) and not place.starts_line(body[last]):
            builder.add(delta, Span(region.start, place.start(body[last])), [], touched=region)
        else:  # the line that is left empty goes when the fences are drawn
            builder.add(delta, region, [], touched=region)


# ---- expr -----------------------------------------------------------------------------------------------------------


def expression(builder: Builder, delta: Delta) -> None:
    """`expr:` with `with:`."""
    assert delta.expr is not None
    assert isinstance(delta.with_, Code)
    for match in builder.select(delta, delta.expr, "expression"):
        node = match.nodes[0]
        assert isinstance(node, ast.expr)
        statement = enclosing_statement(builder.symbol, node)
        pieces = expression_pieces(builder.file, statement, node, delta.with_, match.span)
        builder.add(delta, match.span, pieces, touched=match.span)


def enclosing_statement(symbol: Symbol, node: ast.AST) -> ast.stmt:
    """The innermost statement around `node` that can be parsed on its own (an `elif` is its chain's first `if`)."""
    best: ast.stmt | None = None
    stack: list[tuple[ast.AST, ast.stmt]] = [(n, n) for n in symbol.nodes]
    while stack:
        current, statement = stack.pop()
        if current is node:
            best = statement
            break
        for child in ast.iter_child_nodes(current):
            standalone = isinstance(child, ast.stmt) and not _is_elif(symbol.file, child)
            stack.append((child, child if standalone and isinstance(child, ast.stmt) else statement))
    assert best is not None
    return best


def _is_elif(file: SourceFile, node: ast.stmt) -> bool:
    if not isinstance(node, ast.If):
        return False
    start = file.offset(node.lineno, node.col_offset)
    return file.data[start : start + 4] == b"elif"
