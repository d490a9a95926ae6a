"""An upgrade as one HTML page that needs no network: data, style and script are inside it.

Upstream's text and names go into the page as JSON whose `<`, `>` and `&` are escaped, and from there into the document as
text nodes only. The page's content security policy names the digests of its own script and style and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from afd_patchkit.digests import short
from afd_patchkit.fence import MARKER, closing, opening
from afd_patchkit.findings.finding import Finding, page
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context, ordered, primary, summary
from afd_patchkit.reports.layout import human_seconds
from afd_patchkit.reports.unified import level
from afd_patchkit.reports.upgrade.diff import VIEWS, absent
from afd_patchkit.reports.upgrade.plain import plain_findings, plain_html
from afd_patchkit.reports.upgrade.view import (
    MEANINGS,
    changed,
    extras,
    fates,
    lines_text,
    must_do,
    origin,
    place_text,
    tally,
    title,
    verdict,
    worst_first,
)
from afd_patchkit.upgrade.accepted import command
from afd_patchkit.upgrade.result import NEEDS_PERSON, ORDER, DeltaResult, EntryResult, UpgradeResult
from afd_patchkit.version import __version__


def render_upgrade_html(results: Sequence[UpgradeResult], context: Context, *, marker: str = MARKER) -> str:
    """The page of an upgrade to one or several releases; `marker` is what the project's fences begin with."""
    texts = _Texts()
    targets = [_target(result, texts) for result in results]
    return _page(targets or [_no_target("no release", "nothing to show", ())], texts, marker, plain_html(results))


def render_findings_html(report: Report, context: Context) -> str:
    """A page for findings that kept the upgrade from beginning."""
    head = f"afd-patchkit {context.command}"
    target = _no_target(head, summary(report.findings), ordered(report.findings))
    return _page([target], _Texts(), MARKER, plain_findings(head, report.findings))


class _Texts:
    """Every text once, however many entries and releases share it."""

    def __init__(self) -> None:
        self.all: dict[str, int] = {}

    def __call__(self, text: str | None) -> int | None:
        return None if text is None else self.all.setdefault(text, len(self.all))


def _page(targets: Sequence[dict[str, Any]], texts: _Texts, marker: str, plain: str) -> str:
    data = {
        "order": ORDER,
        "meanings": MEANINGS,
        "fences": {"START": opening("", marker), "END": closing("", marker)},
        "targets": list(targets),
        "texts": list(texts.all),
    }
    style = Template(_file("page.css")).substitute(dark=_file("dark.css"))
    script = '"use strict";\n(() => {\n' + _file("diff.js") + "\n" + _file("page.js") + "})();\n"
    return Template(_file("page.html")).substitute(
        title=escape(targets[0]["title"]),
        version=escape(__version__),
        data=_embedded(data),
        plain=plain,
        style=style,
        script=script,
        style_hash=_digest(style),
        script_hash=_digest(script),
    )


def _file(name: str) -> str:
    return resources.files("afd_patchkit.reports.upgrade").joinpath("page").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _embedded(data: dict[str, Any]) -> str:
    """JSON that no HTML parser can leave: ASCII, without `<`, `>` and `&`."""
    text = json.dumps(data, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _no_target(head: str, said: str, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "title": head,
        "new": "",
        "verdict": said,
        "tally": "no entries",
        "seconds": "",
        "baseAvailable": True,
        "extras": [],
        "findings": [_finding(f) for f in findings],
        "entries": [],
    }


def _target(result: UpgradeResult, texts: _Texts) -> dict[str, Any]:
    return {
        "title": title(result, "→"),
        "new": result.new,
        "verdict": verdict(result),
        "tally": tally(result),
        "seconds": human_seconds(result.seconds) if result.seconds else "",
        "baseAvailable": result.base_available,
        "extras": [[name, lines] for name, lines in extras(result)],
        "findings": [_finding(f) for f in ordered(result.findings)],
        "entries": [_entry(result, e, texts) for e in worst_first(result)],
    }


def _entry(result: UpgradeResult, entry: EntryResult, texts: _Texts) -> dict[str, Any]:
    module, _, name = entry.ref.partition("::")
    return {
        "ref": entry.ref,
        "module": module,
        "name": name or module,
        "kind": entry.kind,
        "symbol": entry.symbol,
        "newSymbol": entry.new_symbol,
        "origin": origin(entry),
        "axis": entry.axis,
        "status": entry.status,
        "accepted": entry.accepted and entry.status in NEEDS_PERSON,
        "changed": changed(entry),
        "fates": fates(entry),
        "mustDo": must_do(entry),
        "accept": command(result, entry) if entry.blocks else None,
        "ranges": {"base": entry.base_lines, "new": entry.new_lines},
        "file": entry.file,
        "findings": [_finding(f) for f in ordered(entry.reasons)],
        "deltas": [_delta(result, entry, d) for d in entry.deltas],
        "successors": [[name, f"{share:.0%}"] for name, share in entry.successors],
        "attributes": list(entry.attributes),
        "mark": _mark(entry),
        "texts": {
            "base": texts(entry.base),
            "new": texts(entry.new),
            "newLevel": texts(level(entry.new, entry.ours_new)),
            "oursOld": texts(entry.ours_old),
            "oursNew": texts(entry.ours_new),
            "other": texts(entry.other),
        },
        "absent": {view: why for view in VIEWS if (why := absent(entry, view))},
    }


def _mark(entry: EntryResult) -> str:
    """A digest of what a person sees of an entry: what was viewed is viewed until that changes."""
    seen = [entry.ref, entry.axis, entry.status, entry.base, entry.new, entry.ours_old, entry.ours_new, entry.other]
    said = [(f.code, f.message, f.details) for f in (*entry.reasons, *(f for d in entry.deltas for f in d.reasons))]
    return short(json.dumps([seen, said]), 16)


def _delta(result: UpgradeResult, entry: EntryResult, delta: DeltaResult) -> dict[str, Any]:
    moved = delta.old_lines != delta.new_lines
    lines = f"{lines_text(delta.old_lines)} → {lines_text(delta.new_lines)}" if moved else ""
    proposal = delta.proposal
    return {
        "name": delta.name,
        "status": delta.status,
        "accepted": delta.accepted,
        "lines": lines or (lines_text(delta.new_lines) if delta.new_lines[0] else ""),
        "accept": None if delta.accepted else command(result, entry, delta.name),
        "findings": [_finding(f) for f in ordered(delta.reasons)],
        "proposal": proposal
        and {
            "key": proposal.key,
            "where": str(proposal.where),
            "place": str(proposal.place),
            "old": proposal.old,
            "new": proposal.new,
            "confidence": f"{proposal.confidence:.0%}",
        },
    }


def _finding(item: Finding) -> dict[str, Any]:
    return {
        "code": item.code,
        "title": page(item.code).title,
        "severity": item.severity.value,
        "message": item.message,
        "place": place_text(primary(item)),
        "upstream": place_text(item.upstream),
        "at": [item.upstream.file, item.upstream.line] if item.upstream is not None and item.upstream.line else None,
        "details": list(item.details),
        "help": item.help,
    }
