"""What a file says of its licence, its authors and where it comes from: the comment it begins with, and notices below that."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence

from afd_patchkit.source.text import SourceFile, Span

Paragraph = tuple[Span, ...]
"""Lines that stand together, each without indentation and line end."""

_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=]")
_LEGAL = re.compile(
    r"SPDX-|copyright|©|\(c\)\s*\d{4}|all rights reserved|licen[sc]ed?\s+(?:under|to|by)\b", re.IGNORECASE
)
_NOTICE = re.compile(
    rf"{_LEGAL.pattern}|\blicen[sc]e\b|\b(?:adapted|adopted|borrowed|copied|derived|forked|modified|ported|taken)\s+from\b|\bbased\s+on\b",
    re.IGNORECASE,
)


def is_cookie(line: str) -> bool:
    """Whether Python takes a line for the declaration of an encoding, if it is the first or second one of a file."""
    return _COOKIE.match(line) is not None


def notices(file: SourceFile) -> list[Paragraph]:
    """The paragraphs of a file that belong above what is taken from it.

    All comments above its first statement, but for the line that starts an interpreter and the one that declares the encoding.
    Of the docstring, and of comments below it and below imports from `__future__`, the paragraphs that say something of licence,
    authors or origin.
    """
    found: list[Paragraph] = []
    comments: list[int] = []
    wanted = re.compile("")  # above the first statement: everything
    for row, last, comment in _prologue(file.text):
        if comment:
            comments.append(row)
            continue
        found += _paragraphs(file, comments, wanted)
        comments, wanted = [], _NOTICE
        found += _paragraphs(file, range(row, last + 1), _LEGAL)
    return found + _paragraphs(file, comments, wanted)


def _prologue(text: str) -> Iterator[tuple[int, int, bool]]:
    """First and last line of each comment and of each statement, up to the first that is neither docstring nor `__future__`."""
    start, kind = 0, ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            row, column = token.start
            if token.type == tokenize.COMMENT:
                if not start and not token.line[:column].strip() and not _is_technical(row, token.string):
                    yield row, row, True
            elif token.type == tokenize.NEWLINE:
                yield (start, row, False) if kind == "docstring" else (start, start - 1, False)
                start, kind = 0, "past"
            elif token.type in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                continue
            elif not start:
                if token.type == tokenize.STRING and not kind:
                    start, kind = row, "docstring"
                elif token.string == "from" and re.match(r"\s*from\s+__future__\s+import\b", token.line):
                    start, kind = row, "future"
                else:
                    return
            elif kind == "docstring" and token.type != tokenize.STRING:
                return  # an expression that begins with a string
    except (tokenize.TokenError, SyntaxError):
        return


def _is_technical(row: int, comment: str) -> bool:
    return (row == 1 and comment.startswith("#!")) or (row <= 2 and is_cookie(comment))


def _paragraphs(file: SourceFile, rows: Sequence[int], wanted: re.Pattern[str]) -> list[Paragraph]:
    """The paragraphs among these lines in which something is found."""
    groups: list[list[tuple[int, Span]]] = []
    for row in rows:
        span = _content(file, row)
        if not span:
            continue
        if groups and groups[-1][-1][0] == row - 1:
            groups[-1].append((row, span))
        else:
            groups.append([(row, span)])
    found = [tuple(span for _, span in group) for group in groups]
    return [spans for spans in found if any(wanted.search(file.slice(span)) for span in spans)]


_QUOTES = re.compile(r"""[rRuUbB]*(?:\"{3}|'{3}|"|')""")


def _content(file: SourceFile, row: int) -> Span:
    """A line without white space around it, and without the quotes of a docstring."""
    (line,) = file.lines(row, row)
    text = line.strip()
    start = file.offset(row) + len(line[: len(line) - len(line.lstrip())].encode())
    if not text.startswith("#"):
        if opening := _QUOTES.match(text):
            text, start = text[opening.end() :], start + opening.end()
        text = re.sub(r"(?:\"{3}|'{3}|\"|')\s*(?:#.*)?$", "", text)
        start += len(text.encode()) - len(text.lstrip().encode())
        text = text.strip()
    return Span(start, start + len(text.encode()))
