"""Moving rows of code right and left: those that begin inside a string stay where they are."""

from __future__ import annotations

from afd_patchkit.source.text import Text
from afd_patchkit.source.tokens import multiline_string_lines


def string_lines(text: str) -> frozenset[int]:
    """1-based numbers of the lines that begin inside a string token: they must never be re-indented."""
    if "\n" not in text or ('"""' not in text and "'''" not in text and "\\\n" not in text):
        return frozenset()
    plain = Text(text.encode())
    return multiline_string_lines(plain, 1, plain.line_count)


def indent_code(text: str, indent: str) -> str:
    """Put `indent` in front of every line of emitted code but blank lines and those inside strings."""
    frozen = string_lines(text)
    return "\n".join(
        line if not line.strip() or number in frozen else indent + line
        for number, line in enumerate(text.split("\n"), 1)
    )


def dedent_code(text: str, indent: str) -> str:
    """What `indent_code` made, without `indent`."""
    frozen = string_lines(text)
    return "\n".join(
        line if number in frozen else line.removeprefix(indent) for number, line in enumerate(text.split("\n"), 1)
    )
