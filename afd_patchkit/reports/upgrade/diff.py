"""Unified diffs of an entry, and how they look in a terminal."""

from __future__ import annotations

from difflib import unified_diff
from typing import Literal

from afd_patchkit.reports.layout import Style, printable
from afd_patchkit.upgrade.result import EntryResult

View = Literal["upstream", "delta", "generated"]
VIEWS: tuple[View, ...] = ("upstream", "delta", "generated")

LABELS: dict[View, tuple[str, str]] = {
    "upstream": ("upstream, old", "upstream, new"),
    "delta": ("upstream, new", "generated, new"),
    "generated": ("generated, old", "generated, new"),
}


def sides(entry: EntryResult, view: View) -> tuple[str | None, str | None]:
    """The two texts of a view; None where one is not at hand."""
    if view == "upstream":
        return entry.base, entry.new
    if view == "delta":
        return level(entry.new, entry.ours_new), entry.ours_new
    return entry.ours_old, entry.ours_new


def level(upstream: str | None, generated: str | None) -> str | None:
    """Upstream's text indented as the generated one: a method that became a function has not changed in every line."""
    if upstream is None or generated is None:
        return upstream
    before, after = _indent(upstream), _indent(generated)
    if len(after) > len(before):
        return "\n".join(after[len(before) :] + line if line.strip() else line for line in upstream.split("\n"))
    extra = len(before) - len(after)
    return "\n".join(line[extra:] if line[:extra].isspace() else line for line in upstream.split("\n")) if extra else upstream


def _indent(text: str) -> str:
    line = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return line[: len(line) - len(line.lstrip())]


def absent(entry: EntryResult, view: View) -> str:
    """Why a view has nothing to show; empty when it has something, or when both sides are equal."""
    old, new = sides(entry, view)
    if old is not None and new is not None:
        return ""
    missing = LABELS[view][0 if old is None else 1]
    if entry.status == "missing" and missing == "upstream, new":
        return "the symbol is gone upstream"
    if missing == "upstream, old":
        return "the old upstream is not at hand; the lock's digests decided"
    if missing == "generated, new":
        return "there is no new generated text" + (": the entry retires" if entry.status == "retire" else "")
    return f"not at hand: {missing}"


def unified(old: str, new: str, before: str, after: str, *, context: int = 3) -> list[str]:
    """A unified diff as lines; a missing newline at the end is said, as `git` says it. Empty when the texts are equal."""
    lines = []
    for line in unified_diff(_lines(old), _lines(new), before, after, n=context):
        if line.endswith("\n"):
            lines.append(line[:-1])
        else:
            lines += [line, "\\ No newline at end of file"]
    return lines


def _lines(text: str) -> list[str]:
    # only LF ends a line, as everywhere else in the tool
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def entry_diff(entry: EntryResult, view: View, *, context: int = 3) -> list[str]:
    """The diff of one view; empty when a side is missing or both are equal."""
    old, new = sides(entry, view)
    if old is None or new is None:
        return []
    before, after = LABELS[view]
    return unified(old, new, f"{entry.ref} ({before})", f"{entry.ref} ({after})", context=context)


def paint(lines: list[str], style: Style) -> list[str]:
    """The lines of a diff in the usual colours."""
    return [style.paint(printable(line), *_colors(line, number)) for number, line in enumerate(lines)]


def _colors(line: str, number: int) -> tuple[str, ...]:
    if number < 2 and line.startswith(("---", "+++")):
        return ("bold",)
    return {"+": ("green",), "-": ("red",), "@": ("cyan",), "\\": ("dim",)}.get(line[:1], ())
