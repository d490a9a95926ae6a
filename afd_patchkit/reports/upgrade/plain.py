"""The page of an upgrade for a browser without script: the tables, and each entry with its findings and differences.

It stands inside `<noscript>`. Every text that is not ours is shown with its invisible characters and escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from afd_patchkit.findings.finding import Finding
from afd_patchkit.reports.context import ordered, primary
from afd_patchkit.reports.layout import plural, printable
from afd_patchkit.reports.upgrade.diff import VIEWS, entry_diff
from afd_patchkit.reports.upgrade.view import (
    changed,
    extras,
    fates,
    must_do,
    origin,
    place_text,
    tally,
    title,
    verdict,
    worst_first,
)
from afd_patchkit.upgrade.accepted import command
from afd_patchkit.upgrade.result import EntryResult, UpgradeResult

_DIFF_LINES = 400
_HEADS = {
    "upstream": "Upstream, old to new",
    "delta": "Upstream's new text to the generated one",
    "generated": "Generated, old to new",
}


def plain_html(results: Sequence[UpgradeResult]) -> str:
    """The results as HTML without script; each finding, difference and command stands open to be read."""
    return "".join(part for number, result in enumerate(results) for part in _result(result, number))


def plain_findings(head: str, findings: Sequence[Finding]) -> str:
    """Findings that kept an upgrade from beginning, likewise."""
    return f"<h2>{_text(head)}</h2>{''.join(map(_finding, ordered(findings)))}"


def _text(text: str) -> str:
    return escape(printable(text))


def _result(result: UpgradeResult, number: int) -> Iterator[str]:
    yield f"<h2>{_text(title(result, '→'))}</h2><p>{_text(verdict(result))}: {_text(tally(result))}</p>"
    yield from map(_finding, ordered(result.findings))
    entries = [entry for entry in worst_first(result) if entry.status != "unchanged"]
    if entries:
        heads = "".join(
            f'<th scope="col">{name}</th>' for name in ("Status", "Entry", "Upstream", "Our deltas", "To do")
        )
        yield f'<div class="scroll"><table class="grid table"><thead><tr>{heads}</tr></thead><tbody>'
        for at, entry in enumerate(entries):
            said = (("upstream", changed(entry)), ("deltas", fates(entry)), ("to do", must_do(entry)))
            cells = "".join(f'<td data-label="{name}">{_text(cell)}</td>' for name, cell in said)
            module, _, name = entry.ref.partition("::")
            link = f'<a class="mono" href="#plain-{number}-{at}">{_text(name or module)}</a><span class="small">{_text(module)}</span>'
            yield f'<tr class="s-{entry.status}"><td class="status">{_status(entry)}</td><td>{link}</td>{cells}</tr>'
        yield "</tbody></table></div>"
    if rest := len(result.entries) - len(entries):
        yield f"<p>{plural(rest, 'entry is', 'entries are')} untouched by upstream.</p>"
    for name, lines in extras(result):
        yield f"<h3>{_text(name)}</h3>{_lines(lines)}"
    for at, entry in enumerate(entries):
        yield from _entry(result, entry, f"plain-{number}-{at}")


def _status(entry: EntryResult) -> str:
    return entry.status + (" (accepted)" if entry.accepted else "")


def _entry(result: UpgradeResult, entry: EntryResult, anchor: str) -> Iterator[str]:
    yield f'<section class="section s-{entry.status}" id="{anchor}"><h2>{_text(entry.ref)} <span class="badge">{_status(entry)}</span></h2>'
    yield f'<p class="origin">{_text(origin(entry))}</p>'
    yield from map(_finding, ordered(entry.reasons))
    for delta in entry.deltas:
        if delta.reasons:
            yield f"<h3>{_text(delta.name)}: {delta.status}</h3>{''.join(map(_finding, ordered(delta.reasons)))}"
    if entry.blocks and (accept := command(result, entry)) is not None:
        yield f'<p>Reviewed, and it stays as it is?</p><div class="pre">{_text(accept)}</div>'
    for view in VIEWS:
        if lines := entry_diff(entry, view):
            more = [f"... and {plural(len(lines) - _DIFF_LINES, 'more line')}"] if len(lines) > _DIFF_LINES else []
            yield f"<h3>{_HEADS[view]}</h3>{_lines([*lines[:_DIFF_LINES], *more])}"
    yield "</section>"


def _lines(lines: Sequence[str]) -> str:
    kinds = {"+": "new", "-": "old"}
    spans = (f'<span class="{kinds.get(line[:1], "line")}">{_text(line) or "&#8203;"}</span>' for line in lines)
    return f'<div class="pre">{"".join(spans)}</div>'


def _finding(item: Finding) -> str:
    places = " · ".join(
        p
        for p in (place_text(primary(item)), place_text(item.upstream) and f"upstream {place_text(item.upstream)}")
        if p
    )
    return (
        f'<div class="card"><p><span class="sev-{item.severity.value}">{item.severity.value} {item.code}</span> {_text(item.message)}</p>'
        + (f'<p class="meta mono">{_text(places)}</p>' if places else "")
        + (_lines(item.details) if item.details else "")
        + (f"<p>{_text(item.help)}</p>" if item.help else "")
        + "</div>"
    )
