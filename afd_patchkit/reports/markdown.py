"""Reports as GitHub-flavoured Markdown, for a pull request or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from afd_patchkit.findings.finding import Finding, Severity, page
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context, ordered, primary, summary
from afd_patchkit.reports.layout import human_bytes, human_seconds, human_share, printable
from afd_patchkit.reports.text import copy_cells, references_line, retired_entries

LIMIT = 65_000
"""GitHub refuses a comment above 65,536 characters; counted here in UTF-8 bytes, which are never fewer."""

_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_SPECIAL = re.compile(r"[\\*_\[\]<>|#~!]")
_ICONS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}  # noqa: RUF001 - the sign is meant


def render_markdown(report: Report, context: Context) -> str:
    """The report as Markdown."""
    findings = ordered(report.findings)
    blocks = [f"## afd-patchkit {context.command}: {summary(findings)}"]
    if report.modules:
        rows = [
            (
                code(m.module),
                m.status,
                str(m.counts.entries),
                str(m.counts.deltas),
                str(m.counts.files),
                human_share(m.counts.share),
            )
            for m in report.modules
        ]
        blocks.append(
            _table(("module", "status", "entries", "deltas", "upstream files", "verbatim"), rows, right=(2, 3, 4, 5))
        )
    if retired := retired_entries(report.modules):
        names = "\n".join(f"- {code(name)}" for name in retired)
        blocks.append(f"**Retired** (the removal condition holds):\n\n{names}")
    if report.copies:
        cells = [copy_cells(c) for c in report.copies]
        copies = [(code(c[0]), code(c[1]), code(c[2]), *c[3:5], escape(c[5])) for c in cells]
        blocks.append(_table(("file", "function", "upstream", "fenced", "unfenced", "cosmetic"), copies, right=(3, 4)))
    if report.pins:
        pins = [
            (
                code(p.pin),
                code(p.version),
                f"{p.source} {code(p.file)}",
                str(p.files),
                human_bytes(p.bytes),
                str(p.requests),
            )
            for p in report.pins
        ]
        blocks.append(_table(("pin", "version", "read from", "files", "downloaded", "requests"), pins, right=(3, 4, 5)))
    if report.references is not None:
        blocks.append(f"{references_line(report.references)}.")
    blocks.extend("\n".join(_finding(f)) for f in findings)
    if report.seconds:
        blocks.append(f"<sub>{human_seconds(report.seconds)}</sub>")
    return "\n\n".join(blocks) + "\n"


def _finding(item: Finding) -> Iterator[str]:
    yield f"### {_ICONS[item.severity]} {item.code} {escape(page(item.code).title)}"
    yield ""
    yield escape(item.message)
    yield ""
    facts = [
        ("at", str(primary(item)) if primary(item) else None),
        ("entry", item.entry),
        ("delta", item.delta),
        ("upstream", str(item.upstream) if item.upstream else None),
        ("generated", str(item.generated) if item.manifest and item.generated else None),
    ]
    for name, value in facts:
        if value:
            yield f"- {name}: {code(value)}"
    if item.details:
        yield ""
        yield from fenced("\n".join(item.details))
    if item.help:
        yield ""
        yield f"**What to do:** {escape(item.help)}"


def escape(text: str) -> str:
    """`text` with Markdown's own characters escaped, except inside code spans; `@name` mentions nobody."""
    text = " ".join(printable(text).split())
    parts: list[str] = []
    at = 0
    for match in _CODE_SPAN.finditer(text):
        parts += [_escape(text[at : match.start()]), match.group()]
        at = match.end()
    return "".join([*parts, _escape(text[at:])])


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text.replace("&", "&amp;")).replace("`", r"\`").replace("@", "&#64;")


def code(text: str) -> str:
    """`text` as a code span, whatever backticks it holds; `|` is escaped for tables."""
    text = " ".join(printable(text).split())
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def fenced(text: str, language: str = "") -> list[str]:
    """`text` as the lines of a fenced block whose fence is longer than any inside."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *printable(text).split("\n"), fence]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> str:
    rule = ["---:" if n in right else "---" for n in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))
