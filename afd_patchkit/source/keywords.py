"""The keywords of clauses: what makes a clause parse alone, and how the clauses of one statement follow each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from afd_patchkit.source.rows import dedent_code, indent_code


@dataclass(frozen=True, slots=True)
class Keyword:
    """A word that a clause begins with.

    Attributes:
        above: rows under which a clause parses, from what is most likely on; none where it is a statement of its own.
        inset: what its code is indented by below those rows.
        several: one statement may have more than one.
        leads: the first of a statement may be given another one above it.
        patterns: its head holds patterns, where what looks like a call names a class.
    """

    above: tuple[str, ...] = ("",)
    inset: str = ""
    several: bool = False
    leads: bool = False
    patterns: bool = False


_IF, _TRY, _HANDLED = "if 1:\n    pass\n", "try:\n    pass\n", "try:\n    pass\nexcept Exception:\n    pass\n"

KEYWORDS = {
    "elif": Keyword((_IF,), several=True),
    "else": Keyword((_IF, _HANDLED)),
    "except": Keyword((_TRY,), several=True, leads=True),
    "finally": Keyword((_TRY,)),
    "case": Keyword(("match 1:\n",), " ", several=True, leads=True, patterns=True),
    "if": Keyword(leads=True),
}
"""The clauses that can be written without their statement, by keyword."""

ORDERS = {
    "if": ("if", "elif", "else"),
    "for": ("for", "else"),
    "while": ("while", "else"),
    "try": ("try", "except", "else", "finally"),
    "case": ("case",),
}
"""By the keyword of its first clause, the clauses that a statement can have, in the order in which they stand."""

_FIRST = re.compile(rf"\s*({'|'.join(KEYWORDS)})\b")


def keyword_of(code: str) -> str:
    """The keyword of `KEYWORDS` that code begins with; empty for other code."""
    found = _FIRST.match(code)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Framed:
    """Code of statements or clauses, as it can be parsed.

    Attributes:
        above: rows in front of it.
        code: the code, moved right by `inset`.
        inset: white space.
    """

    above: str
    code: str
    inset: str = ""

    @property
    def text(self) -> str:
        """What to parse."""
        return self.above + self.code

    def bare(self, text: str) -> str:
        """The code alone, of `text` with other code in place of this one."""
        code = text.removeprefix(self.above)
        return dedent_code(code, self.inset) if self.inset else code


def frames(code: str) -> Iterator[Framed]:
    """The ways to parse code that may begin with a clause, one of which is right if it is Python; first as it stands."""
    yield Framed("", code)
    word = KEYWORDS.get(keyword_of(code))
    for above in word.above if word is not None and word.above != ("",) else ():
        assert word is not None
        yield Framed(above, indent_code(code, word.inset) if word.inset else code, word.inset)
