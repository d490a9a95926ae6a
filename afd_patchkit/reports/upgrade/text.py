"""An upgrade as text: the table that maintainers used to write by hand, then what needs eyes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import join

from afd_patchkit.findings.finding import Finding, Severity
from afd_patchkit.reports.context import Context, ordered
from afd_patchkit.reports.layout import Style, columns, human_seconds, plural, printable, shorten, table, wrap
from afd_patchkit.reports.text import concise, finding_lines
from afd_patchkit.reports.unified import paint
from afd_patchkit.reports.upgrade.diff import absent, entry_diff
from afd_patchkit.reports.upgrade.view import (
    changed,
    extras,
    fates,
    lines_text,
    matrix,
    must_do,
    origin,
    overall,
    raised,
    tally,
    title,
    verdict,
    worst_first,
)
from afd_patchkit.upgrade.accepted import command
from afd_patchkit.upgrade.result import NEEDS_PERSON, DeltaResult, EntryResult, Status, UpgradeResult

COLORS: dict[Status, tuple[str, ...]] = {
    "missing": ("bold", "red"),
    "conflict": ("bold", "red"),
    "review": ("bold", "yellow"),
    "absorbed": ("magenta",),
    "moved": ("magenta",),
    "clean": ("green",),
    "unchanged": ("dim",),
    "retire": ("cyan",),
}
SHORT: dict[Status, str] = {
    "missing": "gone", "conflict": "conf", "review": "revw", "absorbed": "abso", "moved": "move", "clean": "cln", "unchanged": "=",
    "retire": "ret",
}  # fmt: skip
_DIFF_LINES = 60
_TABLE_FROM = 100
"""Columns of a terminal from which the table is readable; below, its cells stand below one another."""


def render_upgrade_text(results: Sequence[UpgradeResult], context: Context) -> str:
    """The upgrade for people; with `verbosity` -1 one line per finding, from 1 on with diffs and untouched entries."""
    style = context.style
    if context.verbosity < 0:
        items = ordered(dict.fromkeys(r.finding for r in raised(results) if not r.accepted))
        return "".join(concise(f, style) + "\n" for f in items if f.severity is not Severity.NOTE)
    blocks: list[Sequence[str]] = []
    if len(results) > 1:
        blocks.append(_matrix(results, style))
    if len(results) > 1 and context.verbosity <= 0:
        blocks += _short(results, context)
    else:
        for result in results:
            blocks += _result(result, context)
    return "\n".join("\n".join(block) + "\n" for block in blocks if block)


# ---- one target ---------------------------------------------------------------------------------------------------


def _result(result: UpgradeResult, context: Context) -> Iterator[Sequence[str]]:
    style = context.style
    head = [style.paint(printable(title(result)), "bold")]
    if result.entries:
        head += wrap(tally(result), style, first="  ", rest="  ")
    if not result.base_available:
        head += wrap(
            "The old upstream is not at hand: the lock's digests decided, old text is not shown.", style, first="  "
        )
    yield head
    shown = [e for e in worst_first(result) if context.verbosity > 0 or e.status != "unchanged"]
    tabular = style.width is not None and style.width >= _TABLE_FROM
    if shown and tabular:
        yield _table(shown, style)
    # what is to be deleted is listed below, each with its place
    told = [
        e for e in shown if (not tabular and e.status not in {"retire", "clean"}) or e.blocks or context.verbosity > 0
    ]
    for entry in told:
        yield list(_entry(result, entry, context, with_table=tabular))
    if not tabular and (gone := [e for e in shown if e not in told and e.status != "retire"]):
        yield [line for e in gone for line in _one_line(e, style)]
    for name, lines in extras(result):
        if name == "Written" and context.verbosity < 1:
            continue
        yield [style.paint(name, "bold"), *(f"  {printable(line)}" for line in lines)]
    for item in ordered(result.findings):
        if item.severity is not Severity.NOTE or context.verbosity > 0:
            yield finding_lines(item, context)
        else:
            yield wrap(concise(item, style), style, rest="  ")
    yield list(_closing(result, style))


def _one_line(entry: EntryResult, style: Style) -> list[str]:
    """An entry that needs no reading."""
    said = changed(entry)
    first = f"{style.paint(_label(entry), *COLORS[entry.status])} {style.paint(printable(entry.ref), 'bold')}: "
    return wrap(printable(said), style, first=first, rest="  ")


def _table(entries: Sequence[EntryResult], style: Style) -> list[str]:
    """The summary table as `rich` lays it out, cells wrapped to the terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = style.width or 80
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, expand=True, show_lines=True)
    for name, ratio in (("entry", 5), ("what upstream changed", 4), ("our deltas", 4), ("what you must do", 4)):
        grid.add_column(name, ratio=ratio, overflow="fold")
    for entry in entries:
        first = Text(_label(entry), style=" ".join(COLORS[entry.status]))
        first.append("\n" + printable(_breakable(entry.ref)), style="not bold default")
        cells = (changed(entry), fates(entry), must_do(entry))
        grid.add_row(first, *(Text(printable(" ".join(cell.split()))) for cell in cells))
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=style.color,
        no_color=not style.color,
        color_system="standard" if style.color else None,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(grid)
    return [line.rstrip() for line in stream.getvalue().strip("\n").split("\n")]


def _breakable(ref: str) -> str:
    """`module.py::name` on two lines: the name is what the eye looks for."""
    module, _, name = ref.partition("::")
    return f"{name}\n{module}" if name else ref


def _label(entry: EntryResult) -> str:
    return f"{entry.status} (accepted)" if entry.status in NEEDS_PERSON and entry.accepted else entry.status


def diffs_text(entry: EntryResult, style: Style) -> str:
    """The differences of one entry: upstream's, and of the generated text."""
    return "\n".join(_diffs(entry, style)) + "\n"


def entry_text(result: UpgradeResult, entry: EntryResult, context: Context) -> str:
    """One entry, for a person who is asked about it."""
    return "\n".join(_entry(result, entry, context, with_table=False, asked=False)) + "\n"


def _entry(
    result: UpgradeResult, entry: EntryResult, context: Context, *, with_table: bool, asked: bool = True
) -> Iterator[str]:
    style = context.style
    yield f"{style.paint(_label(entry), *COLORS[entry.status])} {style.paint(printable(entry.ref), 'bold')}"
    yield from wrap(printable(origin(entry)), style, first="  ", rest="    ")
    if not with_table:
        for name, text in (("upstream", changed(entry)), ("deltas", fates(entry)), ("to do", must_do(entry))):
            cell = printable(" ".join(text.split()))
            yield from wrap(cell, style, first=f"  {style.paint(f'{name:<9}', 'dim')} ", rest=" " * 12)
    if entry.successors:
        likely = ", ".join(f"{name} ({similarity:.0%})" for name, similarity in entry.successors)
        yield from wrap(printable(likely), style, first=f"  {style.paint('perhaps', 'dim')}   ", rest=" " * 12)
    if entry.status in NEEDS_PERSON and entry.accepted and context.verbosity <= 0:
        return
    yield from _reasons(entry.reasons, context)
    for delta in entry.deltas:
        yield from _delta(result, delta, entry, context)
    if entry.blocks and asked and (line := command(result, entry)) is not None:
        yield f"  {style.paint('accept', 'dim')}    {printable(line)}"
    if context.verbosity > 0:
        yield from _diffs(entry, style)


def _reasons(findings: Sequence[Finding], context: Context) -> Iterator[str]:
    narrower = replace(context.style, width=context.style.width and context.style.width - 2)
    for item in ordered(findings):
        plain = replace(item, entry=None, delta=None)
        if item.severity is Severity.NOTE and context.verbosity <= 0:
            yield from wrap(concise(plain, context.style), context.style, first="  ", rest="    ")
        else:
            yield from (f"  {line}" for line in finding_lines(plain, replace(context, style=narrower)))


def _delta(result: UpgradeResult, delta: DeltaResult, entry: EntryResult, context: Context) -> Iterator[str]:
    style = context.style
    quiet = delta.status in {"clean", "unchanged"} and not delta.reasons and delta.proposal is None
    if quiet and context.verbosity <= 0:
        return
    state = f"{delta.status} (accepted)" if delta.accepted and delta.status in NEEDS_PERSON else delta.status
    moved = f"lines {lines_text(delta.old_lines)} -> {lines_text(delta.new_lines)}"
    where = f", {moved}" if delta.old_lines != delta.new_lines else ""
    yield f"  {style.paint('delta', 'dim')} {printable(delta.name)}: {style.paint(state, *COLORS[delta.status])}{where}"
    yield from _reasons(delta.reasons, context)
    if proposal := delta.proposal:
        head = f"for `{printable(proposal.key)}` at {proposal.where}: matches {proposal.place}, {proposal.confidence:.0%} alike"
        yield from wrap(printable(head), style, first=f"  {style.paint('proposed', 'bold', 'green')} ", rest="    ")
        for sign, text, color in (("-", proposal.old, "red"), ("+", proposal.new, "green")):
            yield from (style.paint(f"    {sign} {printable(line)}", color) for line in text.rstrip("\n").split("\n"))
        if (take := command(result, entry, delta.name)) is not None:
            yield f"    take it: {printable(take)}, then upgrade --write"


def _diffs(entry: EntryResult, style: Style) -> Iterator[str]:
    for view in ("upstream", "generated"):
        lines = entry_diff(entry, view)
        if not lines and entry.status != "unchanged" and (why := absent(entry, view)):
            yield style.paint(f"  no diff of {view}: {why}", "dim")
        yield from (f"  {line}" for line in paint(lines[:_DIFF_LINES], style))
        if len(lines) > _DIFF_LINES:
            yield style.paint(f"  ... {plural(len(lines) - _DIFF_LINES, 'more line')}", "dim")


def _closing(result: UpgradeResult, style: Style) -> Iterator[str]:
    serious = sorted({f.finding.code for f in raised([result]) if f.finding.severity is not Severity.NOTE})
    if serious:
        more = f" (also {', '.join(serious[1:6])}{', ...' if len(serious) > 6 else ''})" if serious[1:] else ""
        yield from wrap(f"What a code means: afd-patchkit explain {serious[0]}{more}", style, rest="  ")
    blocking = next((e for e in worst_first(result) if e.blocks), None)
    if blocking:
        words = ["diff", blocking.ref, "--view", "upstream", "--against", result.new, *result.given]
        yield from wrap(f"See a change: afd-patchkit {printable(join(words))}", style, rest="  ")
    yield from _last_line(result, style)


def _last_line(result: UpgradeResult, style: Style) -> list[str]:
    took = f" in {human_seconds(result.seconds)}" if result.seconds else ""
    color = ("green",) if not result.exit_code else ("bold", "yellow") if result.exit_code == 1 else ("bold", "red")
    written = f"; {plural(len(result.written), 'file')} written" if result.written else "; nothing written"
    return wrap(
        f"{style.paint(f'{printable(title(result))}: {verdict(result)}', *color)}{written}{took}", style, rest="  "
    )


# ---- several targets ----------------------------------------------------------------------------------------------


def _short(results: Sequence[UpgradeResult], context: Context) -> Iterator[Sequence[str]]:
    """One line per release, and what is wrong beyond single entries, once."""
    style = context.style
    yield [line for result in results for line in _last_line(result, style)]
    findings = dict.fromkeys(f for result in results for f in result.findings)
    for item in ordered(findings):
        if item.severity is not Severity.NOTE:
            yield finding_lines(item, context)
    latest = results[-1]
    told = (
        f"One release in full: afd-patchkit upgrade --pin {latest.pin}={latest.new}; all of them: -v, or --report DIR."
    )
    yield wrap(told, style, rest="  ")


def _matrix(results: Sequence[UpgradeResult], style: Style) -> list[str]:
    rows = matrix(results)
    versions = [result.new for result in results]
    names = {result.distribution for result in results}
    header = ["entry" if len(names) > 1 else f"{names.pop()} {results[0].old} ->", *versions]
    words = style.width is None or 28 + sum(2 + max(11, columns(v)) for v in versions) <= style.width

    def cell(entry: EntryResult | None) -> str:
        if entry is None:
            return "-"
        text = entry.status if words else SHORT[entry.status]
        if entry.status in NEEDS_PERSON and entry.accepted:
            text += "*"
        return style.paint(text, *COLORS[entry.status])

    own = [row.label.partition("::")[2] for row in rows]
    brief = not words and "" not in own and len(set(own)) == len(rows)
    labels = own if brief else [row.label for row in rows]
    body = [(printable(label), *(cell(c) for c in row.cells)) for label, row in zip(labels, rows, strict=True)]
    totals = tuple(_total(result, words) for result in results)
    lines = table(header, body, style, footer=("to review / delete", *totals))
    if not words:
        used = dict.fromkeys(c.status for row in rows for c in row.cells if c is not None)
        legend = ", ".join(f"{SHORT[s]} {s}" for s in used)
        lines += wrap(f"({legend})", style, rest=" ")
    if any(c and c.status in NEEDS_PERSON and c.accepted for row in rows for c in row.cells):
        lines.append("* accepted")
    if overall(results) == 3:
        lines += wrap("Some releases could not be read; see below.", style)
    return [shorten(line, style.width) if style.width and not style.color else line for line in lines]


def _total(result: UpgradeResult, words: bool) -> str:
    if result.exit_code > 1:
        return "no" if not words else "failed"
    blocking, retired = sum(e.blocks for e in result.entries), result.count("retire")
    return f"{blocking}/{retired}" if not words else f"{blocking} / {retired}"
