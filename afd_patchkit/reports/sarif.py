"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from afd_patchkit.digests import short
from afd_patchkit.findings.finding import Finding, Page, Position, page
from afd_patchkit.findings.report import Report
from afd_patchkit.reports.context import Context, ordered, primary, relative_path, repository_root
from afd_patchkit.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "patchkitFinding/v1"
SOURCE_ROOT = "%SRCROOT%"
UPSTREAM_ROOT = "UPSTREAM"
_HEX = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b")
_DIGITS = re.compile(r"\d+")


def render_sarif(report: Report, context: Context) -> str:
    """The report as a SARIF log with one run."""
    return json.dumps(sarif_log(report, context), indent=2) + "\n"


def sarif_log(report: Report, context: Context) -> dict[str, Any]:
    """The SARIF log as plain data."""
    findings = ordered(report.findings)
    root = repository_root(context.base)
    rules = sorted({f.code for f in findings})
    numbers = {code: number for number, code in enumerate(rules)}
    prints = fingerprints(findings)
    exit_code = report.exit_code if context.exit_code is None else context.exit_code
    run = {
        "tool": {
            "driver": {
                "name": "afd-patchkit",
                "semanticVersion": __version__,
                "version": __version__,
                "rules": [_rule(page(code)) for code in rules],
            }
        },
        "automationDetails": {"id": f"afd-patchkit/{context.command}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            SOURCE_ROOT: {"description": {"text": "The root of the repository."}},
            UPSTREAM_ROOT: {"description": {"text": "The root of the upstream distribution."}},
        },
        "invocations": [{"executionSuccessful": exit_code in {0, 1}, "exitCode": exit_code}],
        "results": [
            {
                "ruleId": item.code,
                "ruleIndex": numbers[item.code],
                "level": item.severity.value,
                "message": {"text": _message(item)},
                **_locations(item, context.base, root),
                "partialFingerprints": {FINGERPRINT: fingerprint},
            }
            for item, fingerprint in zip(findings, prints, strict=True)
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(entry: Page) -> dict[str, Any]:
    first = entry.body.strip().split("\n\n", 1)[0].replace("\n", " ")
    return {
        "id": entry.code,
        "name": "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", entry.title)) or entry.code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": first},
        "help": {"text": entry.body, "markdown": entry.body},
        "defaultConfiguration": {"level": entry.severity.value},
    }


def _message(item: Finding) -> str:
    parts = [item.message, *item.details]
    if item.help:
        parts.append(item.help)
    return "\n".join(parts)


def _locations(item: Finding, base: Path, root: Path) -> dict[str, Any]:
    """`locations` in the user's repository, `relatedLocations` elsewhere.

    A finding about upstream alone has no place in the repository; its upstream file is then its location, so that the
    result has one at all.
    """
    here = [p for p in (primary(item),) if p is not None]
    related = [(p, SOURCE_ROOT) for p in (item.generated,) if p is not None and p not in here]
    if item.upstream:
        related.append((item.upstream, UPSTREAM_ROOT))
    places = [(p, SOURCE_ROOT) for p in here] or related[:1]
    location: dict[str, Any] = _physical(*places[0], base, root) if places else {}
    logical = {"fullyQualifiedName": item.entry, "kind": "function"} if item.entry else None
    if logical:
        location["logicalLocations"] = [logical]
    fields: dict[str, Any] = {}
    if location:
        fields["locations"] = [location]
    others = [_physical(*r, base, root) for r in related if r not in places]
    if others:
        fields["relatedLocations"] = [{"id": number, **other} for number, other in enumerate(others, 1)]
    return fields


def _physical(place: Position, root_id: str, base: Path, root: Path) -> dict[str, Any]:
    path = relative_path(place.file, base, root) if root_id == SOURCE_ROOT else place.file
    artifact: dict[str, Any] = {"uri": quote(path, safe="/~!$&'()*+,;=@")}
    if Path(path).is_absolute():  # outside the repository
        artifact["uri"] = Path(path).as_uri()
    elif not path.startswith("<"):
        artifact["uriBaseId"] = root_id
    physical: dict[str, Any] = {"artifactLocation": artifact}
    if place.line:
        physical["region"] = {"startLine": place.line}
        if place.column:
            physical["region"]["startColumn"] = place.column
    return {"physicalLocation": physical}


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """One fingerprint per finding: the same tomorrow, when lines have moved and versions have changed.

    It is made of code, entry (the file where there is none), delta and the message without numbers and digests. Findings
    that agree in all of these are told apart by their order.
    """
    seen: dict[str, int] = {}
    result = []
    for item in findings:
        place = primary(item) or item.upstream
        subject = item.entry or (place.file if place else "")
        text = "\0".join((item.code, subject, item.delta or "", skeleton(item.message)))
        digest = short(text, 32)
        seen[digest] = seen.get(digest, 0) + 1
        result.append(f"{digest}:{seen[digest]}")
    return result


def skeleton(message: str) -> str:
    """The message without what changes from day to day: digests, numbers, spacing."""
    return " ".join(_DIGITS.sub("#", _HEX.sub("#", message)).split())
