"""Diffs of generated code as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape as html_escape

from afd_patchkit.reports.layout import Style, plural
from afd_patchkit.reports.markdown import LIMIT, code, escape, fenced
from afd_patchkit.reports.unified import paint, unified
from afd_patchkit.version import __version__

FORMAT = "afd-patchkit/diff/1"


@dataclass(frozen=True, slots=True)
class Change:
    """One text on two sides.

    Attributes:
        name: module or entry.
        lines: the unified diff.
        note: what else is to be said: new, gone, or why there is no diff.
    """

    name: str
    lines: tuple[str, ...] = ()
    note: str = ""

    @property
    def added(self) -> int:
        """Number of added lines."""
        return sum(line.startswith("+") for line in self.lines[2:])

    @property
    def removed(self) -> int:
        """Number of removed lines."""
        return sum(line.startswith("-") for line in self.lines[2:])


def change(name: str, old: str | None, new: str | None, before: str, after: str, *, context: int = 3) -> Change:
    """The change of one text; None is a text that is not there.

    Args:
        name: what changed.
        old: the text before; None when there was none.
        new: the text now; None when there is none.
        before: name of the old file in the diff.
        after: name of the new file in the diff.
        context: unchanged lines around each change.
    """
    note = "new" if old is None else "gone" if new is None else ""
    lines = unified(
        old or "",
        new or "",
        before if old is not None else "/dev/null",
        after if new is not None else "/dev/null",
        context=context,
    )
    return Change(name, tuple(lines), note)


def module_changes(old: Mapping[str, str], new: Mapping[str, str], folder: str, *, context: int = 3) -> list[Change]:
    """The modules that differ, with paths as `git diff` has them.

    Args:
        old: module to text, before.
        new: module to text, now.
        folder: the generated package, as it is shown.
        context: unchanged lines around each change.
    """
    return [
        change(name, old.get(name), new.get(name), f"a/{folder}/{name}", f"b/{folder}/{name}", context=context)
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def render_diff_text(changes: Sequence[Change], style: Style) -> str:
    """The diffs one after another; applies with `patch` where paths are real."""
    return "".join(f"{line}\n" for item in changes for line in paint(list(item.lines), style))


def render_diff_json(changes: Sequence[Change], old: str, new: str) -> str:
    """The diffs as one JSON document."""
    data = {
        "format": FORMAT,
        "tool": {"name": "afd-patchkit", "version": __version__},
        "old": old,
        "new": new,
        "changes": [
            {"name": c.name, "added": c.added, "removed": c.removed, "note": c.note or None, "diff": list(c.lines)}
            for c in changes
        ],
    }
    return json.dumps(data, indent=2) + "\n"


def render_diff_markdown(changes: Sequence[Change], old: str, new: str, *, limit: int = LIMIT) -> str:
    """A table, then each diff folded, within GitHub's limit: the table is kept, diffs are cut, and it is said so.

    Args:
        changes: what changed.
        old: name of the old state.
        new: name of the new state.
        limit: bytes that the text may have.
    """
    head = f"## afd-patchkit diff: {code(old)} to {code(new)}"
    if not any(c.lines or c.note for c in changes):
        return f"{head}\n\nNo difference in generated code.\n"
    rows = [f"| {code(c.name)} | +{c.added} | -{c.removed} | {escape(c.note)} |" for c in changes]
    room = limit - 400
    parts = [head]
    table = ["| | added | removed | |", "|---|---:|---:|---|"]
    used = _size("\n".join([head, *table]))
    for number, row in enumerate(rows):
        used += _size(row) + 1
        if used > room:
            table.append(f"| and {plural(len(rows) - number, 'more change')} | | | |")
            break
        table.append(row)
    parts.append("\n".join(table))
    dropped = 0
    for item in changes:
        if not item.lines:
            continue
        block = (
            f"<details><summary>{html_escape(item.name)} (+{item.added} -{item.removed})</summary>\n\n"
            + "\n".join(fenced("\n".join(item.lines), "diff"))
            + "\n\n</details>"
        )
        if used + _size(block) + 2 > room:
            dropped += 1
            continue
        used += _size(block) + 2
        parts.append(block)
    if dropped:
        parts.append(
            f"> **Cut to fit GitHub's limit:** {plural(dropped, 'diff')} left out. `afd-patchkit diff` prints all."
        )
    return "\n\n".join(parts) + "\n"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
