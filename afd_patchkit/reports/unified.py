"""Unified diffs, and how they look in a terminal."""

from __future__ import annotations

from difflib import unified_diff

from afd_patchkit.reports.layout import Style, printable


def unified(old: str, new: str, before: str, after: str, *, context: int = 3) -> list[str]:
    """A unified diff as lines; a missing newline at the end is said, as `git` says it. Empty when the texts are equal.

    Args:
        old: the text before.
        new: the text now.
        before: name of the old file.
        after: name of the new file.
        context: unchanged lines around each change.
    """
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


def level(upstream: str | None, generated: str | None) -> str | None:
    """Upstream's text indented as the generated one: a method that became a function has not changed in every line."""
    if upstream is None or generated is None:
        return upstream
    before, after = _indent(upstream), _indent(generated)
    if len(after) > len(before):
        return "\n".join(after[len(before) :] + line if line.strip() else line for line in upstream.split("\n"))
    extra = len(before) - len(after)
    return (
        "\n".join(line[extra:] if line[:extra].isspace() else line for line in upstream.split("\n"))
        if extra
        else upstream
    )


def _indent(text: str) -> str:
    line = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return line[: len(line) - len(line.lstrip())]


def paint(lines: list[str], style: Style) -> list[str]:
    """The lines of a diff in the usual colours."""
    return [style.paint(printable(line), *_colors(line, number)) for number, line in enumerate(lines)]


def _colors(line: str, number: int) -> tuple[str, ...]:
    if number < 2 and line.startswith(("---", "+++")):
        return ("bold",)
    return {"+": ("green",), "-": ("red",), "@": ("cyan",), "\\": ("dim",)}.get(line[:1], ())
