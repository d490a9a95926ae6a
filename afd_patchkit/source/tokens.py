"""Tokens of a piece of text, the same on every Python.

The standard `tokenize` splits f-strings from Python 3.12 on and not before, reports stray characters differently, and
refuses fragments whose indentation does not start at zero. What is kept in a lock must not depend on that, so this is
a lexer of its own: bytes in, byte spans out, f-strings as one token, and it never raises.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.source.text import Span, Text

Kind = Literal[
    "name", "number", "string", "op", "comment", "newline", "nl", "indent", "dedent", "continuation", "error"
]

_DIGITS = rb"[0-9](?:_?[0-9])*"
_TOKEN = re.compile(
    rb"(?P<space>[ \t\f]+)"
    rb"|(?P<continuation>\\\n)"
    rb"|(?P<comment>\#[^\n]*)"
    rb"|(?P<newline>\n)"
    rb"|(?P<string>(?P<prefix>(?:[rR][bBfFtT]?|[bBfFtT][rR]?|[uU])?)(?P<quote>\"\"\"|'''|\"|'))"
    rb"|(?P<number>0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    rb"|(?:" + _DIGITS + rb"\.(?:" + _DIGITS + rb")?|\." + _DIGITS + rb"|" + _DIGITS + rb")"
    rb"(?:[eE][+-]?" + _DIGITS + rb")?[jJ]?)"
    rb"|(?P<name>[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)"
    rb"|(?P<op>\.\.\.|\*\*=|//=|>>=|<<=|->|:=|\*\*|//|>>|<<|[=!<>+\-*/%&|^@]=|<>|[()\[\]{}:;,.=<>+\-*/%&|^~@!])"
)
_PLAIN_END = {
    b'"': re.compile(rb'[^\n"\\]*(?:\\.[^\n"\\]*)*"', re.DOTALL),
    b"'": re.compile(rb"[^\n'\\]*(?:\\.[^\n'\\]*)*'", re.DOTALL),
    b'"""': re.compile(rb'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
    b"'''": re.compile(rb"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
}
_NAMED_ESCAPE = re.compile(rb"\\N\{[^}\n]*\}")
_OPEN, _CLOSE = b"([{", b")]}"
_SIGNIFICANT = frozenset({"name", "number", "string", "op", "error"})
_STRUCTURE = frozenset({"newline", "indent", "dedent"})


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: `newline` ends a logical line, `nl` any other line; `indent` and `dedent` are empty and stand at the first
            token of the line whose indentation changed (never below the first line's); `continuation` is a backslash at
            the end of a line; `error` is what Python would refuse.
        text: its text as written.
        span: its bytes in the text it was taken from.
    """

    kind: Kind
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ReplacementField:
    """One replacement field of an f-string.

    Attributes:
        span: from `{` to `}`, inclusive.
        expression: the expression's bytes, without `=`, conversion and format, with the white space around it.
        nested: the fields inside its format.
    """

    span: Span
    expression: Span
    nested: tuple[ReplacementField, ...]


def tokens(text: Text, first_line: int, last_line: int) -> tuple[Token, ...]:
    """The tokens of lines `first_line` to `last_line` (1-based, inclusive).

    The first line must not start inside a string or bracket. Any indentation will do. A string that starts in the
    range is one token even if it ends behind it.
    """
    return tokens_in(text, text.line_span(first_line, last_line))


def tokens_in(text: Text, span: Span) -> tuple[Token, ...]:
    """The tokens of `span`, which must start at a token or at white space between tokens."""
    return tuple(_lex(text.data, span.start, span.end))


def significant(items: Iterable[Token]) -> tuple[Token, ...]:
    """The names, numbers, strings and operators among `items`: no comments, no layout."""
    return tuple(t for t in items if t.kind in _SIGNIFICANT)


def token_digest(items: Iterable[Token]) -> str:
    """Short digest (16 hex digits) of what `items` mean to Python: comments, blank lines, white space inside a line,
    line breaks inside brackets and the width of indentation do not change it; statements and blocks do.
    """
    digest = hashlib.sha256()
    pending: list[bytes] = []
    for token in items:
        if token.kind in _STRUCTURE:
            pending.append(token.kind.encode())
        elif token.kind in _SIGNIFICANT:
            # Line ends and dedents at the very end are left out: whether a range ends with them is layout.
            for kind in pending:
                digest.update(kind + b"\0\0")
            pending.clear()
            digest.update(token.kind.encode() + b"\0" + token.text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def multiline_string_lines(text: Text, first_line: int, last_line: int) -> frozenset[int]:
    """Numbers of the lines that begin inside a string: their indentation is data and must stay."""
    return _string_lines(text, tokens(text, first_line, last_line))


def unsafe_boundaries(text: Text, first_line: int, last_line: int) -> frozenset[int]:
    """Numbers of the lines in front of which no comment line may be put: they begin inside a string or continue a line
    that ends with a backslash.
    """
    items = tokens(text, first_line, last_line)
    continued = {text.line_of(t.span.start) + 1 for t in items if t.kind == "continuation"}
    return _string_lines(text, items) | continued


def fields(text: Text, token: Token) -> tuple[ReplacementField, ...]:
    """The replacement fields of a string token, in order; none for a plain string."""
    head = _TOKEN.match(text.data, token.span.start)
    if head is None or head["quote"] is None or not _formatted(head["prefix"]):
        return ()
    found: list[ReplacementField] = []
    _formatted_end(text.data, head.end(), head["quote"], _raw(head["prefix"]), found)
    return tuple(found)


def _string_lines(text: Text, items: Iterable[Token]) -> frozenset[int]:
    lines: set[int] = set()
    for token in items:
        if token.kind == "string" and "\n" in token.text:
            lines.update(range(text.line_of(token.span.start) + 1, text.line_of(token.span.end - 1) + 1))
    return frozenset(lines)


def _raw(prefix: bytes) -> bool:
    return b"r" in prefix.lower()


def _formatted(prefix: bytes) -> bool:
    return any(letter in prefix for letter in (b"f", b"F", b"t", b"T"))


def _lex(data: bytes, start: int, end: int) -> Iterator[Token]:
    at, depth, fresh = start, 0, True
    indents: list[int] = []
    while at < end:
        match = _TOKEN.match(data, at)
        if match is None:
            stop = at + 1
            yield Token("error", data[at:stop].decode("utf-8", "replace"), Span(at, stop))
            at, fresh = stop, False
            continue
        group = "string" if match["quote"] is not None else match.lastgroup
        stop = match.end()
        if group == "string":
            found = string_end(data, match)
            if found is None:  # unterminated: the rest of the line
                stop = data.find(b"\n", stop)
                stop = end if stop < 0 else stop
                group = "error"
            else:
                stop = found
        if group == "space":
            at = stop
            continue
        span = Span(at, stop)
        if group == "newline":
            yield Token("nl" if fresh or depth else "newline", "\n", span)
            fresh = fresh or not depth
        else:
            if fresh and group not in ("comment", "continuation"):
                yield from _indentation(data, at, indents)
                fresh = False
            text = data[at:stop].decode("utf-8", "replace")
            if group == "op":
                if text in "([{":
                    depth += 1
                elif text in ")]}":
                    depth = max(0, depth - 1)
            yield Token(group, text, span)  # type: ignore[arg-type]
        at = stop


def _indentation(data: bytes, at: int, indents: list[int]) -> Iterator[Token]:
    line = data.rfind(b"\n", 0, at) + 1
    width = _width(data[line:at])
    here = Span(at, at)
    if not indents:
        indents.append(width)
    elif width > indents[-1]:
        indents.append(width)
        yield Token("indent", "", here)
    else:
        while len(indents) > 1 and width < indents[-1]:
            indents.pop()
            yield Token("dedent", "", here)
        indents[0] = min(indents[0], width)


def _width(lead: bytes) -> int:
    """Indentation of a line that starts with `lead` as Python counts it: tabs go to multiples of eight, a form feed
    starts again.
    """
    width = 0
    for byte in lead[: len(lead) - len(lead.lstrip(b" \t\f"))].rpartition(b"\f")[2]:
        width = width + 1 if byte != 9 else (width // 8 + 1) * 8
    return width


def string_end(data: bytes, head: re.Match[bytes]) -> int | None:
    """Where the string whose prefix and opening quote are `head` ends; None if it does not."""
    if _formatted(head["prefix"]):
        return _formatted_end(data, head.end(), head["quote"], _raw(head["prefix"]), None)
    found = _PLAIN_END[head["quote"]].match(data, head.end())
    return found.end() if found else None


def _formatted_end(data: bytes, at: int, quote: bytes, raw: bool, found: list[ReplacementField] | None) -> int | None:
    """End of an f-string whose contents start at `at`; its fields go to `found`."""
    size = len(data)
    while at < size:
        if data.startswith(quote, at):
            return at + len(quote)
        byte = data[at : at + 1]
        if byte == b"\n" and len(quote) == 1:
            return None
        if byte == b"\\":
            at = _escape(data, at, raw)
        elif byte == b"{" and data[at + 1 : at + 2] != b"{":
            field = _field(data, at, quote, raw)
            if field is None:
                return None
            if found is not None:
                found.append(field)
            at = field.span.end
        else:
            at += 2 if data[at : at + 2] in (b"{{", b"}}") else 1
    return None


def _escape(data: bytes, at: int, raw: bool) -> int:
    named = None if raw else _NAMED_ESCAPE.match(data, at)
    if named:
        return named.end()
    # A brace behind a backslash is still a brace.
    return at + 1 if data[at + 1 : at + 2] in (b"{", b"}") else at + 2


def _field(data: bytes, start: int, quote: bytes, raw: bool) -> ReplacementField | None:
    """The replacement field that starts with the brace at `start`."""
    at, depth, size = start + 1, 0, len(data)
    expression_end: int | None = None
    while at < size:
        match = _TOKEN.match(data, at)
        if match is None:
            return None
        if match["quote"] is not None:
            end = string_end(data, match)
            if end is None:
                return None
            at = end
            continue
        text = match[0]
        if depth == 0 and text[:1] in (b"}", b"!", b":") and text != b"!=":
            expression_end = at if expression_end is None else expression_end
            break
        if text in (b"(", b"[", b"{"):
            depth += 1
        elif text in (b")", b"]", b"}"):
            depth -= 1
        if depth == 0 and text == b"=":
            expression_end = at  # `{x=}`: the only bare `=` that may stand here
        at = match.end()
    if expression_end is None:
        return None
    nested: list[ReplacementField] = []
    end = _field_tail(data, at, quote, raw, nested)
    return None if end is None else ReplacementField(Span(start, end), Span(start + 1, expression_end), tuple(nested))


def _field_tail(data: bytes, at: int, quote: bytes, raw: bool, nested: list[ReplacementField]) -> int | None:
    """End of a field, from its conversion, format or closing brace on."""
    if data[at : at + 1] == b"!":
        while at < len(data) and data[at : at + 1] not in (b":", b"}"):
            at += 1
    if data[at : at + 1] == b"}":
        return at + 1
    at += 1
    while at < len(data):
        byte = data[at : at + 1]
        if byte == b"}":
            return at + 1
        if byte == b"{":
            field = _field(data, at, quote, raw)
            if field is None:
                return None
            nested.append(field)
            at = field.span.end
        elif data.startswith(quote, at):
            return None
        else:
            at = _escape(data, at, raw) if byte == b"\\" else at + 1
    return None
