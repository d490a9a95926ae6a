"""`with:` and `insert:` code: its placeholders become kept upstream text, its lines get the right indentation."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass

from afd_patchkit.delta.buffer import indent_code
from afd_patchkit.delta.edits import Keep, Piece
from afd_patchkit.errors import DeltaError, ManifestError
from afd_patchkit.manifest.model import Code
from afd_patchkit.review.finding import finding
from afd_patchkit.source.text import SourceFile, Span, Text

UPSTREAM = "__upstream__"


@dataclass(frozen=True, slots=True)
class Held:
    """Upstream text that a placeholder stands for.

    Attributes:
        span: bytes of the file, behind the indentation of the first line.
        indent: indentation of its first line upstream.
        node: the expression, when it is one; statements otherwise.
    """

    span: Span
    indent: str
    node: ast.expr | None = None


def parse_code(code: Code, text: str | None = None, *, mode: str = "exec") -> ast.AST:
    """Parse delta code.

    Raises:
        ManifestError: a syntax error, at its place in the manifest (PK020).
    """
    source = code.text if text is None else text
    try:
        return ast.parse(source.strip("\n") if mode == "exec" else f"({source}\n)", mode=mode)
    except SyntaxError as error:
        line = max(1, (error.lineno or 1))
        raise ManifestError(
            finding(
                "PK020",
                f"delta code is not Python: {error.msg}",
                manifest=code.at(line, max(1, error.offset or 1)),
                help="Correct the code; it must parse on its own once placeholders are names.",
            )
        ) from error


def statement_pieces(
    code: Code, held: Mapping[str, Held], indent: str, *, text: str | None = None, prefix: str = ""
) -> tuple[Piece, ...]:
    """Pieces of statement code; every line but the first is put behind `indent`.

    Args:
        code: the code as written in the manifest.
        held: placeholders and what they stand for.
        indent: indentation of the place.
        text: the code itself, when it is not `code.text` (clause code).
        prefix: a line put before the code so that it parses (clause code), not emitted.
    """
    source = (code.text if text is None else text).strip("\n").rstrip()
    whole = Text((prefix + source).encode())
    tree = parse_code(code, prefix + source)
    skip = len(prefix.encode())
    pieces: list[Piece] = []
    at = skip
    for node, is_statement in _placeholders(tree, held):
        span = whole.node_span(node)
        pieces.append(indent_code(whole.slice(Span(at, span.start)), indent, first=False, open_end=True))
        line = whole.lines(node.lineno, node.lineno)[0]
        column = line[: len(line) - len(line.lstrip())]
        item = held[node.id]
        if is_statement and item.node is not None:
            raise DeltaError(
                finding("PK212", f"`{node.id}` stands for an expression, but is used as a statement", manifest=code.position)
            )
        pieces.append(Keep(item.span, item.indent, indent + column))
        at = span.end
    pieces.append(indent_code(whole.slice(Span(at, len(whole.data))), indent, first=False))
    return tuple(piece for piece in pieces if piece != "")


def _placeholders(tree: ast.AST, held: Mapping[str, Held]) -> list[tuple[ast.Name, bool]]:
    """Placeholder names in source order, and whether each is a statement of its own."""
    alone = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)
    }
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in held]
    found.sort(key=lambda n: (n.lineno, n.col_offset))
    return [(node, id(node) in alone) for node in found]


def expression_pieces(file: SourceFile, statement: ast.stmt, node: ast.expr, code: Code, span: Span) -> tuple[Piece, ...]:
    """Pieces that replace expression `node` by `code`, with the fewest parentheses that keep the meaning.

    The choice is proved, not guessed: the statement is parsed with the new text and compared with upstream's tree in
    which the node is replaced.

    Args:
        file: the upstream file.
        statement: the statement that holds the expression.
        node: the expression that is replaced.
        code: the new expression; `__upstream__` is the old one.
        span: bytes of the old expression.
    """
    source = code.text.strip()
    tree = parse_code(code, source, mode="eval")
    assert isinstance(tree, ast.Expression)
    wanted = ast.dump(_substituted(statement, node, tree.body))
    start = file.starts[file.line_of(span.start) - 1]
    line = file.data[start : span.start].decode()
    indent = line[: len(line) - len(line.lstrip())]
    for outer, inner in ((False, False), (False, True), (True, False), (True, True)):
        pieces = _expression_template(source, span, indent, inner=inner, outer=outer)
        text = "".join(piece if isinstance(piece, str) else file.slice(span) for piece in pieces)
        if _parses_to(file, statement, span, text, wanted):
            return pieces
    raise DeltaError(
        finding(
            "PK213",
            "the new expression cannot stand where the old one stood",
            manifest=code.position,
            upstream=file.position(span.start),
            help="Use `replace:` on the whole statement.",
        )
    )


def _expression_template(source: str, span: Span, indent: str, *, inner: bool, outer: bool) -> tuple[Piece, ...]:
    text = Text(f"({source}\n)".encode())
    tree = ast.parse(text.text, mode="eval")
    keep = Keep(span, indent, indent)
    pieces: list[Piece] = ["("] if outer else []
    at = 1
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == UPSTREAM]
    for node in sorted(names, key=lambda n: (n.lineno, n.col_offset)):
        here = text.node_span(node)
        pieces += [indent_code(text.slice(Span(at, here.start)), indent, first=False, open_end=True)]
        pieces += ["(", keep, ")"] if inner else [keep]
        at = here.end
    pieces.append(indent_code(text.slice(Span(at, len(text.data) - 2)), indent, first=False))
    if outer:
        pieces.append(")")
    return tuple(piece for piece in pieces if piece != "")




class _Fill(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.value) if node.id == UPSTREAM else node


def _substituted(statement: ast.stmt, node: ast.expr, new: ast.expr) -> ast.stmt:
    """A copy of `statement` with `node` replaced by `new`, whose placeholders are `node`."""
    filled = _Fill(node).visit(copy.deepcopy(new))
    marked = _path_to(statement, node)
    twin = copy.deepcopy(statement)
    target: ast.AST = twin
    for field_name, index in marked[:-1]:
        target = _step(target, field_name, index)
    field_name, index = marked[-1]
    if index is None:
        setattr(target, field_name, filled)
    else:
        getattr(target, field_name)[index] = filled
    return twin


def _step(node: ast.AST, field_name: str, index: int | None) -> ast.AST:
    value = getattr(node, field_name)
    result: ast.AST = value if index is None else value[index]
    return result


def _path_to(root: ast.AST, node: ast.AST) -> list[tuple[str, int | None]]:
    for field_name, value in ast.iter_fields(root):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if child is node:
                return [(field_name, index)]
            if isinstance(child, ast.AST):
                path = _path_to(child, node)
                if path:
                    return [(field_name, index), *path]
    return []


def _parses_to(file: SourceFile, statement: ast.stmt, span: Span, text: str, wanted: str) -> bool:
    whole = Span(file.starts[_first(statement) - 1], file.node_span(statement).end)
    data = file.data
    start = whole.start
    prefix = data[start : file.node_span(statement).start].decode() if _first(statement) == statement.lineno else ""
    if prefix.strip():  # another statement stands before it on the line
        start = file.node_span(statement).start
    new = data[start : span.start].decode() + text + data[span.end : whole.end].decode()
    wrapped = f"if 1:\n{new}\n" if new[:1] in (" ", "\t") else new
    try:
        tree = ast.parse(wrapped)
    except SyntaxError:
        return False
    found = tree.body[0]
    if wrapped is not new:
        assert isinstance(found, ast.If)
        found = found.body[0]
    return _same(found, wanted)


def _same(found: ast.stmt, wanted: str) -> bool:
    """Equality up to load/store contexts, which a substituted tree does not carry."""
    return _plain(ast.dump(found)) == _plain(wanted)


def _plain(dump: str) -> str:
    for context in ("Load()", "Store()", "Del()"):
        dump = dump.replace(f", ctx={context}", "").replace(f"ctx={context}", "")
    return dump


def _first(statement: ast.stmt) -> int:
    return min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
