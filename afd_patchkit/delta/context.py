"""Digests of what a delta depends on: its anchor, the headers around it, its neighbours, the bindings it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from keyword import iskeyword

from afd_patchkit.delta.edits import Edit
from afd_patchkit.delta.place import Place
from afd_patchkit.patterns.select import Match
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.namespaces import Namespace, parameters_of, scopes_of, stored_names
from afd_patchkit.source.syntax import (
    CLAUSE,
    DEFINITION,
    FUNCTION,
    LOOP,
    Block,
    blocks,
    bound_names,
    clause_names,
    clauses_only,
    own_parts,
)
from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import Token, token_digest, tokens_in


@dataclass(frozen=True, slots=True)
class EditContext:
    """Token digests (layout and comments do not count) of one edit's surroundings.

    Attributes:
        touched: what the edit depends on.
        headers: the headers of the compound statements around it and of the clauses of these that it stands in, outermost
            first, the symbol's own left out.
        before: the sibling statement before it (of a compound one the head and the first statement); None at the start of
            a suite.
        after: the sibling statement behind it, likewise; None at the end of a suite.
        bindings: what binds or declares the names in its code, as far as it can run before it, in order: statements (headers,
            for compound ones), clauses, parameters, `global` and `nonlocal`.
        holder: the statement (its header, if compound) that holds the changed expression or call, without the arguments of
            a changed call; None for whole statements.
        arguments: of a changed call: positions, keywords, `*`, `**`.
        lines: the symbol's own lines (from 1) that are replaced, inclusive; `(n, n - 1)` inserts before line n.
    """

    touched: str
    headers: tuple[str, ...]
    before: str | None
    after: str | None
    bindings: tuple[str, ...]
    holder: str | None = None
    arguments: tuple[str, ...] = ()
    lines: tuple[int, int] = (0, 0)


def digest_of(file: Text, span: Span) -> str:
    """Digest of some bytes of a file by their tokens; commas that formatters add in front of a closing bracket do not count."""
    return token_digest(_plain(tokens_in(file, span)))


def _plain(items: Sequence[Token]) -> list[Token]:
    """The tokens without trailing commas, as far as these make no tuple."""
    dropped: set[int] = set()
    groups: list[tuple[bool, list[int]]] = []  # of each open bracket: it belongs to a call or `def`; its commas
    before: Token | None = None
    for index, token in enumerate(items):
        if token.kind not in ("name", "number", "string", "op"):
            continue
        if token.kind == "op" and token.text in ("(", "[", "{"):
            called = before is not None and (
                before.text in (")", "]") or (before.kind == "name" and not iskeyword(before.text))
            )
            groups.append((called and token.text == "(", []))
        elif token.kind == "op" and token.text == "," and groups:
            groups[-1][1].append(index)
        elif token.kind == "op" and token.text in (")", "]", "}") and groups:
            called, commas = groups.pop()
            trailing = before is not None and before.text == "," and commas and items[commas[-1]] is before
            if trailing and (called or len(commas) > 1):
                dropped.add(commas[-1])
        before = token
    return [token for index, token in enumerate(items) if index not in dropped]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The bytes that an `EditContext` digests."""

    touched: Span
    headers: tuple[Span, ...]
    before: Span | None
    after: Span | None
    bindings: tuple[Span, ...]
    anchor: Match | None


def surroundings(symbol: Symbol, edit: Edit, matches: Sequence[Match]) -> Surroundings:
    """Where one edit stands.

    Args:
        symbol: the pristine symbol.
        edit: one of its edits.
        matches: the anchors of the edit's delta.
    """
    place = Place(symbol.file)
    touched = edit.touched or edit.span
    anchor = next((m for m in matches if _meets(m.span, touched)), matches[0] if matches else None)
    headers = tuple(_headers(symbol, place, touched.start))
    before = after = None
    if edit.does.beside and not _named(symbol, anchor, touched):
        before, after = _around(symbol, place, edit, touched)
    elif anchor is not None and anchor.siblings:
        if anchor.index > 0:
            before = _beginning(place, anchor.siblings[anchor.index - 1])
        if anchor.end < len(anchor.siblings):
            after = _beginning(place, anchor.siblings[anchor.end])
    names = _names(edit.emitted) if not edit.does.header else frozenset()
    bindings = tuple(
        span for span in _bindings(symbol, place, names, touched) if not (len(edit.span) and edit.span.contains(span))
    )
    return Surroundings(touched, headers, before, after, bindings, anchor)


def _named(symbol: Symbol, anchor: Match | None, touched: Span) -> bool:
    """Whether a pattern names what the edit touches; `at: start` and `at: end` name nothing, or the statement around."""
    return anchor is not None and (
        anchor.span == touched or any(symbol.file.node_span(node) == touched for node in anchor.nodes)
    )


def _around(symbol: Symbol, place: Place, edit: Edit, touched: Span) -> tuple[Span | None, Span | None]:
    """The statements before and behind an insertion that goes by its place in a suite; one of them is `touched`."""
    stack: list[ast.AST] = list(symbol.nodes)
    while stack:
        node = stack.pop()
        for suite in (block.body for block in blocks(node)):
            spans = [symbol.file.node_span(statement) for statement in suite]
            if touched in spans:
                index = spans.index(touched) + (edit.span.start > touched.start)
                before = _beginning(place, suite[index - 1]) if index else None
                return before, _beginning(place, suite[index]) if index < len(suite) else None
            stack += suite
    return None, None


def edit_context(symbol: Symbol, edit: Edit, matches: Sequence[Match]) -> EditContext:
    """The digests of the surroundings of one edit."""
    file, found = symbol.file, surroundings(symbol, edit, matches)
    holder, arguments = _holder(symbol, Place(file), edit, found.anchor)
    return EditContext(
        digest_of(file, found.touched),
        tuple(digest_of(file, span) for span in found.headers),
        digest_of(file, found.before) if found.before else None,
        digest_of(file, found.after) if found.after else None,
        tuple(digest_of(file, span) for span in found.bindings),
        holder,
        arguments,
        own_lines(symbol, edit.span),
    )


def own_lines(symbol: Symbol, span: Span) -> tuple[int, int]:
    """The lines of `span` counted from the symbol's first line; `(n, n - 1)` for an insertion before line n."""
    file = symbol.file
    first = _own_line(symbol, file.line_of(span.start))
    if len(span):
        return first, _own_line(symbol, file.line_of(span.end - 1))
    line = file.line_span(file.line_of(span.start), file.line_of(span.start))
    if not file.data[line.start : span.start].strip():
        return first, first - 1
    if not file.data[span.start : line.end].strip():
        return first + 1, first
    return first, first


def _own_line(symbol: Symbol, line: int) -> int:
    count = 0
    for first, last in symbol.line_ranges:
        if line <= last:
            return count + max(line - first, 0) + 1
        count += last - first + 1
    return count + 1


def called(node: ast.AST | None) -> ast.Call | None:
    """The call that an expression, or a statement whose value it is, consists of."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
        node = node.value
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
        node = node.value
    return node if isinstance(node, ast.Call) else None


def argument_names(call: ast.Call) -> tuple[str, ...]:
    """Positions, keywords, `*` and `**` of a call, in order."""
    names = ["*" if isinstance(a, ast.Starred) else str(i) for i, a in enumerate(call.args)]
    return (*names, *(k.arg or "**" for k in call.keywords))


def _holder(symbol: Symbol, place: Place, edit: Edit, anchor: Match | None) -> tuple[str | None, tuple[str, ...]]:
    if anchor is None or (anchor.body is not None and not edit.does.call):
        return None, ()
    node = anchor.nodes[0] if anchor.body is not None else anchor.owner
    if not isinstance(node, ast.stmt):
        return None, ()
    file = symbol.file
    whole = _header(place, node) or place.region([node])
    call = called(anchor.nodes[0]) if edit.does.call else None
    if call is None:
        return digest_of(file, whole), ()
    cut = Span(file.node_span(call.func).end, file.node_span(call).end)
    kept = (*tokens_in(file, Span(whole.start, cut.start)), *tokens_in(file, Span(cut.end, whole.end)))
    return token_digest(_plain(kept)), argument_names(call)


def scopes_around(symbol: Symbol, touched: Span) -> list[Namespace]:
    """The functions and classes of the symbol that some bytes stand in, outermost first; a definition does not stand in itself."""
    file = symbol.file
    spans = [(file.node_span(scope.node), scope) for scope in scopes(symbol)]
    return [scope for span, scope in spans if span.start < touched.start and touched.end <= span.end]


def scopes(symbol: Symbol) -> list[Namespace]:
    """The functions and classes of a symbol, its own first; found once."""
    known: list[Namespace] | None = symbol.__dict__.get("_scopes")
    if known is None:
        known = symbol.__dict__["_scopes"] = scopes_of(symbol.nodes)
    return known


def _reach(symbol: Symbol, inner: Namespace | None, touched: Span) -> Span:
    """The outermost loop around some bytes in their own function: statements behind them in it may have run before them."""
    around = [symbol.file.node_span(n) for n in inner.statements if isinstance(n, LOOP)] if inner is not None else []
    found = [span for span in around if span.start <= touched.start and touched.end <= span.end]
    return max(found, key=len, default=Span(touched.end, touched.end))


def _meets(one: Span, other: Span) -> bool:
    return one.overlaps(other) or one.contains(other) or other.contains(one)


def path(symbol: Symbol, offset: int) -> Iterator[tuple[ast.stmt, Block]]:
    """Compound statements inside the symbol that hold `offset` in one of their blocks, with that block, outermost first."""
    level = [s for node in symbol.nodes for block in blocks(node) for s in block.body]
    while level:
        inner = next(
            (s for s in level if symbol.file.node_span(s).start <= offset < symbol.file.node_span(s).end), None
        )
        found = (
            [b for b in blocks(inner) if symbol.file.node_span(b.body[0]).start <= offset] if inner is not None else []
        )
        if inner is None or not found:
            return
        yield inner, found[-1]
        level = found[-1].body


def _headers(symbol: Symbol, place: Place, offset: int) -> Iterator[Span]:
    """What decides whether some bytes run: heads of the statements around them, and of the clauses that are not the first."""
    for node, block in path(symbol, offset):
        if clauses_only(node):
            yield Span(place.start(node), symbol.file.node_span(own_parts(node)[-1]).end)
        elif (span := _header(place, node)) is not None:
            yield span
        if (clause := clause_head(symbol, place, node, block)) is not None:
            yield clause


def clause_head(symbol: Symbol, place: Place, node: ast.stmt, block: Block) -> Span | None:
    """The head of a clause behind the first one: `except E as e`, `else`, `case p if c`; None for the first block and an `elif`.

    Args:
        symbol: what all of it stands in.
        place: its file's places.
        node: the statement.
        block: one of its blocks.
    """
    known = list(blocks(node))
    index = next(i for i, b in enumerate(known) if b.body is block.body)
    if index == 0 and not clauses_only(node):
        return None
    start = symbol.file.node_span(known[index - 1].body[-1] if index else own_parts(node)[-1]).end
    span = Span(start, place.start(block.body[0]))
    return span if symbol.file.data[span.start : span.end].strip() else None


def _beginning(place: Place, node: ast.stmt) -> Span:
    """What a neighbour is known by: all of it; of a compound statement its head and first statement."""
    header = _header(place, node)
    first = next(blocks(node), None)
    if header is None or first is None:
        return place.region([node])
    inner = _header(place, first.body[0])
    return Span(header.start, inner.end if inner is not None else place.file.node_span(first.body[0]).end)


def _header(place: Place, node: ast.stmt) -> Span | None:
    first = next(blocks(node), None)
    return None if first is None else Span(place.start(node), place.start(first.body[0]))


def _names(text: str) -> frozenset[str]:
    """The identifiers of some code that may be names; an over-estimate is harmless, it only adds bindings to watch."""
    return frozenset(re.findall(r"(?<![.\w])[^\W\d]\w*", text))


@dataclass(frozen=True, slots=True)
class _Binder:
    """Something that binds names: `scope` is whose they are, None where it says `global` or `nonlocal`."""

    names: frozenset[str]
    span: Span
    scope: Namespace | None


def _bindings(symbol: Symbol, place: Place, names: frozenset[str], touched: Span) -> Iterator[Span]:
    """What binds names for code at some bytes: in its own function what can run before it, in those around it all."""
    around = scopes_around(symbol, touched)
    inner = around[-1] if around else None
    closures = [scope for scope in around[:-1] if isinstance(scope.node, FUNCTION)]
    reach = _reach(symbol, inner, touched)
    for one in _binders(symbol, place) if names else ():
        if one.names.isdisjoint(names):
            continue
        anywhere = one.scope in closures or (one.scope is None and closures)
        earlier = one.span.start < touched.end or reach.contains(one.span)
        if anywhere or (earlier and (one.scope is inner or one.scope is None)):
            yield one.span


def _binders(symbol: Symbol, place: Place) -> list[_Binder]:
    """Everything in a symbol that binds names, in order; found once per symbol."""
    known: list[_Binder] | None = symbol.__dict__.get("_binders")
    if known is None:
        found = dict.fromkeys(b for scope in scopes(symbol) for b in _find_binders(symbol, place, scope))
        known = symbol.__dict__["_binders"] = sorted(found, key=lambda b: b.span.start)
    return known


def _find_binders(symbol: Symbol, place: Place, scope: Namespace) -> Iterator[_Binder]:
    """Statements, clauses, parameters and declarations (`global`) that say what a name of a function or class is."""
    if isinstance(scope.node, FUNCTION):
        for argument in parameters_of(scope.node):
            start = symbol.file.node_span(argument).start
            yield _Binder(frozenset([argument.arg]), Span(start, start + len(argument.arg.encode())), scope)
    for node in scope.statements:
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield _Binder(frozenset(node.names), place.region([node]), scope)
            continue
        for names, span in _statement_binders(symbol, place, node):
            for found, whose in ((names - scope.elsewhere, scope), (names & scope.elsewhere, None)):
                if found:
                    yield _Binder(found, span, whose)


def _statement_binders(symbol: Symbol, place: Place, node: ast.stmt) -> Iterator[tuple[frozenset[str], Span]]:
    span = _header(place, node) or place.region([node])
    bound = {n.id for n in stored_names(node) if symbol.file.node_span(n).start < span.end}
    if isinstance(node, (*DEFINITION, ast.Import, ast.ImportFrom)):
        bound |= set(bound_names(node))
    if bound:
        yield frozenset(bound), span
    for block in blocks(node):
        if isinstance(block.owner, CLAUSE):
            guard = getattr(block.owner, "guard", None)
            names = frozenset(clause_names(block.owner))
            names |= {n.id for n in stored_names(guard)} if guard is not None else set()
            head = clause_head(symbol, place, node, block)
            if names and head is not None:
                yield names, head
