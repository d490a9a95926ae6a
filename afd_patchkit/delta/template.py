"""`with:` and `insert:` code: its placeholders become kept upstream text, its lines get the right indentation."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.edits import Keep, Piece
from afd_patchkit.delta.place import width
from afd_patchkit.findings.errors import DeltaError, ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Code
from afd_patchkit.source.fstrings import correct_positions
from afd_patchkit.source.rows import indent_code, string_lines
from afd_patchkit.source.syntax import filled, same
from afd_patchkit.source.text import SourceFile, Span, Text, parse_quietly

UPSTREAM = "__upstream__"


@dataclass(frozen=True, slots=True)
class Held:
    """Upstream text that a placeholder stands for.

    Attributes:
        file: where it stands.
        span: bytes of the file, behind the indentation of the first line.
        indent: indentation of its first line upstream.
        node: the expression, when it is one; statements otherwise.
        value: for a single expression statement its expression, which may be used inside others.
        whole: the statements are a whole block.
    """

    file: SourceFile
    span: Span
    indent: str
    node: ast.expr | None = None
    value: ast.expr | None = None
    whole: bool = False

    @property
    def expression(self) -> ast.expr | None:
        """What it is inside an expression."""
        return self.node or self.value


def parse_code(code: Code, text: str | None = None, *, skip: int = 0) -> ast.Module:
    """Parse delta code.

    Args:
        code: the code.
        text: what is parsed, when it is not `code.text`.
        skip: number of lines in front of the code that are not the manifest's.

    Raises:
        ManifestError: a syntax error, at its place in the manifest (PK020).
    """
    try:
        return parse_quietly(code.text.strip("\n") if text is None else text)
    except SyntaxError as error:
        blank = len(code.text) - len(code.text.lstrip("\n"))
        line = max(1, (error.lineno or 1) - skip + blank)
        raise ManifestError(
            finding(
                "PK020",
                f"delta code is not Python: {error.msg}",
                manifest=code.at(min(line, code.text.count("\n") + 1), max(1, error.offset or 1)),
                help="Correct the code; it must parse on its own once placeholders are names.",
            )
        ) from error


@dataclass(frozen=True, slots=True)
class _Slot:
    """A placeholder in the code: its bytes, what it stands for, the white space in front of its line."""

    name: str
    span: Span
    item: Held
    statement: bool
    column: str


def statement_pieces(
    code: Code, held: Mapping[str, Held], indent: str, *, above: str = "", inset: str = ""
) -> tuple[Piece, ...]:
    """Pieces of statement code; every line but the first is put behind `indent`.

    Args:
        code: the code as written in the manifest.
        held: placeholders and what they stand for.
        indent: indentation of the place.
        above: lines put before the code so that it parses (clause code), not emitted.
        inset: white space by which it must be moved to the right so that it parses, not emitted.

    Raises:
        ManifestError: the code does not parse (PK020).
        DeltaError: a placeholder is used where its text cannot stand (PK212).
    """
    source = code.text.strip("\n").rstrip()
    plain = Text(source.encode())
    frozen = string_lines(source)
    rows = source.split("\n")
    framed = above + (indent_code(source, inset) if inset else source)
    skip = above.count("\n")
    tree = parse_code(code, framed, skip=skip)
    correct_positions(tree, Text(framed.encode()))
    alone = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    slots: list[_Slot] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in held:
            line = node.lineno - skip
            start = plain.offset(line, node.col_offset - (0 if line in frozen else len(inset)))
            span = Span(start, start + (node.end_col_offset or 0) - node.col_offset)
            row = rows[line - 1]
            item = held[node.id]
            is_statement = id(node) in alone and item.node is None
            slots.append(_Slot(node.id, span, item, is_statement, row[: len(row) - len(row.lstrip())]))
    slots.sort(key=lambda s: s.span)
    for slot in slots:
        _check(code, plain, slot)
    bare = _bare(plain, slots, above, inset)
    pieces: list[Piece] = []
    at = 0
    for slot, naked in zip(slots, bare, strict=True):
        pieces.append(indented(plain, Span(at, slot.span.start), indent, frozen))
        pieces += _kept(slot, indent + slot.column, naked)
        at = slot.span.end
    pieces.append(indented(plain, Span(at, len(plain.data)), indent, frozen))
    return tuple(piece for piece in pieces if piece != "")


def _check(code: Code, plain: Text, slot: _Slot) -> None:
    line = plain.line_of(slot.span.start)
    before = plain.slice(Span(plain.starts[line - 1], slot.span.start))
    after = plain.lines(line, line)[0][len(before) + len(slot.name) :].strip()
    problem = None
    if slot.statement and (before.strip() or (after and not after.startswith("#"))):
        problem = f"`{slot.name}` stands for statements and must be on a line of its own"
    elif not slot.statement and slot.item.expression is None:
        problem = f"`{slot.name}` stands for statements and cannot be part of an expression"
    if problem:
        where = code.at(line + len(code.text) - len(code.text.lstrip("\n")), len(before) + 1)
        help_ = "To use a piece of the statement inside an expression, name it in `parts`, or use `expr`."
        raise DeltaError(finding("PK212", problem, manifest=where, help=help_))


def _kept(slot: _Slot, indent: str, naked: bool) -> list[Piece]:
    item = slot.item
    if slot.statement:
        return [Keep(item.span, item.indent, indent, width(item.indent), item.whole)]
    expression = item.expression
    assert expression is not None
    span = item.span if item.node is not None else item.file.node_span(expression)
    keep = Keep(span, item.indent, indent)
    return [keep] if naked else ["(", keep, ")"]


def _bare(plain: Text, slots: Sequence[_Slot], above: str, inset: str) -> list[bool]:
    """Which kept expressions need no parentheses; proved by parsing the code with them in it."""
    bare = [slot.statement for slot in slots]
    values = {slot.name: slot.item.expression for slot in slots if not slot.statement}
    if not values:
        return bare

    def parsed(naked: Sequence[bool]) -> ast.Module | None:
        out, at = "", 0
        for slot, one in zip(slots, naked, strict=True):
            out += plain.slice(Span(at, slot.span.start))
            if slot.statement:
                out += slot.name
            else:
                text = _expression_text(slot)
                out += text if one else f"({text})"
            at = slot.span.end
        out += plain.slice(Span(at, len(plain.data)))
        try:
            return parse_quietly(above + (indent_code(out, inset) if inset else out))
        except SyntaxError:
            return None

    wanted = parsed([slot.statement for slot in slots])
    if wanted is None:  # text that stands in no brackets: keep the parentheses
        return bare
    for index, slot in enumerate(slots):
        if not slot.statement:
            trial = [*bare[:index], True, *bare[index + 1 :]]
            found = parsed(trial)
            if found is not None and same(found, wanted):
                bare = trial
    return bare


def _expression_text(slot: _Slot) -> str:
    item = slot.item
    expression = item.expression
    assert expression is not None
    return item.file.slice(item.span if item.node is not None else item.file.node_span(expression))


def indented(plain: Text, span: Span, indent: str, frozen: frozenset[int] = frozenset()) -> str:
    """The text of `span` with `indent` in front of every line that starts in it, the first of all and blank ones aside.

    Args:
        plain: the whole code.
        span: a part of it.
        indent: white space.
        frozen: numbers of the lines that begin inside a string.
    """
    out: list[str] = []
    for number in range(plain.line_of(span.start), plain.line_of(max(span.start, span.end)) + 1):
        start = plain.starts[number - 1]
        stop = plain.starts[number] if number < len(plain.starts) else len(plain.data)
        part = plain.slice(Span(max(start, span.start), min(stop, span.end))) if start <= span.end else ""
        fresh = start >= span.start and number > 1 and number not in frozen
        if fresh and plain.data[start:stop].strip() and (part or start == span.end):
            out.append(indent)
        out.append(part)
    return "".join(out)


# ---- expressions ----------------------------------------------------------------------------------------------------


def expression_pieces(
    file: SourceFile,
    statement: ast.stmt,
    node: ast.expr,
    code: Code,
    span: Span,
    *,
    inner: tuple[str, ast.expr] | None = None,
) -> tuple[Piece, ...]:
    """Pieces that replace expression `node` by `code`, with the fewest parentheses that keep the meaning.

    The choice is proved, not guessed: the statement is parsed with the new text and compared with upstream's tree in
    which the node is replaced.

    Args:
        file: the upstream file.
        statement: the statement that holds the expression.
        node: the expression that is replaced.
        code: the new expression; `__upstream__` is the old one.
        span: bytes of the old expression.
        inner: text and tree that stand for the old expression when another delta changes it too.

    Raises:
        DeltaError: the new expression cannot stand there (PK213).
    """
    text, tree = inner or (file.slice(span), node)
    wanted = filled(statement, {id(node): new_tree(code, tree)})
    indent = _indent_at(file, span.start)
    for outer, inside in ((False, False), (False, True), (True, False), (True, True)):
        pieces = _expression_template(code, span, indent, inside=inside, outer=outer)
        if _parses_to(file, statement, span, text_of(pieces, text), wanted):
            return pieces
    raise DeltaError(
        finding(
            "PK213",
            "the new expression cannot stand where the old one stood",
            manifest=code.position,
            upstream=file.position(span.start),
            details=(f"old: {_line(file.slice(span))}", f"new: {_line(code.text)}"),
            help="Use `replace:` on the whole statement.",
        )
    )


def text_of(pieces: Sequence[Piece], kept: str) -> str:
    """The text of an expression's pieces, with `kept` for what they keep."""
    return "".join(piece if isinstance(piece, str) else kept for piece in pieces)


def new_tree(code: Code, old: ast.expr) -> ast.expr:
    """The tree of `code` with `old` for its placeholder."""
    value = _expression(code).body
    names = {id(n): old for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == UPSTREAM}
    return filled(value, names)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:77] + "..."


def _indent_at(file: SourceFile, offset: int) -> str:
    start = file.starts[file.line_of(offset) - 1]
    line = file.data[
        start : file.starts[file.line_of(offset)] if file.line_of(offset) < len(file.starts) else None
    ].decode()
    return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]


def _source(code: Code) -> str:
    return code.text.strip()


def _expression(code: Code) -> ast.Expression:
    try:
        return ast.parse(f"({_source(code)}\n)", mode="eval")
    except SyntaxError as error:
        raise ManifestError(
            finding(
                "PK020",
                f"delta code is not an expression: {error.msg}",
                manifest=code.at(
                    min(max(1, error.lineno or 1), code.text.count("\n") + 1), max(1, (error.offset or 2) - 1)
                ),
                help="Write one expression.",
            )
        ) from error


def _expression_template(code: Code, span: Span, indent: str, *, inside: bool, outer: bool) -> tuple[Piece, ...]:
    source = _source(code)
    text = Text(f"({source}\n)".encode())
    tree = _expression(code)
    correct_positions(tree, text)
    frozen = string_lines(text.text)
    keep = Keep(span, indent, indent)
    pieces: list[Piece] = ["("] if outer else []
    at, end = 1, len(text.data) - 2
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == UPSTREAM]
    for node in sorted(names, key=lambda n: (n.lineno, n.col_offset)):
        here = text.node_span(node)
        pieces += [indented(text, Span(at, here.start), indent, frozen)]
        pieces += ["(", keep, ")"] if inside else [keep]
        at = here.end
    pieces.append(indented(text, Span(at, end), indent, frozen))
    if outer:
        last = text.lines(text.line_count - 1, text.line_count - 1)[0]
        pieces.append(f"\n{indent})" if "#" in last else ")")  # behind a comment the bracket needs a line of its own
    return tuple(piece for piece in pieces if piece != "")


def _parses_to(file: SourceFile, statement: ast.stmt, span: Span, text: str, wanted: ast.AST) -> bool:
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
    own = file.node_span(statement)
    start = file.starts[first - 1]
    if first == statement.lineno and file.data[start : own.start].decode().strip():
        start = own.start  # another statement or a header stands before it on the line
    new = file.data[start : span.start].decode() + text + file.data[span.end : own.end].decode()
    lead = len(new) - len(new.lstrip(" \t\f"))
    new = new[:lead].rpartition("\f")[2] + new[lead:]
    wrapped = new[:1] in (" ", "\t")
    try:
        body = parse_quietly(f"if 1:\n{new}\n" if wrapped else new).body
    except (SyntaxError, ValueError):
        return False
    if wrapped:
        assert isinstance(body[0], ast.If)
        if len(body) != 1 or body[0].orelse:
            return False
        body = body[0].body
    return len(body) == 1 and same(body[0], wanted)
