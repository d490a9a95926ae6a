"""Changes around a delta, made in a symbol of the pinned release itself: each has a status that it must have.

The releases of vLLM change what stands around a delta in few ways. Here the rest is tried: an exit above, a handler that catches something
else, a condition, a name that is global now, a new reader or writer, a star in a changed call, a parameter with another name; and pure
layout, which must not be said at all.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from afd_patchkit.source.locate import Symbol
from tools.oracles.meaning.engine import NEXT, SILENT, change_to
from tools.oracles.proof.draw import sample
from tools.oracles.proof.engine import Engine

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_TRIES = 40


@dataclass(frozen=True)
class Around:
    """One change around one delta.

    Attributes:
        number: which one; the rest follows from it and the seed.
        kind: what was changed.
        symbol: where.
        delta: the delta.
        status: what `upgrade` says of it.
    """

    number: int
    kind: str
    symbol: str
    delta: str
    status: str

    @property
    def wrong(self) -> bool:
        """Whether nobody is told of what matters, or somebody of what does not."""
        return (self.status in SILENT) != (self.kind == LAYOUT)


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
            _offset(source, line, column)
            for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        )
        return source[:start] + text + source[end:]


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(item) + 1 for item in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())


Draw = random.Random
Made = tuple[str, str]
"""A delta, and the function as it is then."""


def _delta(text: str) -> str:
    return "- name: probe\n" + textwrap.indent(text, "  ")


def _start(code: str) -> str:
    return _delta(f"at: start\ninsert: |\n{textwrap.indent(code, '  ')}\n")


def _parameters(text: Text) -> list[str]:
    arguments = [*text.node.args.posonlyargs, *text.node.args.args, *text.node.args.kwonlyargs]
    names = [a.arg for a in arguments if a.arg not in {"self", "cls"}]
    if not names:
        raise NotHere
    return names


def _drawn(draw: Draw, engine: Engine, text: Text, operations: Sequence[str]) -> tuple[str, list[int]]:
    """A random delta by one of these operations, and the lines of its anchors in the function."""
    for _ in range(_TRIES):
        made = sample(draw, engine, text.symbol)
        if made is not None and made.operation in operations:
            return made.yaml, [a.line for a in made.anchors]
    raise NotHere


def _exit(draw: Draw, engine: Engine, text: Text) -> Made:
    delta, lines = _drawn(draw, engine, text, ("before", "after", "replace"))
    if min(lines) <= (text.body[0].end_lineno or 0) or _enclosing(text, min(lines), _FUNCTION):
        raise NotHere  # above it in its own function
    word = draw.choice(["return", "raise RuntimeError"])
    return delta, text.above(f"if print is None:\n    {word}")


def _enclosing(text: Text, line: int, kinds: Any) -> list[Any]:
    return [
        n
        for n in ast.walk(text.node)
        if isinstance(n, kinds) and n is not text.node and any(b.lineno <= line <= (b.end_lineno or 0) for b in n.body)
    ]


def _caught(draw: Draw, engine: Engine, text: Text) -> Made:
    handlers = [n for n in ast.walk(text.node) if isinstance(n, ast.ExceptHandler) and n.type is not None]
    if not handlers:
        raise NotHere
    for _ in range(_TRIES):
        delta, lines = _drawn(draw, engine, text, ("before", "after"))
        found = [h for h in _enclosing(text, lines[0], ast.ExceptHandler) if h in handlers]
        if found:
            return delta, text.replaced(found[-1].type, "(ArithmeticError, LookupError)")
    raise NotHere


def _condition(draw: Draw, engine: Engine, text: Text) -> Made:
    for _ in range(_TRIES):
        delta, lines = _drawn(draw, engine, text, ("before", "after", "replace", "remove", "expr"))
        found = [n for n in _enclosing(text, lines[0], (ast.If, ast.While)) if n.lineno < lines[0]]
        if found:
            test = found[-1].test
            return delta, text.replaced(test, f"print is not None and ({ast.unparse(test)})")
    raise NotHere


def _global(draw: Draw, engine: Engine, text: Text) -> Made:
    return _start("probe_limit = 1\nprint(probe_limit)"), text.above("global probe_limit")


def _reader(draw: Draw, engine: Engine, text: Text) -> Made:
    name = draw.choice(_parameters(text))
    return _start(f"{name} = [{name}]"), text.below(f"print({name})")


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
    for _ in range(_TRIES):
        delta, lines = _drawn(draw, engine, text, ("after",))
        if min(lines) > (text.body[0].end_lineno or 0):
            name = draw.choice(read)
            head = delta.partition("insert: |")[0]
            return f"{head}insert: |\n    print(self.{name})\n", text.above(f"self.{name} = None")
    raise NotHere


def _star(draw: Draw, engine: Engine, text: Text) -> Made:
    for _ in range(_TRIES):
        delta, lines = _drawn(draw, engine, text, ("call",))
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


def _renamed(draw: Draw, engine: Engine, text: Text) -> Made:
    name = draw.choice(_parameters(text))
    places = sorted(
        {
            (n.lineno, n.col_offset)
            for n in ast.walk(text.node)
            if (isinstance(n, ast.Name) and n.id == name) or (isinstance(n, ast.arg) and n.arg == name)
        },
        reverse=True,
    )
    source = text.plain
    for line, column in places:
        at = _offset(source, line, column)
        source = f"{source[:at]}{name}_renamed{source[at + len(name) :]}"
    return _start(f'print("probe", {name})'), source


def _layout(draw: Draw, engine: Engine, text: Text) -> Made:
    delta, _ = _drawn(draw, engine, text, ("before", "after", "replace", "range", "remove", "expr", "call", "clause"))
    return delta, ast.unparse(text.node)


LAYOUT = "pure layout"
KINDS: dict[str, Callable[[Draw, Engine, Text], Made]] = {
    "an exit above": _exit,
    "another type caught": _caught,
    "another condition": _condition,
    "global now": _global,
    "a new reader": _reader,
    "a new writer": _writer,
    "a star in a changed call": _star,
    "a parameter renamed": _renamed,
    LAYOUT: _layout,
}


def arounds(engine: Engine, names: Sequence[str], count: int, seed: int, only: int | None = None) -> Iterator[Around]:
    """Changes around random deltas.

    Args:
        engine: carries deltas.
        names: symbols to draw from.
        count: how many.
        seed: another seed, others.
        only: the number of the only one wanted.
    """
    for number in range(count) if only is None else (only,):
        draw = random.Random(f"{seed}:around:{number}")
        kind = list(KINDS)[number % len(KINDS)]
        found = _around(engine, names, draw, number, kind)
        if found is not None:
            yield found


def _around(engine: Engine, names: Sequence[str], draw: Draw, number: int, kind: str) -> Around | None:
    for _ in range(_TRIES):
        symbol = engine.symbol(draw.choice(names))
        if isinstance(symbol.node, ast.ClassDef):
            methods = [n.name for n in symbol.node.body if isinstance(n, _FUNCTION) and not n.decorator_list]
            if not methods:
                continue
            symbol = engine.symbol(f"{symbol.reference}.{draw.choice(methods)}")
        try:
            text = Text(symbol)
            delta, new = KINDS[kind](draw, engine, text)
            ast.parse(new)
        except (NotHere, SyntaxError, IndexError):
            continue
        status = carried(engine, text, delta, new)
        if status is not None:
            return Around(number, kind, symbol.reference, delta, status)
    return None


def carried(engine: Engine, text: Text, delta: str, new: str) -> str | None:
    """The status of a delta where its function has another text; None when it cannot be generated at the pin.

    Args:
        engine: carries deltas.
        text: the function.
        delta: the delta.
        new: the function's other text.
    """
    file = text.symbol.file
    whole = file.text
    changed = whole.replace(text.source.rstrip("\n"), textwrap.indent(new, text.indent).rstrip("\n"), 1)
    if changed == whole:
        return None
    change_to({text.symbol.reference.partition(":")[0]: changed})
    result = engine.carry(text.symbol.reference, delta, NEXT).result
    if result is None:
        return None
    return (
        result.deltas[0].status
        if result.deltas and result.status in SILENT | {"review"} and result.deltas[0].status not in SILENT
        else result.status
    )


def table(found: Sequence[Around], seed: int) -> Iterator[str]:
    """How many of each kind had which status, and every fault."""
    statuses = sorted({a.status for a in found})
    yield f"{'around a delta':26}" + "".join(f" {s:>10}" for s in statuses)
    for kind in KINDS:
        own = [a.status for a in found if a.kind == kind]
        yield f"{kind:26}" + "".join(f" {own.count(s) or '-':>10}" for s in statuses)
    faults = [a for a in found if a.wrong]
    yield f"with the wrong status: {len(faults)} of {len(found)}"
    for fault in faults:
        yield f"{fault.symbol}: {fault.kind}: {fault.status}"
        yield f"again: tools/proof --seed {seed} --around {fault.number + 1} --only {fault.number}"
        yield fault.delta
