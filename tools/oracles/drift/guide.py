"""The part of docs/upgrade.md that says what `upgrade` and `regen` make of our own manifests at each release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from afd_patchkit.reports.layout import plural
from afd_patchkit.reports.upgrade.view import changed, condition_lines
from afd_patchkit.upgrade.result import EntryResult, Status, UpgradeResult
from tools.environments import ROOT

PAGE = ROOT / "docs" / "upgrade.md"
BEGIN, END = "<!-- from here on written by `tools/drift --write` -->\n", "<!-- up to here -->\n"
COLUMNS: tuple[Status, ...] = ("unchanged", "clean", "review", "conflict", "missing", "retire")


def section(results: Sequence[UpgradeResult]) -> Iterator[str]:
    """The text between the two marks, line by line."""
    yield "| release | " + " | ".join(COLUMNS) + " | `regen --vllm` |"
    yield "|:--|" + "--:|" * len(COLUMNS) + ":--|"
    for result in results:
        others = [e.status for e in result.entries if e.status not in COLUMNS]
        assert not others, f"a column for {others}"
        counts = " | ".join(str(result.count(status) or "") for status in COLUMNS)
        yield f"| {result.new} | {counts} | {generated(result)} |"
    yield ""
    worked = [r for r in results if not r.count("retire") and any(e.blocks for e in r.entries)]
    yield "What needs a person, and why, before the backport is superfluous:"
    yield ""
    yield "| entry | " + " | ".join(r.new for r in worked) + " |"
    yield "|:--|" + ":--|" * len(worked)
    for ref in dict.fromkeys(e.ref for r in worked for e in r.entries if e.blocks):
        found = [next((e for e in r.entries if e.ref == ref), None) for r in worked]
        yield f"| `{ref.partition('/')[2]}` | " + " | ".join(_cell(e) for e in found) + " |"
    yield ""
    for result in results:
        if result.stays:
            yield f"At {result.new} the backport retires ({'; '.join(condition_lines(result))}). What stays is for NPUs only:"
            yield ""
            for line in result.stays:
                ref, _, why = line.partition(": ")
                yield f"* `{ref.partition('/')[2]}`: {why}"
            yield ""
            return


def generated(result: UpgradeResult) -> str:
    """What `regen` does at this release."""
    blocking = sum(e.blocks for e in result.entries)
    if blocking:
        return f"writes nothing, exit code 1: {plural(blocking, 'entry needs', 'entries need')} a person"
    left = sorted({e.ref.partition("::")[0].partition("/")[2] for e in result.entries if e.status != "retire"})
    return (
        f"writes {', '.join(f'`{name}`' for name in left)}"
        if result.count("retire")
        else f"writes all {len(left)} modules"
    )


def _cell(entry: EntryResult | None) -> str:
    if entry is None:
        return "module unusable"
    if not entry.blocks:
        return entry.status
    told = re.sub(r"\b[\w.]+:(?=\w)", "", changed(entry)).replace("|", "\\|")  # without the modules
    return f"**{entry.status}**: {told}"


def inserted(text: str, results: Sequence[UpgradeResult]) -> str:
    """A page with the part between its two marks written anew.

    Raises:
        ValueError: the page has no such marks.
    """
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:first] + "\n" + "\n".join(section(results)) + text[last:]


def write(results: Sequence[UpgradeResult], path: Path = PAGE) -> None:
    """Write the part of the page."""
    path.write_text(inserted(path.read_text(encoding="utf-8"), results), encoding="utf-8")
