"""What people write around a hand copy: fences in its body, and comments above it that claim things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.source.text import SourceFile
from afd_patchkit.source.tokens import Token, tokens

_FENCE = re.compile(
    r"#[\s#=*<>+~-]*(?:[\w-]+\s+)?(?:PATCH(?:ED)?|CHANGES?|MODIFICATIONS?)\s*[-_: ]\s*(?P<end>START|BEGIN|END|STOP)\b"
    r"(?:\s*\([0-9]+/[0-9]+\))?\s*[:-]*\s*(?P<name>.*?)[\s#=*<>~-]*$"
)
_LOWER = re.compile(_FENCE.pattern.replace("PATCH", "[Pp]atch|PATCH", 1), re.IGNORECASE)
_SHAPED = re.compile(r"#\s*#{2,}|#\s*[=*<>+~-]{2,}|#\s*(?:PATCH|patch|Patch)\b")


@dataclass(frozen=True, slots=True)
class HandFence:
    """A region that a person marked.

    Attributes:
        name: what the START says; empty when it says nothing.
        start: line of the START; of an END without one, the END's own.
        end: line of the END; None when it was never closed.
        closing: what the END says; empty when it says nothing.
        stray: there is an END and no START.
    """

    name: str
    start: int
    end: int | None
    closing: str = ""
    stray: bool = False

    def holds(self, first: int, last: int) -> bool:
        """Whether all of lines `first` to `last` lie in it."""
        return self.end is not None and not self.stray and self.start < first and last < self.end


def fence_mark(comment: str) -> tuple[bool, str] | None:
    """Whether a comment begins a fence, and the name that it gives; None for any other comment."""
    found = _FENCE.match(comment)
    if found is None and _SHAPED.match(comment):
        found = _LOWER.match(comment)
    if found is None:
        return None
    return found["end"].upper() in ("START", "BEGIN"), found["name"].strip().rstrip(".").strip()


def comments_of(file: SourceFile) -> dict[int, Token]:
    """The comments of a file by their line; read once per file."""
    known: dict[int, Token] | None = file.__dict__.get("_comments")
    if known is None:
        found = tokens(file, 1, max(1, file.line_count)) if b"#" in file.data else ()
        known = file.__dict__["_comments"] = {file.line_of(t.span.start): t for t in found if t.kind == "comment"}
    return known


def fences_of(file: SourceFile, first: int, last: int) -> list[HandFence]:
    """The fences that begin in lines `first` to `last`, in order; those that are left open or only closed, too."""
    found: list[HandFence] = []
    opened: list[tuple[str, int]] = []
    comments = comments_of(file)
    for line in sorted(n for n in comments if first <= n <= last):
        mark = fence_mark(comments[line].text)
        if mark is None:
            continue
        starts, name = mark
        if starts:
            opened.append((name, line))
        elif opened:
            # an END that names an outer fence closes that one; what is open inside it stays open
            named = [n for n, (text, _) in enumerate(opened) if name and text == name]
            begun, at = opened.pop(named[-1] if named else -1)
            found.append(HandFence(begun, at, line, name))
        else:
            found.append(HandFence(name, line, line, name, stray=True))
    found += [HandFence(name, line, None) for name, line in opened]
    return sorted(found, key=lambda f: f.start)


# ---- comments above -------------------------------------------------------------------------------------------------

_KEYS = {
    "upstream source": "upstream", "upstream": "upstream", "copied from": "upstream", "adapted from": "upstream",
    "copy of": "upstream", "based on": "upstream", "source": "upstream", "patch reason": "reason", "reason": "reason",
    "why": "reason", "patch functionality": "functionality", "functionality": "functionality",
    "signature": "signature", "removal": "removal", "remove when": "removal", "future plan": "removal",
    "expansion exception": "exception", "commit": "commit",
}  # fmt: skip
_KEY = re.compile(rf"\s*(?P<key>{'|'.join(sorted(_KEYS, key=len, reverse=True))})\s*:?\s+(?P<text>.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claims:
    """What the comments above a copy say.

    Attributes:
        line: the first line of the comments; 0 when there are none.
        said: text by what it is about: `upstream`, `reason`, `functionality`, `signature`, `removal`, `exception`.
        lines: line of each of these.
    """

    line: int = 0
    said: tuple[tuple[str, str], ...] = ()
    lines: tuple[tuple[str, int], ...] = ()

    def text(self, about: str) -> str:
        """What is said about it; empty when nothing is."""
        return dict(self.said).get(about, "")

    def line_of(self, about: str) -> int:
        """Where that is said; 0 when it is not."""
        return dict(self.lines).get(about, 0)

    @property
    def claims_match(self) -> bool:
        """Whether it is said that the signature is upstream's."""
        said = self.text("signature").lower()
        return "match" in said and "not match" not in said and "differ" not in said and "except" not in said


def claims_above(file: SourceFile, line: int) -> Claims:
    """What the comment block says that ends directly above `line`."""
    rows: list[tuple[int, str]] = []
    comments = comments_of(file)
    at = line - 1
    while at >= 1 and at in comments and file.lines(at, at)[0].lstrip().startswith("#"):
        rows.append((at, comments[at].text.lstrip("#").strip()))
        at -= 1
    return _claims(rows[::-1])


def _claims(rows: Sequence[tuple[int, str]]) -> Claims:
    said: dict[str, str] = {}
    lines: dict[str, int] = {}
    about = ""
    for line, text in rows:
        found = _KEY.match(text)
        if found is not None:
            about = _KEYS[" ".join(found["key"].lower().split())]
            said[about] = f"{said[about]} {found['text']}" if about in said else found["text"]
            lines.setdefault(about, line)
        elif text and about:
            said[about] = f"{said[about]} {text}"
        elif not text:
            about = ""
    return Claims(rows[0][0] if rows else 0, tuple(said.items()), tuple(lines.items()))


_PARAMETERS = re.compile(
    r"\b(?:adds?|added|extra|new)\s+(?:the\s+|a\s+|an\s+)?(?:optional\s+|keyword(?:-only)?\s+)?(?:parameters?|arguments?|keywords?)\b\s*:?\s*"
    r"((?:`{0,2}\*{0,2}[A-Za-z_]\w*`{0,2}(?:\s*(?:,|and)\s*)?)+)"
)
_QUOTED = re.compile(r"`{1,2}\*{0,2}([A-Za-z_]\w*)`{1,2}")


def parameters_named(text: str) -> Iterator[str]:
    """The parameters that a signature comment says were added: what is quoted, or listed behind `added parameters:`."""
    quoted = _QUOTED.findall(text)
    if quoted:
        yield from dict.fromkeys(quoted)
        return
    for found in _PARAMETERS.finditer(text):
        listed = found[1]
        after = text[found.end() :].lstrip()
        if ":" in found[0] or "," in listed or not after or after[0] in ".;,)":
            yield from (w for w in re.findall(r"[A-Za-z_]\w*", listed) if w not in {"and", "none"})
