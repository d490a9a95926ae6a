"""An upgrade as GitHub-flavoured Markdown for a pull request: the table, then folded details, within GitHub's limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape as html_escape

from afd_patchkit.findings.finding import Finding, Severity
from afd_patchkit.reports.context import Context, ordered, primary
from afd_patchkit.reports.layout import human_seconds, plural, printable
from afd_patchkit.reports.markdown import LIMIT, code, escape, fenced
from afd_patchkit.reports.upgrade.diff import VIEWS, absent, entry_diff
from afd_patchkit.reports.upgrade.view import (
    changed,
    extras,
    fates,
    lines_text,
    matrix,
    must_do,
    origin,
    tally,
    title,
    verdict,
    worst_first,
)
from afd_patchkit.upgrade.result import NEEDS_PERSON, EntryResult, Status, UpgradeResult

ICONS: dict[Status, str] = {
    "missing": "🔴", "conflict": "🔴", "review": "🟡", "absorbed": "🟣", "moved": "🟣", "clean": "🟢", "unchanged": "⚪",
    "retire": "🔵",
}  # fmt: skip
_SIGNS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}  # noqa: RUF001 - the sign is meant
_HEADINGS = {
    "upstream": "Upstream: old to new",
    "delta": "Delta: upstream's new text to the generated one",
    "generated": "Generated: old to new",
}
_DIFF_LINES = (400, 80, 25, 0)
"""Lines of each diff, from generous to none: the first that fits is taken."""
_CELL = (400, 140, 60, 24)
"""Characters of each table cell, likewise."""


def render_upgrade_markdown(results: Sequence[UpgradeResult], context: Context, *, limit: int = LIMIT) -> str:
    """The upgrade as Markdown of at most `limit` bytes: the table is kept, and it is said what was cut."""
    room = limit - _size(_cut(10**6, 10**6, 10**6)) - 4
    table = _first_that_fits(lambda width: _tables(results, width), _CELL, room)
    if table is None:
        table = _last_resort(results, room)
    parts, room = [table], room - _size(table) - 2
    dropped = shortened = 0
    details = [(result, entry) for result in results for entry in worst_first(result) if _has_details(entry)]
    # every detail has its share of the room; what one does not need is left to those behind it
    for number, (result, entry) in enumerate(details):
        share = max(room // (len(details) - number), min(room, 1_500))
        found = _details_that_fit(entry, result, share - 2, several=len(results) > 1)
        if found is None:
            dropped += 1
            continue
        block, cut = found
        shortened += cut
        parts.append(block)
        room -= _size(block) + 2
    if dropped or shortened:
        parts.append(_cut(dropped, shortened, len(details)))
    return "\n\n".join(parts) + "\n"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _first_that_fits(make: Callable[[int], str], sizes: Sequence[int], room: int) -> str | None:
    for size in sizes:
        text = make(size)
        if _size(text) <= room:
            return text
    return None


def _cut(dropped: int, shortened: int, total: int) -> str:
    said = []
    if dropped:
        said.append(f"the details of {dropped:,} of {plural(total, 'entry', 'entries')} are left out")
    if shortened:
        said.append(f"the diffs of {plural(shortened, 'entry', 'entries')} are shortened")
    return (
        f"> **Cut to fit GitHub's limit:** {' and '.join(said)}. All of it is in the HTML report "
        "(`afd-patchkit upgrade ... --report DIR`)."
    )


# ---- tables -------------------------------------------------------------------------------------------------------


def _tables(results: Sequence[UpgradeResult], width: int, most: int | None = None) -> str:
    blocks = [_matrix(results, most)] if len(results) > 1 else []
    for result in results:
        blocks += _table(result, width, most, heading="###" if len(results) > 1 else "##")
    return "\n\n".join(blocks)


def _last_resort(results: Sequence[UpgradeResult], room: int) -> str:
    """Fewer and fewer rows: thousands of entries that all need a person do not fit any comment."""
    most = 400
    while most > 1:
        text = _tables(results, _CELL[-1], most)
        if _size(text) <= room:
            return text
        most //= 2
    lines = [f"## afd-patchkit upgrade: {escape(_clip(title(r, '→'), 80))}\n\n{tally(r)}" for r in results[:50]]
    if len(results) > 50:
        lines.append(f"And {len(results) - 50:,} more releases.")
    return "\n\n".join(lines)


def _table(result: UpgradeResult, width: int, most: int | None, *, heading: str) -> Iterator[str]:
    yield f"{heading} afd-patchkit upgrade: {escape(title(result, '→'))}"
    took = f" <sub>{human_seconds(result.seconds)}</sub>" if result.seconds else ""
    yield f"**{verdict(result).capitalize()}.** {tally(result).capitalize()}.{took}"
    if not result.base_available:
        yield "*The old upstream is not at hand: the lock's digests decided, old text is not shown.*"
    shown = [e for e in worst_first(result) if _has_details(e)]
    if shown:
        lines = [
            "| | entry | what upstream changed | what happened to our deltas | what you must do |",
            "|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(_row(entry, width)) + " |" for entry in shown[:most]]
        if most is not None and len(shown) > most:
            lines.append(f"| | and {len(shown) - most:,} more | | | |")
        yield "\n".join(lines)
    if quiet := [e for e in worst_first(result) if not _has_details(e)]:
        yield _quiet(quiet, width, min(most or 200, 200))
    for name, lines in extras(result):
        shown_lines = lines[: most or 60]
        items = "\n".join(f"- {code(_clip(line, max(width, 80)))}" for line in shown_lines)
        if len(lines) > len(shown_lines):
            items += f"\n- and {len(lines) - len(shown_lines):,} more"
        yield f"**{name}**\n\n{items}"
    for item in ordered(result.findings)[: most or 60]:
        yield f"{_SIGNS[item.severity]} **{item.code}** {escape(_clip(item.message, max(width, 80)))}"


def _quiet(entries: Sequence[EntryResult], width: int, most: int) -> str:
    """The entries that need nobody, folded."""
    head = f"Nothing to do for {plural(len(entries), 'entry', 'entries')}"
    lines = [
        f"- {ICONS[e.status]} {code(_clip(e.ref, width))} {e.status}: {escape(_clip(changed(e), width))}"
        for e in entries[:most]
    ]
    if len(entries) > most:
        lines.append(f"- and {len(entries) - most:,} more")
    listed = "\n".join(lines)
    return f"<details><summary>{head}</summary>\n\n{listed}\n\n</details>"


def _row(entry: EntryResult, width: int) -> tuple[str, ...]:
    accepted = entry.status in NEEDS_PERSON and entry.accepted
    status = f"{ICONS['clean'] if accepted else ICONS[entry.status]} {entry.status}{' (accepted)' if accepted else ''}"
    module, _, name = entry.ref.partition("::")
    where = f"{code(_clip(name or module, width))}<br><sub>{_html(_clip(module, width))}</sub>"
    return (
        status,
        where,
        *(escape(_clip(text, width)) or " " for text in (changed(entry), fates(entry), must_do(entry))),
    )


def _matrix(results: Sequence[UpgradeResult], most: int | None) -> str:
    rows = matrix(results)
    lines = ["| entry | " + " | ".join(code(r.new) for r in results) + " |", "|---|" + "---|" * len(results)]
    touched = [row for row in rows if any(c is not None and c.status != "unchanged" for c in row.cells)]
    lines += [f"| {code(_clip(row.label, 120))} | {' | '.join(map(_cell, row.cells))} |" for row in touched[:most]]
    if most is not None and len(touched) > most:
        lines.append(f"| and {len(touched) - most:,} more |" + " |" * len(results))
    if untouched := len(rows) - len(touched):
        lines.append(
            f"| {plural(untouched, 'more entry', 'more entries')} |"
            + f" {ICONS['unchanged']} unchanged |" * len(results)
        )
    names = ", ".join(dict.fromkeys(f"{r.distribution} {r.old}" for r in results))
    note = "\n\n\\* accepted" if any(c is not None and _accepted(c) for row in touched for c in row.cells) else ""
    return f"## afd-patchkit upgrade from {escape(names)}\n\n" + "\n".join(lines) + note


def _cell(entry: EntryResult | None) -> str:
    if entry is None:
        return "-"
    return f"{ICONS[entry.status]} {entry.status}" + (r"\*" if _accepted(entry) else "")


def _accepted(entry: EntryResult) -> bool:
    return entry.status in NEEDS_PERSON and entry.accepted


def _clip(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _html(text: str) -> str:
    """Text for inside an HTML tag, where Markdown still sees its own signs."""
    return html_escape(printable(" ".join(text.split()))).translate({ord(c): f"&#{ord(c)};" for c in "|*_`[]\\~@#"})


# ---- details ------------------------------------------------------------------------------------------------------


def _has_details(entry: EntryResult) -> bool:
    return entry.status not in {"unchanged", "clean"} or bool(entry.reasons)


@dataclass
class _Lines:
    """How many lines a diff may have, and whether one had more."""

    most: int
    cut: bool = False


def _details_that_fit(
    entry: EntryResult, result: UpgradeResult, room: int, *, several: bool
) -> tuple[str, bool] | None:
    """The details with as much of the diffs as fits, and whether that is not all; None when nothing fits."""
    if _size("\n\n".join(_head(entry, result, _Lines(0), several=several))) > room:
        return None
    diffs = {view: entry_diff(entry, view) for view in VIEWS}
    for lines in _DIFF_LINES:
        budget = _Lines(lines)
        parts = _head(entry, result, budget, several=several)
        for view, diff in diffs.items():
            if diff:
                parts.append(f"*{_HEADINGS[view]}*\n\n" + "\n".join(_clipped(diff, budget)))
            elif why := absent(entry, view):
                parts.append(f"*{_HEADINGS[view]}*: {why}.")
        text = "\n\n".join([*parts, "</details>"])
        if _size(text) <= room:
            return text, budget.cut
    return None


def _head(entry: EntryResult, result: UpgradeResult, budget: _Lines, *, several: bool) -> list[str]:
    """What is said of an entry above its diffs."""
    at = f" at {_html(result.new)}" if several else ""
    accepted = " (accepted)" if _accepted(entry) else ""
    parts = [
        f"<details><summary>{ICONS[entry.status]} <b>{entry.status}</b>{accepted}{at} {_html(entry.ref)}</summary>"
    ]
    parts.append(f"{escape(origin(entry))}. **To do:** {escape(_clip(must_do(entry), 600))}")
    if entry.successors:
        parts.append(
            "Perhaps now: " + ", ".join(f"{code(name)} ({share:.0%} alike)" for name, share in entry.successors)
        )
    parts += [_finding(item) for item in ordered(entry.reasons)]
    for delta in entry.deltas:
        moved = (
            f", lines {lines_text(delta.old_lines)} → {lines_text(delta.new_lines)}"
            if delta.old_lines != delta.new_lines
            else ""
        )
        taken = " (accepted)" if delta.accepted else ""
        parts.append(f"{ICONS[delta.status]} **{escape(delta.name)}**: {delta.status}{taken}{moved}")
        parts += [_finding(item) for item in ordered(delta.reasons)]
        if proposal := delta.proposal:
            old = [f"-{line}" for line in proposal.old.rstrip("\n").split("\n")]
            new = [f"+{line}" for line in proposal.new.rstrip("\n").split("\n")]
            parts.append(
                f"Proposed for {code(proposal.key)} at {code(str(proposal.where))} ({proposal.confidence:.0%} alike):\n\n"
                + "\n".join(_clipped([*old, *new], budget))
            )
    return parts


def _clipped(lines: list[str], budget: _Lines) -> list[str]:
    kept = lines[: budget.most]
    if len(kept) == len(lines):
        return fenced("\n".join(kept), "diff")
    budget.cut = True
    more = f"*{plural(len(lines) - len(kept), 'more line')} cut*"
    return [*fenced("\n".join(kept), "diff"), "", more] if kept else [more]


def _finding(item: Finding) -> str:
    place = primary(item)
    places = [code(str(p)) for p in (place, item.upstream) if p is not None]
    text = f"{_SIGNS[item.severity]} **{item.code}** {escape(item.message)}"
    if places:
        text += f" ({', '.join(places)})"
    if item.details:
        text += "\n\n" + "\n".join(fenced("\n".join(item.details)))
    if item.help:
        text += f"\n\n{escape(item.help)}"
    return text
