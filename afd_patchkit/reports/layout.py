"""Plain text for people: widths, tables, wrapping, colour. No dependency, so that a quick `check` stays quick."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
# C0 and C1 controls (tab and newline apart) and marks that turn the direction of text: upstream text and file names may
# hold them, and a terminal would obey.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How text is shown.

    Attributes:
        color: whether to write ANSI colours.
        width: columns to keep within; None (not a terminal) leaves every line whole, for `grep` and for logs.
    """

    color: bool = False
    width: int | None = None

    def paint(self, text: str, *names: str) -> str:
        """`text` in the given colours and weights."""
        if not self.color or not text or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


PLAIN = Style()


def printable(text: str) -> str:
    """`text` with control characters spelled out, so that a terminal shows them instead of obeying them."""
    return _CONTROL.sub(lambda m: m.group().encode("unicode_escape").decode("ascii"), text)


def columns(text: str) -> int:
    """How many terminal columns `text` takes; colours take none, wide characters two."""
    text = _ESCAPE.sub("", text)
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrap(text: str, style: Style, *, first: str = "", rest: str | None = None) -> list[str]:
    """`text` behind `first`, later lines behind `rest`, broken at spaces to fit the style's width.

    Words are never broken: a path stays whole, and so clickable, even when it is too long.

    Args:
        text: what to break; its own line ends stay.
        style: colours and width; no width, no breaks.
        first: what stands before the first line.
        rest: what stands before the others; `first` by default.
    """
    rest = first if rest is None else rest
    lines: list[str] = []
    prefix = first
    for paragraph in text.split("\n"):
        line, filled = prefix, False
        for word in paragraph.split(" "):
            candidate = f"{line} {word}" if filled else line + word
            if filled and style.width is not None and columns(candidate) > style.width:
                lines.append(line.rstrip())
                line = rest + word
            else:
                line = candidate
            filled = True
        lines.append(line.rstrip())
        prefix = rest
    return lines


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` columns: the end is kept, since the end of a path says most."""
    if columns(text) <= width:
        return text
    keep = text
    while keep and columns(keep) > max(width - 3, 0):
        keep = keep[1:]
    return "..." + keep


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    style: Style,
    *,
    right: Sequence[int] = (),
    footer: Sequence[str] = (),
) -> list[str]:
    """A table without rules: bold header, columns two spaces apart.

    Args:
        header: column titles.
        rows: cells, which may be painted already.
        style: colour and width; the first column is shortened when the table would not fit.
        right: numbers of the columns that are right-aligned.
        footer: one more row below, in bold.
    """
    everything = [header, *rows, *([footer] if footer else [])]
    widths = [max(columns(row[n]) for row in everything) for n in range(len(header))]
    if style.width is not None:
        over = sum(widths) + 2 * (len(widths) - 1) - style.width
        if over > 0:
            widths[0] = max(12, widths[0] - over)

    def line(row: Sequence[str]) -> str:
        cells = []
        for n, (cell, width) in enumerate(zip(row, widths, strict=True)):
            text = shorten(cell, width) if n == 0 else cell
            gap = " " * (width - columns(text))
            cells.append(gap + text if n in right else text + gap)
        return "  ".join(cells).rstrip()

    lines = [style.paint(line(header), "bold"), *(line(row) for row in rows)]
    if footer:
        lines.append(style.paint(line(footer), "bold"))
    return lines


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 module`, `2 modules`; `nouns` for irregular ones."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def human_bytes(count: int) -> str:
    """A size in decimal units: `0 B`, `812 kB`, `2.4 MB`."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        # 999.95 and above would round to 1000.0 of this unit
        if value < 999.5 or unit == "TB":
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    raise AssertionError  # the loop returns


def human_seconds(seconds: float) -> str:
    """A duration: `0.04 s`, `3.4 s`, `2 min 05 s`."""
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def human_share(share: float | None) -> str:
    """A share as a percentage, rounded down: `100.0%` means all of it. `-` for None."""
    if share is None:
        return "-"
    # 1e-9: 0.983 * 1000 is 982.9999...
    return f"{int(share * 1000 + 1e-9) / 10:.1f}%"
