"""Hand copies that call the original: the body of a delegate, and what both texts have in common."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

from afd_patchkit.adopt.texts import CodeText
from afd_patchkit.copies.canonical import Canonical, origin
from afd_patchkit.copies.marks import comments_of, fence_mark
from afd_patchkit.copies.pairing import CopyPair, is_super, keeps_original
from afd_patchkit.source.syntax import docstring_of
from afd_patchkit.source.text import SourceFile, Span


@dataclass(frozen=True)
class Body:
    """A delegate.

    Attributes:
        via: `super` or `original`.
        text: its body, with `__original__` for what it calls.
    """

    via: str
    text: CodeText


def delegate_of(pair: CopyPair) -> Body | str:
    """The delegate that a hand copy is; else why it is none."""
    calls = list(original_calls(pair.hand.node, pair))
    if not calls:
        return "it never calls what it stands for"
    hows = {how for _, how, _ in calls}
    if len(hows) != 1:
        return "it reaches the original in several ways"
    file = pair.hand.file.source
    edits: list[tuple[Span, str]] = []
    for call, _, bound in calls:
        edits.append((file.node_span(call.func), "__original__"))
        if bound:
            continue
        if not call.args:
            return "it calls the original without the first argument"
        first = file.node_span(call.args[0])
        behind = [*call.args[1:], *call.keywords]
        end = min((file.node_span(n).start for n in behind), default=0)
        edits.append((Span(first.start, end or first.end), ""))
    return Body(next(iter(hows)), _body(pair, file, edits))


def original_calls(node: ast.AST, pair: CopyPair) -> Iterator[tuple[ast.Call, str, bool]]:
    """Calls of the original: the call, `super` or `original`, and whether the first argument is bound already."""
    name = pair.symbol.name
    static = any(d.word == "staticmethod" for d in pair.base.decorators)
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == name:
            value = func.value
            if is_super(value):
                yield call, "super", True
            elif isinstance(value, (ast.Name, ast.Attribute)) and ast.unparse(value).rpartition(".")[2] == (
                pair.symbol.classes[-1].name if pair.symbol.classes else ""
            ):
                yield call, "original", static
        elif keeps_original(func, name):
            yield call, "original", static or not pair.symbol.classes


def _body(pair: CopyPair, file: SourceFile, edits: list[tuple[Span, str]]) -> CodeText:
    node = pair.hand.node
    doc = docstring_of(node.body)
    body = node.body[1:] if doc is not None else node.body
    first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
    comments = comments_of(file)
    while first - 1 in comments and first - 1 > (doc.end_lineno if doc is not None else node.lineno):  # type: ignore[operator]
        first -= 1
    for statement in body:
        if _asks_for_original(statement, pair):
            end = statement.end_lineno or statement.lineno
            edits.append((file.line_span(statement.lineno, end), ""))
    for line, token in comments.items():
        if first <= line <= last and fence_mark(token.text) is not None:
            edits.append((file.line_span(line, line), ""))
    span = file.line_span(first, last)
    out: list[bytes] = []
    at = span.start
    for part, text in sorted(edits, key=lambda e: e[0].start):
        out += [file.data[at : part.start], text.encode()]
        at = part.end
    out.append(file.data[at : span.end])
    rows = b"".join(out).decode().rstrip("\n").split("\n")
    margin = min(len(r) - len(r.lstrip()) for r in rows if r.strip())
    return CodeText("\n".join(r[margin:] for r in rows).strip("\n") + "\n")


def _asks_for_original(node: ast.AST, pair: CopyPair) -> bool:
    """`assert _original_f is not None`: how the copy keeps the original is not part of what it does."""
    test = node.test if isinstance(node, ast.Assert) else None
    if (
        not isinstance(test, ast.Compare)
        or not isinstance(test.ops[0], ast.IsNot)
        or not isinstance(test.left, ast.Name)
    ):
        return False
    return keeps_original(test.left, pair.symbol.name)


def marked(found: Canonical, pair: CopyPair) -> ast.AST:
    """A function in which each call of the original is the same text, whatever reaches it."""
    ids = {id(call): bound for call, _, bound in original_calls(found.origin, pair)}
    node = copy.copy(found.node)

    class Marker(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.AST:
            self.generic_visit(call)
            bound = ids.get(id(origin(call)))
            if bound is None:
                return call
            made = ast.Call(
                ast.Name("<original>", ast.Load()), list(call.args if bound else call.args[1:]), call.keywords
            )
            return ast.copy_location(made, call)

        def visit_Assert(self, statement: ast.Assert) -> ast.AST | None:
            return None if _asks_for_original(statement, pair) else statement

    kept = {id(origin(n)): origin(n) for n in ast.walk(node)}  # what was read stays what it is
    made = Marker().visit(copy.deepcopy(node, dict(kept)))
    for inner in ast.walk(made):
        inner.__dict__.pop("_key", None)
    assert isinstance(made, ast.AST)
    return made
