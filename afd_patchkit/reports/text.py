"""Reports as text for people: tables, findings with the source line, one closing line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from afd_patchkit.findings.finding import Finding, Position, Severity
from afd_patchkit.findings.report import CopyReport, ModuleCounts, ModuleReport, PinReport, ReferenceCounts, Report
from afd_patchkit.reports.context import Context, ordered, primary, summary
from afd_patchkit.reports.layout import (
    Style,
    columns,
    human_bytes,
    human_seconds,
    human_share,
    plural,
    printable,
    table,
    wrap,
)

SEVERITY_COLORS = {
    Severity.ERROR: ("bold", "red"),
    Severity.WARNING: ("bold", "yellow"),
    Severity.NOTE: ("bold", "cyan"),
}
STATUS_COLORS = {
    "written": ("green",), "unchanged": ("dim",), "differs": ("yellow",), "retired": ("cyan",), "failed": ("red",),
}  # fmt: skip
_LONGEST_FILE = 4_000_000
_LONGEST_LINE = 200


def render_text(report: Report, context: Context) -> str:
    """The report as text; with `verbosity` -1 only errors and warnings, one line each."""
    style = context.style
    findings = ordered(report.findings)
    if context.verbosity < 0:
        return "".join(concise(f, style) + "\n" for f in findings if f.severity is not Severity.NOTE)
    blocks: list[Sequence[str]] = []
    shown = report.modules
    if context.command == "check" and context.verbosity == 0:
        shown = tuple(m for m in report.modules if m.status != "unchanged")
    if shown:
        blocks.append(module_table(shown, style))
    if retired := retired_lines(report.modules):
        blocks.append(
            [
                style.paint("retired (the removal condition holds)", "bold"),
                *(f"  {printable(line)}" for line in retired),
            ]
        )
    if report.copies:
        blocks.append(copy_table(report.copies, style))
    if report.pins:
        blocks.append(pin_table(report.pins, style))
    if report.references is not None:
        blocks.append(wrap(references_line(report.references), style, rest="  "))
    written = report.written if context.verbosity > 0 else ()
    for title, names in (("written", written), ("removed", report.removed)):
        if names:
            blocks.append([style.paint(title, "bold"), *(f"  {printable(name)}" for name in names)])
    full = [f for f in findings if f.severity is not Severity.NOTE or context.verbosity > 0]
    notes = [f for f in findings if f.severity is Severity.NOTE and context.verbosity <= 0]
    blocks.extend(finding_lines(f, context) for f in full)
    if notes:
        blocks.append([line for f in notes for line in wrap(concise(f, style), style, rest="  ")])
    blocks.append(list(_closing(report, findings, context)))
    return "\n".join("\n".join(block) + "\n" for block in blocks)


def retired_entries(modules: Sequence[ModuleReport]) -> list[str]:
    """`module.py::name` of every entry whose removal condition holds."""
    return [name if "::" in name else f"{m.module}::{name}" for m in modules for name in m.retired]


def retired_lines(modules: Sequence[ModuleReport]) -> list[str]:
    """`module.py::name` of such an entry; a module of which nothing is left is one line."""
    lines = []
    for module in modules:
        if module.status == "retired":
            lines.append(f"{module.module}, {plural(len(module.retired), 'entry', 'entries')}")
        else:
            lines += retired_entries([module])
    return lines


def module_table(modules: Sequence[ModuleReport], style: Style) -> list[str]:
    """One line per generated module, and a line of totals when there are several."""
    rows = [
        (
            printable(m.module),
            style.paint(m.status, *STATUS_COLORS.get(m.status, ())),
            str(m.counts.entries),
            str(m.counts.deltas),
            str(m.counts.files),
            human_share(m.counts.share),
        )
        for m in modules
    ]
    footer: tuple[str, ...] = ()
    if len(modules) > 1:
        total = ModuleCounts.sum(m.counts for m in modules)
        # files are not added up: modules share them
        footer = ("total", "", str(total.entries), str(total.deltas), "", human_share(total.share))
    header = ("module", "status", "entries", "deltas", "files", "verbatim")
    return table(header, rows, style, right=(2, 3, 4, 5), footer=footer)


def copy_table(copies: Sequence[CopyReport], style: Style) -> list[str]:
    """One line per hand copy: what it is a copy of, and what differs."""
    header = ("file", "function", "upstream", "fenced", "unfenced", "cosmetic")
    return table(header, [tuple(map(printable, copy_cells(c))) for c in copies], style, right=(3, 4))


def copy_cells(item: CopyReport) -> tuple[str, ...]:
    """The cells of one hand copy."""
    upstream = f"{item.upstream}{' (calls it)' if item.kind == 'delegate' else ''}" or "?"
    cosmetic = ", ".join(f"{number} {what}" for what, number in item.cosmetic.items()) or "-"
    return f"{item.file}:{item.line}", item.function, upstream, str(item.fenced), str(item.unfenced), cosmetic


def pin_table(pins: Sequence[PinReport], style: Style) -> list[str]:
    """One line per pin: where it was read from and what that cost."""
    rows = [
        (p.pin, p.version, p.source, str(p.files), human_bytes(p.bytes), str(p.requests)) for p in pins
    ]  # fmt: skip
    return table(("pin", "version", "source", "files", "downloaded", "requests"), rows, style, right=(3, 4, 5))


def references_line(counts: ReferenceCounts) -> str:
    """How much of what our own code refers to could be told."""
    total = counts.resolved + counts.outside + counts.unknown
    return (
        f"{plural(total, 'reference')} of our own code: {counts.resolved:,} resolved ({plural(counts.bound, 'call')} bound), "
        f"{counts.outside:,} outside the pins, {counts.unknown:,} unknown"
    )


def concise(item: Finding, style: Style) -> str:
    """One line in the form that editors and compilers agree on: `file:line:column: severity: CODE message`."""
    place = primary(item) or item.upstream
    where = f"{printable(str(place))}: " if place else ""
    severity = style.paint(item.severity.value, *SEVERITY_COLORS[item.severity])
    subject = _subject(item) if not primary(item) else ""
    message = " ".join(printable(item.message).split())
    return f"{where}{severity}: {item.code} {message}{f' ({subject})' if subject else ''}"


def finding_lines(item: Finding, context: Context) -> list[str]:
    """A finding in full: message, place with its line, entry, candidates, help."""
    style = context.style
    head = style.paint(f"{item.severity.value} {item.code}", *SEVERITY_COLORS[item.severity])
    lines = wrap(printable(item.message), style, first=f"{head}: ", rest="  ")
    place = primary(item)
    snippet: list[str] = []
    if place:
        lines.append(f"  {style.paint('-->', 'blue')} {style.paint(printable(str(place)), 'bold')}")
        snippet = _snippet(place, context)
        lines.extend(snippet)
    facts = [("entry", item.entry), ("delta", item.delta)]
    if place is item.manifest and item.generated:
        facts.append(("generated", str(item.generated)))
    facts.append(("upstream", str(item.upstream) if item.upstream else None))
    for name, value in facts:
        if value:
            lines.append(f"  {style.paint(f'{name:<9}', 'dim')} {printable(value)}")
    shown = snippet[0].partition("|")[2].strip() if snippet else None
    for detail in item.details:
        if detail.strip() == shown:  # the line that stands above
            continue
        lines.extend(f"  {style.paint('|', 'blue')} {printable(line)}".rstrip() for line in detail.split("\n"))
    if item.help:
        help_ = style.paint("help:", "bold", "green")
        lines.extend(wrap(printable(item.help), style, first=f"  {help_} ", rest="        "))
    return lines


def _snippet(place: Position, context: Context) -> list[str]:
    """The line that a position names, with a caret; nothing when it cannot be read."""
    if not place.line or place.file.startswith("<"):
        return []
    try:
        path = context.base / place.file
        if path.stat().st_size > _LONGEST_FILE:
            return []
        # only LF ends a line, as in the loaders; `splitlines` would count form feeds
        text = path.read_bytes().decode().split("\n")[place.line - 1]
    except (OSError, ValueError, IndexError):
        return []
    text = text.rstrip("\r")
    if not text.strip() or len(text) > _LONGEST_LINE:
        return []
    gutter = len(str(place.line)) + 4
    style = context.style
    lines = [f"{style.paint(f'{place.line:>{gutter}} |', 'blue')} {printable(text)}".replace("\t", " ")]
    if 0 < place.column <= len(text) + 1:
        before = printable(text[: place.column - 1]).replace("\t", " ")
        lines.append(
            f"{style.paint(' ' * gutter + ' |', 'blue')} {' ' * columns(before)}{style.paint('^', 'bold', 'red')}"
        )
    return lines


def _subject(item: Finding) -> str:
    parts = [item.entry or "", f'delta "{item.delta}"' if item.delta else ""]
    return ", ".join(part for part in parts if part)


def _closing(report: Report, findings: Sequence[Finding], context: Context) -> Iterator[str]:
    style = context.style
    serious = [f for f in findings if f.severity is not Severity.NOTE]
    if serious:
        codes = sorted({f.code for f in serious})
        more = f" (also {', '.join(codes[1:6])}{', ...' if len(codes) > 6 else ''})" if len(codes) > 1 else ""
        yield from wrap(f"What a code means: afd-patchkit explain {codes[0]}{more}", style, rest="  ")
    parts: list[str] = []
    if findings:
        color = SEVERITY_COLORS[findings[0].severity]
        parts.append(style.paint(summary(findings), *color))
    if report.copies:
        parts.append(plural(len(report.copies), "copy", "copies"))
    if report.modules:
        parts.append(_modules(report.modules, style, settled=not serious))
    if not parts:
        parts.append(style.paint("nothing to report", "green"))
    took = f" in {human_seconds(report.seconds)}" if report.seconds else ""
    line = f"{'; '.join(parts)}{took}"
    if style.width is None or columns(line) <= style.width:
        yield line
    else:
        yield from parts[:-1]
        yield from wrap(parts[-1] + took, style, rest="  ")


def _modules(modules: Sequence[ModuleReport], style: Style, *, settled: bool) -> str:
    statuses = Counter(m.status for m in modules)
    total = plural(len(modules), "module")
    if set(statuses) == {"unchanged"}:
        # a finding may be about a module that regeneration would not change
        return style.paint(f"{total} up to date", "green") if settled else total
    if len(statuses) == 1:
        return f"{total} {next(iter(statuses))}"
    return f"{total}: " + ", ".join(f"{number:,} {status}" for status, number in statuses.most_common())


def render_share(report: Report, context: Context) -> str:
    """The share of upstream lines that stand verbatim in the output, per module."""
    style = context.style
    rows = [_share_row(printable(m.module), m.counts) for m in report.modules]
    footer: tuple[str, ...] = ()
    if len(rows) > 1:
        footer = _share_row("total", ModuleCounts.sum(m.counts for m in report.modules))
    header = ("module", "upstream lines", "verbatim", "module lines", "share")
    lines_ = table(header, rows, style, right=(1, 2, 3, 4), footer=footer) if rows else ["no modules"]
    return "\n".join([*lines_, *(["", SUMMED] if rows else [])]) + "\n"


SUMMED = """\
upstream lines: those of the functions, methods and classes that entries copy or backport, blank ones aside
verbatim: those that stand whole in the module, indentation aside; module lines: all of it, our own code and comments included"""
"""What the columns of `share` sum."""


def _share_row(name: str, counts: ModuleCounts) -> tuple[str, ...]:
    numbers = (counts.upstream_lines, counts.verbatim_lines, counts.lines)
    return (name, *map(str, numbers), human_share(counts.share))
