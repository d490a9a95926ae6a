"""What one generated module contributes to files, lock and report: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from afd_patchkit.assemble.comments import describe_probes
from afd_patchkit.assemble.module import GeneratedModule, Retired
from afd_patchkit.digests import sha256
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.findings.report import ModuleCounts
from afd_patchkit.references.texts import OwnText


@dataclass(frozen=True)
class ModuleResult:
    """One module, or why there is none.

    Attributes:
        module: path below the generated package root.
        manifest: path of its manifest.
        text: its text; empty when wholly retired or failed.
        outline: its outline.
        lock: its part of the lock.
        files: per pin, path of each upstream file used: raw and normalised digest.
        findings: everything to report.
        failed: whether it could not be generated.
        counts: what is counted of it.
        retired: references of entries whose removal condition holds.
        held: what is to be said of that, if this is the release that the project is pinned to.
        own: the text as references need it.
    """

    module: str
    manifest: str
    text: str = ""
    outline: str = ""
    lock: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    failed: bool = False
    counts: ModuleCounts = field(default_factory=ModuleCounts)
    retired: tuple[str, ...] = ()
    held: tuple[Finding, ...] = ()
    own: OwnText | None = None

    def pinned(self) -> ModuleResult:
        """The result of a run at the pinned releases: an entry that retires there has no use."""
        return replace(self, findings=(*self.findings, *self.held))

    @property
    def wholly_retired(self) -> bool:
        """Whether every entry is retired."""
        return not self.failed and not self.text


def record(module: GeneratedModule) -> ModuleResult:
    """The plain data of a generated module."""
    files = _files(module)
    lock: dict[str, Any] = {
        "manifest": module.manifest.path,
        "entries": {p.ref.partition("::")[2]: p.record for p in module.products},
        "retired": {r.name: describe_probes([r.probe]) for r in module.retired},
        "parts": sorted(part.path for part in module.parts),
    }
    if asks := sorted({pin for p in module.products for pin in p.asks}):
        lock["asks"] = asks
    if module.text:
        lock["sha256"] = sha256(module.text.encode())
        lock["outline"] = sha256(module.outline.encode())
    return ModuleResult(
        module=module.manifest.module,
        manifest=module.manifest.path,
        text=module.text,
        outline=module.outline,
        lock=lock,
        files=files,
        findings=module.findings,
        counts=ModuleCounts(
            entries=len(module.products),
            deltas=sum(p.deltas for p in module.products),
            upstream_lines=sum(p.upstream_lines for p in module.products),
            verbatim_lines=sum(p.verbatim_lines for p in module.products),
            lines=module.text.count("\n"),
            files=sum(len(found) for found in files.values()),
        ),
        retired=tuple(r.ref for r in module.retired),
        held=tuple(_held(r) for r in module.retired),
        own=module.own,
    )


def _held(retired: Retired) -> Finding:
    return finding(
        "PK548",
        f"{retired.name} is not generated: its removal condition holds at the pin itself: {describe_probes([retired.probe])}",
        entry=retired.ref,
        manifest=retired.probe.where,
        help="Delete the entry if upstream needs it no more; else correct the condition.",
    )


def _files(module: GeneratedModule) -> dict[str, dict[str, tuple[str, str]]]:
    """Per pin, raw and normalised digest of every upstream file used."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for file in (file for p in module.products for file in (*p.files, *p.watched)):
        found.setdefault(file.pin, {})[file.path] = (file.raw_sha256, file.sha256)
    return found
