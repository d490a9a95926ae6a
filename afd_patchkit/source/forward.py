"""Handing on the parameters of a function without writing them: `f(__parameters__)`, and `...` for the original of a delegate."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.source.keywords import Framed, frames
from afd_patchkit.source.locate import FunctionNode
from afd_patchkit.source.text import Span, Text

PARAMETERS = "__parameters__"
"""As an argument: all parameters, by name where Python allows it."""
_LINE = 100
"""How long a line may be."""


class ForwardError(Exception):
    """`__parameters__` stands where it cannot be written out.

    Attributes:
        message: why.
        line: 1-based line of the code.
        column: 0-based column, in characters.
    """

    def __init__(self, message: str, node: ast.AST, frame: Framed | None = None) -> None:
        super().__init__(message)
        self.message = message
        frame = frame or Framed("", "")
        self.line: int = getattr(node, "lineno", 1) - frame.above.count("\n")
        self.column: int = getattr(node, "col_offset", 0) - len(frame.inset)


@dataclass(frozen=True)
class Forwarded:
    """The parameters of one function, as they are handed on.

    Attributes:
        positional: those that go by position: all before `*args`, else the positional-only ones.
        named: those that go by name.
        rest: what stands for `*args`; empty without.
        mapping: what stands for `**kwargs`; empty without.
        keyword: gives the keyword of a name: private ones are mangled.
    """

    positional: tuple[str, ...]
    named: tuple[str, ...]
    rest: str
    mapping: str
    keyword: Callable[[str], str]

    @classmethod
    def of(cls, node: FunctionNode, *, bound: bool, private: str | None = None, first: int = 0) -> Forwarded:
        """Those of a `def` statement.

        Args:
            node: the statement.
            bound: the first one is the object or class, and is not handed on.
            private: name of the class whose private names are meant.
            first: how many go by position, whatever their kind.
        """
        only = [a.arg for a in node.args.posonlyargs]
        plain = [a.arg for a in node.args.args]
        rest = f"*{node.args.vararg.arg}" if node.args.vararg else ""
        if bound and not only and not plain:
            rest = rest and f"{rest}[1:]"
        elif bound:
            only, plain = (only[1:], plain) if only else ([], plain[1:])
        # behind `*args` a keyword would meet the same parameter twice
        count = len(plain) if node.args.vararg is not None else max(0, first - len(only))
        return cls(
            (*only, *plain[:count]),
            (*plain[count:], *(a.arg for a in node.args.kwonlyargs)),
            rest,
            f"**{node.args.kwarg.arg}" if node.args.kwarg else "",
            lambda name: mangled(name, private),
        )


def mangled(name: str, private: str | None) -> str:
    """A name as Python looks it up in the body of a class."""
    if not private or not name.startswith("__") or name.endswith("__") or not private.strip("_"):
        return name
    return f"_{private.lstrip('_')}{name}"


def receiver(node: FunctionNode) -> str | None:
    """What the first argument of a method is called; None when it takes none."""
    positional = [*node.args.posonlyargs, *node.args.args]
    if positional:
        return positional[0].arg
    return f"{node.args.vararg.arg}[0]" if node.args.vararg else None


def stands_for_all(argument: ast.expr, *, dots: bool = False) -> bool:
    """Whether an argument is `__parameters__`; with `dots`, `...` is one, too."""
    if isinstance(argument, ast.Constant):
        return dots and argument.value is Ellipsis
    return isinstance(argument, ast.Name) and argument.id == PARAMETERS


def forwarding(call: ast.Call, *, dots: bool = False) -> bool:
    """Whether a call hands on all parameters."""
    return any(stands_for_all(a, dots=dots) for a in call.args)


def arguments(call: ast.Call, plain: Text, parameters: Forwarded, *, dots: bool = False, first: str = "") -> str:
    """The arguments of a call with `__parameters__` written out.

    A keyword beside it replaces the parameter of that name.

    Args:
        call: the call.
        plain: the code that it stands in.
        parameters: what is handed on.
        dots: `...` stands for all, too: the call is one of the original.
        first: what goes before them; empty for nothing.

    Raises:
        ForwardError: it stands there twice.
    """
    if sum(stands_for_all(a, dots=dots) for a in call.args) > 1:
        raise ForwardError(f"`{PARAMETERS}` stands twice in one call", call)
    given = {k.arg: k for k in call.keywords if k.arg is not None}
    replaced = {n: plain.slice(plain.node_span(k.value)) for n, k in given.items() if n in parameters.positional}
    names = tuple(replaced.get(n, n) for n in parameters.positional)
    keywords = [plain.slice(plain.node_span(k)) for n, k in given.items() if n not in replaced]
    unpacked = [plain.slice(plain.node_span(k)) for k in call.keywords if k.arg is None]
    out = [first]
    for argument in call.args:
        if stands_for_all(argument, dots=dots):
            out += [*names, parameters.rest]
        else:
            out.append(plain.slice(plain.node_span(argument)))
    out += [f"{parameters.keyword(n)}={n}" for n in parameters.named if n not in given]
    return laid_out([part for part in (*out, *keywords, parameters.mapping, *unpacked) if part], call, plain)


def laid_out(parts: Sequence[str], call: ast.Call, plain: Text) -> str:
    """Arguments between the parentheses of a call: on its line where they fit, else on lines of their own."""
    text = ", ".join(parts)
    row = plain.lines(call.lineno, call.lineno)[0]
    if len(row) + len(text) <= _LINE or any("\n" in part for part in parts):
        return text
    indent = " " * (len(row) - len(row.lstrip()))
    rows = [""]
    for part in parts:
        if rows[-1] and len(indent) + len(rows[-1]) + len(part) > _LINE - 6:
            rows.append("")
        rows[-1] += f"{' ' if rows[-1] else ''}{part},"
    return "\n" + "".join(f"{indent}    {row}\n" for row in rows) + indent


def between_parentheses(call: ast.Call, plain: Text) -> Span:
    """The bytes between the parentheses of a call."""
    start = plain.node_span(call.func).end
    opening = plain.data.index(b"(", start)
    return Span(opening + 1, plain.node_span(call).end - 1)


def written_out(text: str, parameters: Forwarded) -> str:
    """Code with each `__parameters__` written out.

    Raises:
        ForwardError: it is no argument of a call, or the code cannot be parsed.
    """
    if PARAMETERS not in text:
        return text
    frame, tree = _parsed(text)
    plain = Text(frame.text.encode())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and forwarding(n)]
    meant = {id(a) for call in calls for a in call.args if stands_for_all(a)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == PARAMETERS and id(node) not in meant:
            raise ForwardError(f"`{PARAMETERS}` is an argument of a call: `f({PARAMETERS})`", node, frame)
    inner_most = [c for c in calls if not any(c is not o and o in ast.walk(c) for o in calls)]
    changes = [(between_parentheses(c, plain), arguments(c, plain, parameters)) for c in inner_most]
    data = plain.data
    for span, new in sorted(changes, reverse=True):
        data = data[: span.start] + new.encode() + data[span.end :]
    return written_out(frame.bare(data.decode()), parameters)


def _parsed(text: str) -> tuple[Framed, ast.Module]:
    """Code in the frame in which it parses: that of a clause is no statement of its own."""
    for frame in frames(text):
        try:
            return frame, ast.parse(frame.text)
        except SyntaxError:
            continue
    raise ForwardError(f"the code with `{PARAMETERS}` cannot be parsed", ast.Pass())


def unawaited(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """Calls of `name` whose result is dropped or returned as it is."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, (ast.Return, ast.Expr)) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == name:
            yield value
