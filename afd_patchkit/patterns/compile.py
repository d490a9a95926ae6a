"""Parsing of patterns; `patterns` says what they mean."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Code
from afd_patchkit.patterns.holes import Prepared, prepare
from afd_patchkit.patterns.match import HOLE, MANY_HOLE, is_hole, is_statement_hole
from afd_patchkit.source.keywords import KEYWORDS, frames
from afd_patchkit.source.syntax import blocks
from afd_patchkit.source.text import Text, parse_quietly
from afd_patchkit.source.tokens import significant, tokens

Kind = Literal["statements", "expression"]


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern: `nodes` are statements, or one expression, with holes where the text has `...`."""

    code: Code
    kind: Kind
    nodes: tuple[ast.AST, ...]


def compile_pattern(code: Code, kind: Literal["statements", "expression", "auto"] = "auto") -> Pattern:
    """Parse a pattern.

    Args:
        code: its text.
        kind: what it must be; `auto` takes a lone expression as expression and anything else as statements.

    Raises:
        ManifestError: it is no Python of that kind (PK030), or it would match anything (PK031).
    """
    if HOLE[0] in code.text or MANY_HOLE[0] in code.text:
        raise _error(code, 1, 1, "unexpected character", kind)
    prepared = prepare(code.text)
    if kind == "expression":
        return _checked(Pattern(code, "expression", (_expression(code, prepared),)))
    try:
        body = _statements(code, prepared)
    except ManifestError as first:
        if kind == "statements":
            raise
        try:
            return _checked(Pattern(code, "expression", (_expression(code, prepared),)))
        except ManifestError:
            raise first from None
    if not body:
        raise _error(code, 1, 1, "there is no code in it", kind)
    if kind == "auto" and len(body) == 1 and isinstance(body[0], ast.Expr):
        return _checked(Pattern(code, "expression", (body[0].value,)))
    return _checked(Pattern(code, "statements", tuple(body)))


# clauses that have no more of a head than their keyword, and statements that begin with one that has
_WORDS = ("else", "finally", "try")
_STATEMENTS = ("if", "while", "for", "with")


def compile_head(code: Code) -> tuple[str, ast.AST | None]:
    """Parse the head of a clause.

    Returns:
        Its keyword, and the node that carries the head (None for `else`, `try`, `finally`).

    Raises:
        ManifestError: it is no head of a clause (PK030).
    """
    source = Text(code.text.encode("utf-8"))
    items = significant(tokens(source, 1, source.line_count))
    if len(items) > 2 and [t.text for t in items[-2:]] == [":", "..."]:
        items = items[:-1]
    if len(items) > 1 and items[-1].text == ":":
        items = items[:-1]
    words = [t.text for t in items[:2]]
    keyword = words[1] if words[:1] == ["async"] and len(words) == 2 else "".join(words[:1])
    if keyword in _WORDS and len(items) == 1:
        return keyword, None
    if keyword in _WORDS or keyword not in (*KEYWORDS, *_STATEMENTS):
        raise _error(code, 1, 1, "no clause starts like this", "clause")
    head = source.data[: items[-1].span.end].decode("utf-8").lstrip()
    prepared = prepare(head.removeprefix("el") if keyword == "elif" else head)
    *_, frame = frames(f"{prepared.text}: pass")
    try:
        node = parse_quietly(frame.text).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _error(code, 1, 1, getattr(error, "msg", None) or str(error), "clause") from error
    *_, last = blocks(node)
    return keyword, last.owner


def _statements(code: Code, prepared: Prepared) -> list[ast.stmt]:
    try:
        return parse_quietly(prepared.text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        first = prepared.text.split(None, 1)[:1]
        # `try: ...` and `match x: ...` are what one writes to name such a statement, but Python wants a clause.
        if first in (["try:"], ["try"]):
            completed = prepared.text.rstrip() + f"\nfinally:\n    {MANY_HOLE}\n"
        elif first == ["match"] and prepared.text.rstrip().endswith(HOLE):
            completed = prepared.text.rstrip().removesuffix(HOLE) + f"\n  case {HOLE}:\n    {HOLE}\n"
        else:
            raise _syntax_error(code, prepared, error, "statements") from error
        try:
            return parse_quietly(completed).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _syntax_error(code, prepared, error, "statements") from error


def _expression(code: Code, prepared: Prepared) -> ast.expr:
    depth = 0
    for character in _brackets(prepared.text):
        depth += 1 if character in "([{" else -1
        if depth < 0:
            raise _error(code, 1, 1, f"unmatched '{character}'", "expression")
    try:
        body = parse_quietly(f"({prepared.text}\n)").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _syntax_error(code, prepared, error, "expression") from error
    if (
        len(body) != 1
        or not isinstance(body[0], ast.Expr)
        or (isinstance(body[0].value, ast.Tuple) and not body[0].value.elts)
    ):
        raise _error(code, 1, 1, "not an expression", "expression")
    return body[0].value


def _brackets(text: str) -> Iterator[str]:
    source = Text(text.encode("utf-8"))
    return (t.text for t in tokens(source, 1, source.line_count) if t.kind == "op" and t.text in "()[]{}")


def arguments(text: str) -> tuple[str, ...]:
    """The names in a text that is keyword arguments of a call and nothing else, such as `x=y`; none for all others."""
    try:
        (node,) = parse_quietly(f"f(\n{text}\n)").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or call.args:
        return ()
    return tuple(given.arg for given in call.keywords if given.arg is not None)


def argument_help(names: Sequence[str]) -> str:
    """What to do with `x=y` that was written as an expression."""
    return f"An argument is no expression: match its call, and say `call: {{match: ..., set: {{{names[0]}: ...}}}}`."


def _syntax_error(code: Code, prepared: Prepared, error: BaseException, kind: str) -> ManifestError:
    if not isinstance(error, SyntaxError):
        return _error(code, 1, 1, str(error) or type(error).__name__, kind)
    line = min(max(error.lineno or 1, 1), code.text.count("\n") + 1)
    column = max(error.offset or 1, 1)
    if kind == "expression" and line == 1:
        column = max(column - 1, 1)
    message = error.msg.replace(f"**{MANY_HOLE}", "...").replace(f"{HOLE}={HOLE}", "...").replace(HOLE, "...")
    return _error(code, line, prepared.original(line, column), message, kind)


def _error(code: Code, line: int, column: int, message: str, kind: str) -> ManifestError:
    text = (code.text.split("\n") or [""])[line - 1]
    what = (
        "an expression" if kind == "expression" else "statements or an expression" if kind == "auto" else "statements"
    )
    first = code.text.split(None, 1)[:1]
    help_ = "Write it as it stands upstream, with `...` for what may differ."
    if first and first[0].rstrip(":") in KEYWORDS.keys() - {*_STATEMENTS}:
        help_ = "A clause is reached by `clause` or by `within: {of: ..., clause: ...}`, not by a pattern."
    elif names := arguments(prepare(code.text).text):
        help_ = argument_help(names)
    return ManifestError(
        finding(
            "PK030",
            f"the pattern is not {what} in Python: {message}",
            manifest=code.at(line, column),
            details=(text, " " * (min(column, len(text) + 1) - 1) + "^") if text.strip() else (),
            help=help_,
        )
    )


def _checked(pattern: Pattern) -> Pattern:
    hole = is_statement_hole if pattern.kind == "statements" else is_hole
    if not hole(pattern.nodes[0]) and not hole(pattern.nodes[-1]):
        return pattern
    alone = all(map(hole, pattern.nodes))
    raise ManifestError(
        finding(
            "PK031",
            "the pattern matches anything" if alone else "a pattern must not begin or end with `...`",
            manifest=pattern.code.position,
            help="Name what stands there upstream."
            if alone
            else "Drop the `...` line: what follows or precedes is not part of a match.",
        )
    )
