"""Findings as GitHub Actions workflow commands, which become annotations on a pull request."""

from __future__ import annotations

from pathlib import Path

from afd_patchkit.findings.finding import Finding, Severity, page
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context, ordered, primary, relative_path, repository_root, summary
from afd_patchkit.reports.layout import printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_github(report: Report, context: Context) -> str:
    """One workflow command per finding, and a line that says how many there are."""
    findings = ordered(report.findings)
    root = repository_root(context.base)
    lines = [_annotation(f, context, root) for f in findings]
    lines.append(_data(f"afd-patchkit {context.command}: {summary(findings)}"))
    return "".join(line + "\n" for line in lines)


def _annotation(item: Finding, context: Context, root: Path) -> str:
    properties: dict[str, str] = {}
    place = primary(item)
    if place and not place.file.startswith("<"):
        properties["file"] = relative_path(place.file, context.base, root)
        if place.line:
            properties["line"] = str(place.line)
        if place.line and place.column:
            properties["col"] = str(place.column)
    properties["title"] = f"{item.code} {page(item.code).title}"
    text = [item.message]
    facts = (("entry", item.entry), ("delta", item.delta), ("upstream", item.upstream))
    text += [f"{name}: {value}" for name, value in facts if value]
    text += item.details
    if item.help:
        text.append(item.help)
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[item.severity]} {listed}::{_data(chr(10).join(text))}"


def _data(text: str) -> str:
    """Escape a command's message, as the runner unescapes it (it takes `%0D` too; `printable` leaves no CR)."""
    return printable(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape the value of a command's property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
