"""A function as text that is changed around a delta: an exit, a condition, a reader, a writer, another suite; or its layout alone."""

from __future__ import annotations

import ast
import copy
import random
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from afd_patchkit.source.locate import Symbol
from tools.oracles.proof.draw import sample
from tools.oracles.proof.engine import Engine

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
TRIES = 40


class NotHere(Exception):
    """The function does not suit."""


class Text:
    """A function as lines of its own, to be changed.

    Args:
        symbol: the function.
    """

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.source = symbol.data.decode()
        lines = self.source.split("\n")
        self.indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        self.plain = textwrap.dedent(self.source)
        parsed: Any = ast.parse(self.plain)
        self.node: Any = parsed.body[0]
        if len(self.indent) and self.plain.split("\n")[0].startswith(" "):
            raise NotHere
        body = self.node.body
        docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        self.body: list[ast.stmt] = body[1:] if docstring else body
        if len(self.body) < 2 or self.body[0].lineno <= self.node.lineno:
            raise NotHere

    def put(self, line: int, text: str, column: int) -> str:
        """The function with code before a line."""
        lines = self.plain.split("\n")
        lines[line - 1 : line - 1] = textwrap.indent(text, " " * column).split("\n")
        return "\n".join(lines)

    def above(self, text: str) -> str:
        """The function with code before its first statement."""
        first = self.body[0]
        return self.put(
            min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))]), text, first.col_offset
        )

    def below(self, text: str) -> str:
        """The function with code before its last statement."""
        last = self.body[-1]
        return self.put(
            min([last.lineno, *(d.lineno for d in getattr(last, "decorator_list", ()))]), text, last.col_offset
        )

    def replaced(self, node: Any, text: str) -> str:
        """The function with one node written otherwise."""
        source = self.plain
        start, end = (
            offset(source, line, column)
            for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        )
        return source[:start] + text + source[end:]


def offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(item) + 1 for item in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())


Draw = random.Random
Made = tuple[str, str]
"""A delta, and the function as it is then."""


def delta(text: str) -> str:
    return "- name: probe\n" + textwrap.indent(text, "  ")


def start(code: str) -> str:
    return delta(f"at: start\ninsert: |\n{textwrap.indent(code, '  ')}\n")


def parameters(text: Text) -> list[str]:
    arguments = [*text.node.args.posonlyargs, *text.node.args.args, *text.node.args.kwonlyargs]
    names = [a.arg for a in arguments if a.arg not in {"self", "cls"}]
    if not names:
        raise NotHere
    return names


def drawn(draw: Draw, engine: Engine, text: Text, operations: Sequence[str]) -> tuple[str, list[int]]:
    """A random delta by one of these operations, and the lines of its anchors in the function.

    Args:
        draw: where luck comes from.
        engine: knows what applies.
        text: the function.
        operations: what may be drawn.

    Raises:
        NotHere: luck has it that none was found.
    """
    for _ in range(TRIES):
        made = sample(draw, engine, text.symbol)
        if made is not None and made.operation in operations:
            return made.yaml, [a.line for a in made.anchors]
    raise NotHere


def _exit(draw: Draw, engine: Engine, text: Text) -> Made:
    delta, lines = drawn(draw, engine, text, ("before", "after", "replace"))
    if min(lines) <= (text.body[0].end_lineno or 0) or enclosing(text, min(lines), FUNCTION):
        raise NotHere  # above it in its own function
    word = draw.choice(["return", "raise RuntimeError"])
    return delta, text.above(f"if print is None:\n    {word}")


def enclosing(text: Text, line: int, kinds: Any) -> list[Any]:
    return [
        n
        for n in ast.walk(text.node)
        if isinstance(n, kinds) and n is not text.node and any(b.lineno <= line <= (b.end_lineno or 0) for b in n.body)
    ]


def _caught(draw: Draw, engine: Engine, text: Text) -> Made:
    handlers = [n for n in ast.walk(text.node) if isinstance(n, ast.ExceptHandler) and n.type is not None]
    if not handlers:
        raise NotHere
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("before", "after"))
        found = [h for h in enclosing(text, lines[0], ast.ExceptHandler) if h in handlers]
        if found:
            return delta, text.replaced(found[-1].type, "(ArithmeticError, LookupError)")
    raise NotHere


def _condition(draw: Draw, engine: Engine, text: Text) -> Made:
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("before", "after", "replace", "remove", "expr"))
        found = [n for n in enclosing(text, lines[0], (ast.If, ast.While)) if n.lineno < lines[0]]
        if found:
            test = found[-1].test
            return delta, text.replaced(test, f"print is not None and ({ast.unparse(test)})")
    raise NotHere


def _reader(draw: Draw, engine: Engine, text: Text) -> Made:
    name = draw.choice(parameters(text))
    return start(f"{name} = [{name}]"), text.below(f"print({name})")


def _writer(draw: Draw, engine: Engine, text: Text) -> Made:
    read = sorted(
        {
            n.attr
            for n in ast.walk(text.node)
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Load)
            and isinstance(n.value, ast.Name)
            and n.value.id == "self"
        }
    )
    if not read or text.node.args.args[:1] == [] or text.node.args.args[0].arg != "self":
        raise NotHere
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("after",))
        if min(lines) > (text.body[0].end_lineno or 0):
            name = draw.choice(read)
            head = delta.partition("insert: |")[0]
            return f"{head}insert: |\n    print(self.{name})\n", text.above(f"self.{name} = None")
    raise NotHere


def _star(draw: Draw, engine: Engine, text: Text) -> Made:
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("call",))
        if "probe:" not in delta:
            continue
        calls = [
            n
            for n in ast.walk(text.node)
            if isinstance(n, ast.Call) and n.lineno >= lines[0] and f"{ast.unparse(n.func)}(" in delta
        ]
        if (
            len(calls) == 1
            and calls[0].func.end_lineno == calls[0].lineno
            and not any(k.arg is None for k in calls[0].keywords)
        ):
            call = calls[0]
            words = [*(ast.unparse(a) for a in call.args), *(f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords)]
            if "..." in delta:
                return delta, text.replaced(call, f"{ast.unparse(call.func)}({', '.join([*words, '**dict()'])})")
    raise NotHere


def _layout(draw: Draw, engine: Engine, text: Text) -> Made:
    delta, _ = drawn(draw, engine, text, ("before", "after", "replace", "range", "remove", "expr", "call", "clause"))
    return delta, ast.unparse(text.node)


def rewritten(text: Text, old: Any, new: ast.AST) -> str:
    """The function with one statement replaced by another tree."""
    written = ast.unparse(ast.fix_missing_locations(new))
    return text.replaced(old, textwrap.indent(written, " " * old.col_offset).lstrip())


def _suite(draw: Draw, engine: Engine, text: Text) -> Made:
    """The suite that the delta stands in becomes another one: body and `else`, `else` and `finally`, handlers."""
    for _ in range(TRIES):
        delta, lines = drawn(draw, engine, text, ("before", "after", "replace"))
        found = [
            n
            for n in ast.walk(text.node)
            if isinstance(n, (ast.If, ast.Try, ast.For, ast.While)) and n.lineno < lines[0] <= (n.end_lineno or 0)
        ]
        draw.shuffle(found)
        for node in found:
            made = _other_suite(copy.deepcopy(node), lines[0])
            if made is not None:
                return delta, rewritten(text, node, made)
    raise NotHere


def _holds(suite: Sequence[ast.stmt], line: int) -> bool:
    return any(s.lineno <= line <= (s.end_lineno or 0) for s in suite)


def _other_suite(node: Any, line: int) -> Any:
    """The statement with the suite of a line in another place; None where it has no other."""
    if isinstance(node, ast.If):
        if not node.orelse or isinstance(node.orelse[0], ast.If):
            return None
        node.body, node.orelse = node.orelse, node.body
        return node
    if isinstance(node, (ast.For, ast.While)):
        if not node.orelse:
            return None
        node.body, node.orelse = node.orelse, node.body
        return node
    if node.finalbody and _holds(node.finalbody, line) and node.handlers:
        node.orelse, node.finalbody = [*node.orelse, *node.finalbody], []
        return node
    if node.orelse and _holds(node.orelse, line):
        node.finalbody, node.orelse = [*node.orelse, *node.finalbody], []
        return node
    handler = next((h for h in node.handlers if _holds(h.body, line)), None)
    if handler is not None:
        handler.body, node.body = node.body, handler.body
        return node
    if node.handlers and _holds(node.body, line) and not node.orelse:
        node.orelse, node.body = node.body, [ast.Pass()]
        return node
    return None


LAYOUT = "pure layout"
SURROUNDINGS: dict[str, Callable[[Draw, Engine, Text], Made]] = {
    "an exit above": _exit,
    "another type caught": _caught,
    "another condition": _condition,
    "another suite": _suite,
    "a new reader": _reader,
    "a new writer": _writer,
    "a star in a changed call": _star,
    LAYOUT: _layout,
}
