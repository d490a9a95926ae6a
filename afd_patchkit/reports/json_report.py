"""Reports as JSON, in the shape that `report.schema.json` beside this file describes.

The shape is stable: `format` names it, fields are only ever added to it, and a change of meaning gets a new number.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import resources
from typing import Any

from afd_patchkit.findings.finding import Finding, Position, page
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context, counts, ordered
from afd_patchkit.version import __version__

FORMAT = "afd-patchkit/report/1"


def render_json(report: Report, context: Context) -> str:
    """The report as one JSON document, in ASCII so that any terminal or pipe takes it."""
    return json.dumps(report_data(report, context), indent=2) + "\n"


def report_data(report: Report, context: Context) -> dict[str, Any]:
    """The report as plain data."""
    findings = ordered(report.findings)
    return {
        "format": FORMAT,
        "tool": {"name": "afd-patchkit", "version": __version__},
        "command": context.command,
        "exit_code": report.exit_code if context.exit_code is None else context.exit_code,
        "seconds": round(report.seconds, 6),
        "shortcut": report.shortcut,
        "summary": {**counts(findings), "modules": len(report.modules)},
        "findings": [finding_data(f) for f in findings],
        "modules": [
            {
                "module": m.module,
                "status": m.status,
                **asdict(m.counts),
                "retired": list(m.retired),
                "share": m.counts.share,
            }
            for m in report.modules
        ],
        "pins": [asdict(p) for p in report.pins],
        "written": list(report.written),
        "removed": list(report.removed),
        "copies": [asdict(c) for c in report.copies],
        "references": None if report.references is None else asdict(report.references),
    }


def finding_data(item: Finding) -> dict[str, Any]:
    """One finding as plain data; what it does not have is null."""
    return {
        "code": item.code,
        "title": page(item.code).title,
        "severity": item.severity.value,
        "message": item.message,
        "entry": item.entry,
        "delta": item.delta,
        "manifest": _position(item.manifest),
        "upstream": _position(item.upstream),
        "generated": _position(item.generated),
        "help": item.help,
        "details": list(item.details),
    }


def _position(place: Position | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {"file": place.file, "line": place.line or None, "column": place.column or None}


def report_schema() -> dict[str, Any]:
    """The JSON Schema of `render_json`'s documents."""
    file = resources.files("afd_patchkit.reports").joinpath("report.schema.json")
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema
