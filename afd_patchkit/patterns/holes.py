"""Pattern text to something Python's parser takes: each `...` becomes a name, and positions can be mapped back."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass

from afd_patchkit.patterns.match import HOLE, MANY_HOLE
from afd_patchkit.source.keywords import KEYWORDS
from afd_patchkit.source.text import Text
from afd_patchkit.source.tokens import Token, significant, tokens


@dataclass
class _Frame:
    """A bracket that is open at this point of the pattern."""

    kind: str  # call, pattern (a class pattern of `case`), parameters, dict or other
    assigned: bool = False  # a keyword argument, a default or `**` was seen
    starred: bool = False


@dataclass(frozen=True)
class Prepared:
    """Text in which holes are names.

    Attributes:
        text: what to parse; the same lines as the original.
        inserted: for each place where it is longer: line, 1-based column in the original, characters added there.
    """

    text: str
    inserted: tuple[tuple[int, int, int], ...]

    def original(self, line: int, column: int) -> int:
        """The 1-based column in the original of a place in `text`."""
        for at, start, added in self.inserted:
            if at == line and column > start:
                column = max(start, column - added)
        return column


def prepare(text: str) -> Prepared:
    """Replace the `...` tokens of a pattern (not the dots of a relative import, nor those inside strings)."""
    source = Text(text.encode("utf-8"))
    items = [t for t in tokens(source, 1, source.line_count) if t.kind == "newline" or significant((t,))]
    output: list[str] = []
    inserted: list[tuple[int, int, int]] = []
    frames: list[_Frame] = []
    head = ""
    at = 0
    for number, token in enumerate(items):
        before = items[number - 1].text if number else ""
        if token.text == "..." and token.kind == "op" and head not in ("from", "import"):
            after = items[number + 1].text if number + 1 < len(items) else ""
            hole = _spelling(frames[-1] if frames else None, before in (*"([{,",) and after in (*")]},",))
            lead = source.data[at : token.span.start].decode("utf-8")
            left = " " if _glued(source.data[token.span.start - 1 : token.span.start]) else ""
            right = " " if _glued(source.data[token.span.end : token.span.end + 1]) else ""
            output += [lead, left, hole, right]
            at = token.span.end
            line, column = source.line_of(token.span.start), source.column_of(token.span.start)
            if left:
                inserted.append((line, column, 1))
            if len(hole + right) > 3:
                inserted.append((line, column + 3, len(hole + right) - 3))
        if token.kind == "newline" or (not frames and token.text in (";", ":")):
            head = ""
        elif not head and token.text != "async":
            head = token.text
        head = _bracket(items, number, frames, head)
    output.append(source.data[at:].decode("utf-8"))
    return Prepared("".join(output), tuple(inserted))


def _glued(byte: bytes) -> bool:
    return byte == b"_" or byte.isalnum() or byte >= b"\x80"


def _spelling(frame: _Frame | None, bare: bool) -> str:
    """How a hole is written so that it parses where it stands."""
    if frame is not None and bare:
        if frame.kind == "dict" or (frame.kind == "call" and frame.assigned):
            return f"**{MANY_HOLE}"
        if frame.kind in ("parameters", "pattern") and frame.assigned and not frame.starred:
            return f"{HOLE}={HOLE}"
    return HOLE


def _bracket(items: Sequence[Token], number: int, frames: list[_Frame], head: str) -> str:
    """Keep track of the bracket that the next token stands in; returns the head of the statement."""
    token = items[number]
    if token.kind != "op":
        return head
    before = items[number - 1] if number else None
    if token.text in ("(", "[", "{"):
        kind = "other"
        if token.text == "{":
            kind = "dict" if _is_dict(items, number) else "other"
        elif token.text == "(" and head == "def" and not frames:
            kind, head = "parameters", "def ("
        elif token.text == "(" and before is not None and _callable(before):
            kind = "pattern" if head in KEYWORDS and KEYWORDS[head].patterns else "call"
        frames.append(_Frame(kind))
    elif token.text in (")", "]", "}"):
        if frames:
            frames.pop()
    elif frames:
        first = before is not None and before.text in ("(", ",")
        if token.text == "=" or (token.text == "**" and first):
            frames[-1].assigned = True
        if token.text == "*" and first:
            frames[-1].starred = True
    return head


def _callable(token: Token) -> bool:
    if token.kind == "name":
        return not keyword.iskeyword(token.text)
    return token.kind == "string" or token.text in (")", "]", "}", "...")


def _is_dict(items: Sequence[Token], number: int) -> bool:
    """Whether the brace at `number` opens a dict display: it has a `:` or a `**` of its own."""
    depth, lambdas = 0, 0
    for i in range(number, len(items)):
        text = items[i].text
        if items[i].kind == "name" and text == "lambda" and depth == 1:
            lambdas += 1
        if items[i].kind != "op":
            continue
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return False
        elif depth == 1 and text == ":":
            if not lambdas:
                return True
            lambdas -= 1
        elif depth == 1 and text == "**" and items[i - 1].text in ("{", ","):
            return True
    return False
