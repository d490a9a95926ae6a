"""Signatures as facts: what a function, class or constant offers, in texts that do not depend on the Python version."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from afd_patchkit.digests import short
from afd_patchkit.source.locate import Node
from afd_patchkit.source.text import Span, Text
from afd_patchkit.source.tokens import Token, significant, tokens_in

ParameterKind = Literal["positional-only", "positional", "*", "keyword-only", "**"]

_BINARY = frozenset(
    [
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "**",
        "@",
        "|",
        "&",
        "^",
        "<<",
        ">>",
        "==",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        ":=",
        "->",
        "=",
    ]
)
_PREFIXED = frozenset({"*", "**", "-", "+", "~"})
_WORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "lambda", "for", "await", "yield", "from", "async"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `default` and `annotation` are normalised source text, None when there is none."""

    name: str
    kind: ParameterKind
    default: str | None = None
    annotation: str | None = None

    def __str__(self) -> str:
        text = (self.kind if self.kind in ("*", "**") else "") + self.name
        if self.annotation is not None:
            text += f": {self.annotation}"
        if self.default is not None:
            text += f" = {self.default}" if self.annotation is not None else f"={self.default}"
        return text


@dataclass(frozen=True, slots=True)
class Signature:
    """What a definition looks like from outside.

    Attributes:
        parameters: in order; empty for classes and constants.
        returns: return annotation, or a constant's annotation.
        decorators: outermost first, without `@`.
        bases: bases and keywords of a class.
        type_params: as in `def f[T]`.
        is_async: whether it is an `async def`.
        what: `def`, `class` or `constant`.
    """

    parameters: tuple[Parameter, ...] = ()
    returns: str | None = None
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    type_params: tuple[str, ...] = ()
    is_async: bool = False
    what: Literal["def", "class", "constant"] = "def"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two signatures.

    Attributes:
        change: `added`, `removed`, `reordered`, `kind`, `default`, `annotation`, `returns`, `decorator added`, `decorator
            removed`, `decorators reordered`, `bases`, `type parameters`, `async`, `what`.
        name: the parameter or decorator concerned; empty otherwise.
        message: one line for people.
    """

    change: str
    name: str
    message: str = field(compare=False)

    def __str__(self) -> str:
        return self.message


def signature(node: Node, text: Text) -> Signature:
    """The signature of a definition in `text`."""
    if isinstance(node, ast.Assign):
        return Signature(what="constant")
    if isinstance(node, ast.AnnAssign):
        return Signature(returns=expression_text(text, node.annotation), what="constant")
    decorators = tuple(expression_text(text, d) for d in node.decorator_list)
    type_params = tuple(expression_text(text, p) for p in getattr(node, "type_params", ()))
    if isinstance(node, ast.ClassDef):
        bases = [expression_text(text, b) for b in node.bases]
        bases += [
            f"{k.arg}={expression_text(text, k.value)}" if k.arg else f"**{expression_text(text, k.value)}"
            for k in node.keywords
        ]
        return Signature(decorators=decorators, bases=tuple(bases), type_params=type_params, what="class")
    return Signature(
        parameters=tuple(_parameters(node.args, text)),
        returns=expression_text(text, node.returns) if node.returns else None,
        decorators=decorators,
        type_params=type_params,
        is_async=isinstance(node, ast.AsyncFunctionDef),
    )


def _parameters(arguments: ast.arguments, text: Text) -> Iterable[Parameter]:
    def one(argument: ast.arg, kind: ParameterKind, default: ast.expr | None = None) -> Parameter:
        return Parameter(
            argument.arg,
            kind,
            expression_text(text, default) if default is not None else None,
            expression_text(text, argument.annotation) if argument.annotation is not None else None,
        )

    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        yield one(argument, "positional-only" if index < len(arguments.posonlyargs) else "positional", default)
    if arguments.vararg:
        yield one(arguments.vararg, "*")
    for argument, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield one(argument, "keyword-only", keyword_default)
    if arguments.kwarg:
        yield one(arguments.kwarg, "**")


# ---- texts ----------------------------------------------------------------------------------------------------


def expression_text(text: Text, node: ast.AST) -> str:
    """An expression on one line: comments and layout gone, canonical spaces, double quotes where they change nothing."""
    written = normal_text(text, text.node_span(node))
    return f"({written})" if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom)) else written


def normal_text(text: Text, span: Span) -> str:
    """The tokens of `span`, which must be one expression, on one line with canonical spaces."""
    items = _without_trailing_commas(significant(tokens_in(text, span)))
    output: list[str] = []
    brackets: list[str] = []
    for index, token in enumerate(items):
        before = items[index - 1] if index else None
        if before is not None and _spaced(items, index, brackets):
            output.append(" ")
        output.append(_quoted(token.text) if token.kind == "string" else token.text)
        if token.text in ("(", "[", "{"):
            brackets.append(token.text)
        elif token.text in (")", "]", "}") and brackets:
            brackets.pop()
    return "".join(output)


def _spaced(items: Sequence[Token], index: int, brackets: Sequence[str]) -> bool:
    """Whether a space stands before token `index`."""
    before, token = items[index - 1], items[index]
    if before.text == ",":
        return token.text not in (")", "]", "}")
    if before.text == ":" and before.kind == "op":
        return not brackets or brackets[-1] != "["
    if token.kind == "op" and token.text in _BINARY and _operator_spaced(items, index, brackets):
        return True
    if before.kind == "op" and before.text in _BINARY:
        return _operator_spaced(items, index - 1, brackets)
    if before.kind != "op" and token.kind != "op":
        return True
    # `not (`, `lambda *`, `) if`: a keyword keeps its distance from brackets.
    return (before.text in _WORDS and before.kind == "name" and token.text not in (")", "]", "}", ",", ":")) or (
        token.text in _WORDS and before.text not in ("(", "[", "{", ".")
    )


def _operator_spaced(items: Sequence[Token], index: int, brackets: Sequence[str]) -> bool:
    """Whether the operator at `index` has spaces around it."""
    operator = items[index].text
    if operator == "=" and brackets:
        return False  # keyword argument
    before = items[index - 1] if index else None
    operand = before is not None and (
        before.kind in ("number", "string")
        or before.text in (")", "]", "}")
        or (before.kind == "name" and before.text not in _WORDS)
    )
    return operand or operator not in _PREFIXED


def _without_trailing_commas(items: Sequence[Token]) -> list[Token]:
    """Drop a comma before a closing bracket when there is another one in it (so that it makes no tuple)."""
    kept: list[Token] = []
    commas: list[int] = []
    for token in items:
        if token.kind == "op" and token.text in ("(", "[", "{"):
            commas.append(0)
        elif token.kind == "op" and token.text in (")", "]", "}") and commas:
            if commas.pop() > 1 and kept[-1].text == ",":
                kept.pop()
        elif token.text == "," and commas:
            commas[-1] += 1
        kept.append(token)
    return kept


def _quoted(text: str) -> str:
    if text[0] == "'" and text[:3] != "'''" and '"' not in text and "\\" not in text:
        return f'"{text[1:-1]}"'
    return text


# ---- digest, comparison, rendering ----------------------------------------------------------------------------


def digest(value: Signature) -> str:
    """Short digest (16 hex digits) of everything in a signature."""
    parts: list[str] = [value.what, "async" if value.is_async else "", _optional(value.returns)]
    for parameter in value.parameters:
        parts += [parameter.kind, parameter.name, _optional(parameter.default), _optional(parameter.annotation)]
    for group in (value.decorators, value.bases, value.type_params):
        parts += ["\1", *group]
    return short("\0".join(parts), 16)


def _optional(text: str | None) -> str:
    return "\2" if text is None else text


def render(value: Signature, name: str = "") -> str:
    """The signature on one line, without decorators: `async def f(a, /, b: int = 0, *, c) -> str`."""
    type_params = f"[{', '.join(value.type_params)}]" if value.type_params else ""
    if value.what == "constant":
        return name + (f": {value.returns}" if value.returns is not None else "")
    if value.what == "class":
        return f"class {name}{type_params}" + (f"({', '.join(value.bases)})" if value.bases else "")
    parts: list[str] = []
    kinds = [p.kind for p in value.parameters]
    for index, parameter in enumerate(value.parameters):
        if parameter.kind == "keyword-only" and "*" not in kinds and "keyword-only" not in kinds[:index]:
            parts.append("*")
        parts.append(str(parameter))
        if parameter.kind == "positional-only" and "positional-only" not in kinds[index + 1 :]:
            parts.append("/")
    returns = f" -> {value.returns}" if value.returns is not None else ""
    space = " " if name else ""
    return f"{'async ' if value.is_async else ''}def{space}{name}{type_params}({', '.join(parts)}){returns}"


def compare(
    old: Signature,
    new: Signature,
    *,
    old_names: Mapping[str, str] | None = None,
    new_names: Mapping[str, str] | None = None,
) -> tuple[Difference, ...]:
    """What changed from `old` to `new`, nothing when they say the same.

    Args:
        old: the signature before.
        new: the signature after.
        old_names: what names mean in annotations, defaults, bases and decorators of `old` (`np` to `numpy`), so that two
            spellings of one object are equal.
        new_names: the same for `new`.
    """
    before, after = _Names(old_names), _Names(new_names)
    found: list[Difference] = []
    if old.what != new.what:
        found.append(Difference("what", "", f"{old.what} became {new.what}"))
    if old.is_async != new.is_async:
        found.append(Difference("async", "", "became async" if new.is_async else "is no longer async"))
    found += _compare_parameters(old.parameters, new.parameters, before, after)
    if before.annotation(old.returns) != after.annotation(new.returns):
        what = "annotation" if new.what == "constant" else "return annotation"
        found.append(Difference("returns", "", f"{what} {_changed(old.returns, new.returns)}"))
    found += _compare_decorators(old.decorators, new.decorators, before, after)
    if [before.expand(b) for b in old.bases] != [after.expand(b) for b in new.bases]:
        found.append(
            Difference("bases", "", f"bases changed from ({', '.join(old.bases)}) to ({', '.join(new.bases)})")
        )
    if [before.expand(b) for b in old.type_params] != [after.expand(b) for b in new.type_params]:
        texts = f"from [{', '.join(old.type_params)}] to [{', '.join(new.type_params)}]"
        found.append(Difference("type parameters", "", f"type parameters changed {texts}"))
    return tuple(found)


class _Names:
    """Expands names in texts, so that two spellings of one object compare equal."""

    def __init__(self, names: Mapping[str, str] | None) -> None:
        self.names = names or {}

    def expand(self, text: str | None) -> str | None:
        if text is None or not self.names:
            return text
        source = Text(text.encode("utf-8"))
        output: list[str] = []
        at = 0
        dotted = False
        for token in significant(tokens_in(source, Span(0, len(source.data)))):
            output.append(source.data[at : token.span.start].decode("utf-8"))
            output.append(token.text if dotted else self.names.get(token.text, token.text))
            at, dotted = token.span.end, token.text == "."
        return "".join(output)

    def annotation(self, text: str | None) -> str | None:
        """An annotation given as a string means what it says without the quotes."""
        if text is not None and text[0] in "\"'":
            try:
                value: Any = ast.literal_eval(text)
            except (SyntaxError, ValueError):
                value = None
            if isinstance(value, str) and value.strip():
                source = Text(value.strip().encode("utf-8", "surrogatepass"))
                text = normal_text(source, Span(0, len(source.data)))
        return self.expand(text)


def _changed(old: str | None, new: str | None) -> str:
    if old is None:
        return f"added: {new}"
    if new is None:
        return f"removed (was {old})"
    return f"changed from {old} to {new}"


def _position(parameters: Sequence[Parameter], name: str) -> int:
    return [p.name for p in parameters].index(name) + 1


def _compare_parameters(
    old: Sequence[Parameter], new: Sequence[Parameter], before: _Names, after: _Names
) -> Iterable[Difference]:
    olds, news = {p.name: p for p in old}, {p.name: p for p in new}
    for name, parameter in olds.items():
        if name not in news:
            yield Difference("removed", name, f"parameter {parameter} removed (position {_position(old, name)})")
    for name, parameter in news.items():
        if name not in olds:
            required = "" if parameter.default is not None or parameter.kind in ("*", "**") else "required "
            kind = "" if parameter.kind in ("*", "**") else f"{parameter.kind} "
            where = f"position {_position(new, name)}"
            yield Difference("added", name, f"added {required}{kind}parameter {parameter} ({where})")
    common = [name for name in olds if name in news]
    now = [name for name in news if name in olds]
    if common != now and any(_ordered(olds[n]) or _ordered(news[n]) for n in common):
        yield Difference("reordered", "", f"parameters reordered: {', '.join(common)} became {', '.join(now)}")
    for name in common:
        a, b = olds[name], news[name]
        if a.kind != b.kind:
            yield Difference("kind", name, f"parameter {name} changed from {a.kind} to {b.kind}")
        if before.expand(a.default) != after.expand(b.default):
            yield Difference("default", name, f"default of {name} {_changed(a.default, b.default)}")
        if before.annotation(a.annotation) != after.annotation(b.annotation):
            yield Difference("annotation", name, f"annotation of {name} {_changed(a.annotation, b.annotation)}")


def _ordered(parameter: Parameter) -> bool:
    """Whether callers can tell where the parameter stands."""
    return parameter.kind in ("positional-only", "positional")


def _compare_decorators(old: Sequence[str], new: Sequence[str], before: _Names, after: _Names) -> Iterable[Difference]:
    olds, news = [before.expand(d) or "" for d in old], [after.expand(d) or "" for d in new]
    rest = list(news)
    removed: list[int] = []
    for index, text in enumerate(olds):
        if text in rest:
            rest.remove(text)
        else:
            removed.append(index)
    for index in removed:
        yield Difference("decorator removed", old[index], f"decorator @{old[index]} removed")
    for index, text in enumerate(news):
        if text in rest:
            rest.remove(text)
            yield Difference("decorator added", new[index], f"decorator @{new[index]} added")
    if not removed and len(olds) == len(news) and olds != news and sorted(olds) == sorted(news):
        yield Difference("decorators reordered", "", f"decorators reordered: {', '.join('@' + d for d in new)}")
