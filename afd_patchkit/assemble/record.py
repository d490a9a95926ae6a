"""What one generated module contributes to files, lock and report: plain data."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from afd_patchkit.assemble.comments import describe_probes
from afd_patchkit.assemble.entry import GeneratedEntry
from afd_patchkit.assemble.module import GeneratedModule
from afd_patchkit.assemble.outline import verbatim_lines
from afd_patchkit.delta.context import digest_of, edit_context
from afd_patchkit.delta.edits import Edit
from afd_patchkit.delta.patterns import Match
from afd_patchkit.lock import digest, short
from afd_patchkit.manifest.model import Delta, TakeBody
from afd_patchkit.review.finding import Finding
from afd_patchkit.source.facts import attributes_read, body_digest, result_shape
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.signature import render, signature


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
    """

    module: str
    manifest: str
    text: str = ""
    outline: str = ""
    lock: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    failed: bool = False
    entries: int = 0
    deltas: int = 0
    upstream_lines: int = 0
    verbatim_lines: int = 0
    retired: tuple[str, ...] = ()

    @property
    def wholly_retired(self) -> bool:
        """Whether every entry is retired."""
        return not self.failed and not self.text


def record(module: GeneratedModule) -> ModuleResult:
    """The plain data of a generated module."""
    lock: dict[str, Any] = {
        "manifest": module.manifest.path,
        "entries": {g.ref.partition("::")[2]: entry_record(g) for g in module.entries},
        "retired": {r.name: describe_probes([r.probe]) for r in module.retired},
        "parts": sorted(part.path for part in module.parts),
    }
    if module.text:
        lock["sha256"] = digest(module.text.encode())
        lock["outline"] = digest(module.outline.encode())
    copies = [g for g in module.entries if g.entry.kind in ("copy", "backport")]
    upstream = sum(_code_lines(g.symbol) for g in copies if g.symbol)
    verbatim = sum(verbatim_lines(g.body, g.symbol.file) for g in copies if g.symbol)
    return ModuleResult(
        module=module.manifest.module,
        manifest=module.manifest.path,
        text=module.text,
        outline=module.outline,
        lock=lock,
        files=_files(module),
        findings=module.findings,
        entries=len(module.entries),
        deltas=sum(_count(g.entry.deltas) for g in module.entries),
        upstream_lines=upstream,
        verbatim_lines=verbatim,
        retired=tuple(r.ref for r in module.retired),
    )


def _count(deltas: Sequence[Delta]) -> int:
    total = 0
    for delta in deltas:
        bodies = [b for b in (delta.insert, delta.with_) if isinstance(b, TakeBody)]
        total += 1 + _count(delta.deltas) + sum(_count(b.take.deltas) for b in bodies)
    return total


def _code_lines(symbol: Symbol) -> int:
    return sum(1 for first, last in symbol.line_ranges for line in symbol.file.lines(first, last) if line.strip())


def _files(module: GeneratedModule) -> dict[str, dict[str, tuple[str, str]]]:
    """Per pin, raw and normalised digest of every upstream file used."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    watched = [s.file for g in module.entries for s in g.watched]
    for file in (*module.files, *watched):
        found.setdefault(file.pin, {})[file.path] = (file.raw_sha256, file.sha256)
    return found


def entry_record(generated: GeneratedEntry) -> dict[str, Any]:
    """The lock's record of one entry (design, section 9)."""
    entry, symbol = generated.entry, generated.symbol
    out: dict[str, Any] = {"kind": entry.kind, "output": digest(generated.body.text.encode())[:16]}
    if generated.watched:
        out["watch"] = {s.reference: digest(s.data)[:16] for s in generated.watched}
    if entry.part:
        out["part"] = entry.part
    if symbol is None:
        return out
    out |= symbol_record(symbol)
    if generated.plan is not None and generated.plan.rebindings:
        out["rebindings"] = dict(generated.plan.rebindings)
    if generated.name_spans:
        start = symbol.spans[0].start
        out["name_edits"] = [[s.start - start, s.end - start] for s in generated.name_spans]
    if generated.applied is not None:
        out["deltas"] = delta_records(symbol, generated.applied.edits, generated.applied.matches)
        taken = generated.applied.taken
        if taken:
            out["taken"] = {
                f"{pin} {reference}": digest_of(file, span) for (pin, reference), (file, span) in sorted(taken.items())
            }
    return out


def symbol_record(symbol: Symbol) -> dict[str, Any]:
    """Identity of one upstream symbol: place, digests, signature, decorators."""
    out: dict[str, Any] = {
        "pin": symbol.file.pin,
        "symbol": symbol.reference,
        "file": symbol.file.path,
        "lines": [list(lines) for lines in symbol.line_ranges],
        "sha256": digest(symbol.data)[:32],
        "body": body_digest(symbol.node, symbol.file),
        "line_digests": " ".join(
            short(line.strip()) for first, last in symbol.line_ranges for line in symbol.file.lines(first, last)
        ),
    }
    if isinstance(symbol.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found = signature(symbol.node, symbol.file)
        out["signature"] = digest(render(found).encode())[:16]
        out["parameters"] = [p.name for p in found.parameters]
        out["shape"] = list(result_shape(symbol.node))
        out["reads"] = list(attributes_read(symbol.node))
        out["decorators"] = [digest(text.encode())[:16] for text in found.decorators]
    return out


def delta_records(
    symbol: Symbol, edits: Sequence[Edit], matches: Mapping[str, Sequence[Match]]
) -> dict[str, list[dict[str, Any]]]:
    """Per delta name, what the lock says of each of its edits."""
    start = symbol.spans[0].start
    out: dict[str, list[dict[str, Any]]] = {}
    for edit in edits:
        context = edit_context(symbol, edit, matches.get(edit.delta, ()))
        found: dict[str, Any] = {
            "operation": edit.operation,
            "span": [edit.span.start - start, edit.span.end - start],
            "lines": list(context.lines),
            "emitted": digest(edit.emitted.encode())[:16],
            "touched": context.touched,
            "headers": list(context.headers),
            "before": context.before,
            "after": context.after,
            "bindings": list(context.bindings),
        }
        if context.holder is not None:
            found["holder"] = context.holder
        if context.arguments:
            found["arguments"] = list(context.arguments)
        out.setdefault(edit.delta, []).append(found)
    return out
