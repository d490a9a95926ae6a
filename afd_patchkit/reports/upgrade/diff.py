"""The three views of an entry of an upgrade, as two texts and as a diff."""

from __future__ import annotations

from typing import Literal

from afd_patchkit.reports.unified import level, unified
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


def entry_diff(entry: EntryResult, view: View, *, context: int = 3) -> list[str]:
    """The diff of one view; empty when a side is missing or both are equal."""
    old, new = sides(entry, view)
    if old is None or new is None:
        return []
    before, after = LABELS[view]
    return unified(old, new, f"{entry.ref} ({before})", f"{entry.ref} ({after})", context=context)
