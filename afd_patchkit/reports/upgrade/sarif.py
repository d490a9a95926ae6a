"""An upgrade as SARIF and as GitHub annotations: the findings of all targets, each once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from afd_patchkit.findings.finding import Finding, Severity
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context, ordered
from afd_patchkit.reports.github import render_github
from afd_patchkit.reports.sarif import fingerprints, sarif_log
from afd_patchkit.reports.upgrade.view import Raised, overall, raised, title, verdict
from afd_patchkit.upgrade.result import UpgradeResult


def render_upgrade_sarif(results: Sequence[UpgradeResult], context: Context) -> str:
    """The upgrade as a SARIF log with one run."""
    return json.dumps(upgrade_sarif(results, context), indent=2) + "\n"


def upgrade_sarif(results: Sequence[UpgradeResult], context: Context) -> dict[str, Any]:
    """The SARIF log as plain data.

    What several releases share is one result (the message of the first, with the others named), so that a drift keeps
    its one alert from release to release. What a person has accepted is suppressed, not left out: an alert that is left
    out would be closed as fixed.
    """
    found = merged(raised(results))
    report = Report(tuple(item.finding for item in found))
    log = sarif_log(
        report, replace(context, exit_code=overall(results) if context.exit_code is None else context.exit_code)
    )
    accepted = {print_ for print_, item in zip(_prints(found), found, strict=True) if item.accepted}
    run = log["runs"][0]
    for result in run["results"]:
        if next(iter(result["partialFingerprints"].values())) in accepted:
            result["suppressions"] = [{"kind": "external", "status": "accepted"}]
    run["properties"] = {"targets": [title(result) for result in results]}
    return log


def _prints(found: Sequence[Raised]) -> list[str]:
    """The fingerprints as the SARIF log has them: it numbers equal ones in its own order."""
    order = ordered(item.finding for item in found)
    table = {id(item): print_ for item, print_ in zip(order, fingerprints(order), strict=True)}
    return [table[id(item.finding)] for item in found]


def merged(found: Sequence[Raised]) -> list[Raised]:
    """One finding per fingerprint and acceptance, its message naming the later releases that share it."""
    kept: dict[tuple[str, bool], Raised] = {}
    later: dict[tuple[str, bool], list[str]] = {}
    per_version: dict[str, list[Raised]] = {}
    for item in found:
        per_version.setdefault(item.version, []).append(item)
    for version, items in per_version.items():
        # numbered within one release: two like findings of one release stay two
        for item, print_ in zip(items, fingerprints(i.finding for i in items), strict=True):
            key = (print_, item.accepted)
            if key in kept:
                later.setdefault(key, []).append(version)
            else:
                kept[key] = item
    return [
        replace(item, finding=_also(item.finding, later[key])) if key in later else item for key, item in kept.items()
    ]


def _also(item: Finding, versions: Sequence[str]) -> Finding:
    return replace(item, details=(*item.details, f"also at {', '.join(versions)}"))


def render_upgrade_github(results: Sequence[UpgradeResult], context: Context) -> str:
    """Workflow commands, one per finding: accepted ones are notices; and a line per target."""
    quiet = [replace(i.finding, severity=Severity.NOTE) if i.accepted else i.finding for i in merged(raised(results))]
    lines = render_github(Report(tuple(quiet)), context).splitlines()[:-1]
    lines += [
        f"afd-patchkit {context.command}: {title(result)}: {verdict(result)}".replace("%", "%25") for result in results
    ]
    return "".join(line + "\n" for line in lines)
