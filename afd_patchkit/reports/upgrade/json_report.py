"""An upgrade as JSON, in the shape that `upgrade.schema.json` beside this file describes.

The shape is stable: `format` names it, fields are only ever added to it, and a change of meaning gets a new number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

from afd_patchkit.findings.finding import Position
from afd_patchkit.reports.context import Context, ordered
from afd_patchkit.reports.json_report import finding_data
from afd_patchkit.reports.upgrade.view import changed, must_do, overall, verdict
from afd_patchkit.upgrade.result import ORDER, AliasChange, DeltaResult, EntryResult, UpgradeResult
from afd_patchkit.version import __version__

FORMAT = "afd-patchkit/upgrade/1"


def render_upgrade_json(results: Sequence[UpgradeResult], context: Context) -> str:
    """The upgrade as one JSON document, in ASCII so that any terminal or pipe takes it."""
    return json.dumps(upgrade_data(results, context), indent=2) + "\n"


def upgrade_data(results: Sequence[UpgradeResult], context: Context) -> dict[str, Any]:
    """The upgrade as plain data."""
    return {
        "format": FORMAT,
        "tool": {"name": "afd-patchkit", "version": __version__},
        "command": context.command,
        "exit_code": overall(results) if context.exit_code is None else context.exit_code,
        "targets": [_target(result) for result in results],
    }


def _target(result: UpgradeResult) -> dict[str, Any]:
    return {
        "pin": result.pin,
        "distribution": result.distribution,
        "old": result.old,
        "new": result.new,
        "exit_code": result.exit_code,
        "verdict": verdict(result),
        "seconds": round(result.seconds, 6),
        "base_available": result.base_available,
        "summary": {
            **{status: result.count(status) for status in ORDER},
            "entries": len(result.entries),
            "blocking": sum(e.blocks for e in result.entries),
        },
        "entries": [_entry(e) for e in result.entries],
        "retired_modules": list(result.retired_modules),
        "stays": list(result.stays),
        "remarks": list(result.remarks),
        "deletions": list(result.deletions),
        "aliases": [_alias(change) for change in result.aliases],
        "findings": [finding_data(f) for f in ordered(result.findings)],
        "written": list(result.written),
    }


def _entry(entry: EntryResult) -> dict[str, Any]:
    return {
        "entry": entry.ref,
        "kind": entry.kind,
        "symbol": entry.symbol,
        "new_symbol": entry.new_symbol,
        "axis": entry.axis,
        "status": entry.status,
        "accepted": entry.accepted,
        "blocks": entry.blocks,
        "upstream_changed": changed(entry),
        "must_do": must_do(entry),
        "findings": [finding_data(f) for f in entry.reasons],
        "deltas": [_delta(d) for d in entry.deltas],
        "successors": [{"symbol": name, "similarity": share} for name, share in entry.successors],
        "attributes": list(entry.attributes),
        "new_digest": entry.new_digest or None,
        "texts": {
            "base": entry.base,
            "new": entry.new,
            "generated_old": entry.ours_old,
            "generated_new": entry.ours_new,
            "other_method": entry.other,
        },
    }


def _delta(delta: DeltaResult) -> dict[str, Any]:
    proposal = delta.proposal
    return {
        "name": delta.name,
        "status": delta.status,
        "accepted": delta.accepted,
        "old_lines": _lines(delta.old_lines),
        "new_lines": _lines(delta.new_lines),
        "findings": [finding_data(f) for f in delta.reasons],
        "proposal": proposal
        and {**asdict(proposal), "where": _position(proposal.where), "place": _position(proposal.place)},
    }


def _lines(lines: tuple[int, int]) -> list[int] | None:
    return list(lines) if lines[0] else None


def _alias(change: AliasChange) -> dict[str, Any]:
    return {
        "symbol": change.symbol,
        "added": [_position(p) for p in change.added],
        "removed": [_position(p) for p in change.removed],
    }


def _position(place: Position) -> dict[str, Any]:
    return {"file": place.file, "line": place.line or None, "column": place.column or None}


def upgrade_schema() -> dict[str, Any]:
    """The JSON Schema of `render_upgrade_json`'s documents."""
    file = resources.files("afd_patchkit.reports.upgrade").joinpath("upgrade.schema.json")
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema
