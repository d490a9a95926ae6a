"""Where an identifier stands in the text, for every kind of node that carries one."""

from __future__ import annotations

import ast
import re
import sys
import unicodedata

from afd_patchkit.source.fstrings import correct_positions
from afd_patchkit.source.text import Span, Text

_WORD = r"[^\W\d]\w*"
_SPACE = r"(?:\s|\\\n|#[^\n]*\n)*"
_HEAD = re.compile(rf"(?:async{_SPACE}\b)?{_SPACE}(?:def|class)\b{_SPACE}({_WORD})")
_WORDS = re.compile(_WORD)
_QUOTED = re.compile(r"[uU]?('''|\"\"\"|'|\")")


def ident_span(text: Text, node: ast.AST, kind: str, name: str, fstring: ast.AST | None = None) -> Span | None:
    """The bytes of the identifier that `node` carries; None where it cannot be told.

    Args:
        text: the text that `node` was parsed from.
        node: the node.
        kind: what the name is to the node: `name`, `walrus`, `attribute`, `param`, `def`, `alias`, `except`,
            `capture`, `rest`, `type`, or `global` (the whole statement is meant).
        name: the identifier as Python reads it.
        fstring: the outermost f-string around the node.
    """
    correct(text, fstring)
    span = _plain(text, node, kind, name)
    if span is None or kind == "global":
        return span
    return span if same_identifier(text.slice(span), name) else None


def same_identifier(written: str, name: str) -> bool:
    """Whether an identifier as written is `name` (Python compares identifiers in normal form NFKC)."""
    return written == name or (not written.isascii() and unicodedata.normalize("NFKC", written) == name)


def _plain(text: Text, node: ast.AST, kind: str, name: str) -> Span | None:
    if kind in {"name", "walrus", "global"}:
        return text.node_span(node)
    whole = text.node_span(node)
    if kind == "param":
        return _word_at(text, whole.start, forward=True)
    if kind == "attribute":
        return _word_at(text, whole.end, forward=False)
    if kind == "def":
        head = re.compile(rb"[^(:\[]*").match(text.data, whole.start)
        assert head is not None
        return _located(text, whole.start, _HEAD.match(head.group().decode("utf-8")), 1)
    if kind == "alias":
        written = text.slice(whole)
        parts = list(_WORDS.finditer(written))
        asname = getattr(node, "asname", None)
        found = parts[-1] if asname else parts[0]
        return _located(text, whole.start, found, 0)
    return _bound_by_header(text, node, kind, name, whole)


def _bound_by_header(text: Text, node: ast.AST, kind: str, name: str, whole: Span) -> Span | None:
    """Names of `except ... as name`, captures and type parameters: the word that ends the pattern or the header."""
    if kind == "except":
        body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
        kind_of = node.type  # type: ignore[attr-defined]
        start = text.node_span(kind_of).end
        head = text.data[start : text.offset(body[0].lineno, body[0].col_offset)].decode("utf-8")
        match = re.search(rf"\bas\b{_SPACE}({_WORD})", head)
        return _located(text, start, match, 1)
    if kind == "capture":
        return _word_at(text, whole.end, forward=False)
    if kind == "rest":
        written = text.slice(whole)
        matches = list(re.finditer(rf"\*\*{_SPACE}({_WORD})", written))
        return _located(text, whole.start, matches[-1] if matches else None, 1)
    if kind == "type":
        match = re.compile(rf"\**{_SPACE}({_WORD})").match(text.slice(whole))
        return _located(text, whole.start, match, 1)
    return None


def _located(text: Text, base: int, match: re.Match[str] | None, group: int) -> Span | None:
    """Byte span of a group of a match in the text that starts at byte `base`."""
    if match is None:
        return None
    before = len(match.string[: match.start(group)].encode("utf-8"))
    return Span(base + before, base + before + len(match.group(group).encode("utf-8")))


def _word_at(text: Text, offset: int, *, forward: bool) -> Span | None:
    if forward:
        line = text.data[offset:].partition(b"\n")[0].decode("utf-8")
        return _located(text, offset, _WORDS.match(line), 0)
    start = text.starts[text.line_of(max(offset - 1, 0)) - 1]
    match = re.search(rf"{_WORD}\Z", text.data[start:offset].decode("utf-8"))
    return _located(text, start, match, 0)


def listed_spans(text: Text, node: ast.Global | ast.Nonlocal) -> list[Span]:
    """The places of the names of a `global` or `nonlocal` statement."""
    at = text.node_span(node).start + len("global" if isinstance(node, ast.Global) else "nonlocal")
    spans: list[Span] = []
    for name in node.names:
        # only white space, commas and backslashes stand in between
        word = re.compile(rb"[\s,\\]*([^\s,\\;#]+)").match(text.data, at)
        assert word is not None, name
        spans.append(Span(*word.span(1)))
        at = word.end()
    return spans


def quoted_base(text: Text, node: ast.Constant) -> int | None:
    """Byte offset of the first character of a simple string literal's content; None for anything but a plain one-line literal."""
    span = text.node_span(node)
    written = text.slice(span)
    match = _QUOTED.match(written)
    if match is None or not isinstance(node.value, str) or "\n" in written:
        return None
    quote = match.group(1)
    if written[match.end() :] != node.value + quote:
        return None
    return span.start + match.end()


def correct(text: Text, fstring: ast.AST | None) -> None:
    """Make the places of the nodes inside an f-string right (Python before 3.12 gives wrong ones)."""
    if fstring is not None and sys.version_info < (3, 12):
        correct_positions(fstring, text)
