"""What the lock records of one entry."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from afd_patchkit.assemble.entry import GeneratedEntry, Watched
from afd_patchkit.delta.context import digest_of, edit_context
from afd_patchkit.delta.edits import Edit
from afd_patchkit.digests import short
from afd_patchkit.names.completions import MILD, recorded
from afd_patchkit.patterns.select import Match
from afd_patchkit.source.facts import attributes_read, body_digest, result_shape
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.signature import render, signature


def watch_digest(watched: Watched) -> str:
    """Digest of a watched definition: its text, and what completes it elsewhere, in its module and in others."""
    elsewhere = "".join(sorted(c.digest for c in watched.completions if c.how not in MILD))
    return short(watched.symbol.data + elsewhere.encode(), 16)


def entry_record(generated: GeneratedEntry) -> dict[str, Any]:
    """The lock's record of one entry (design, section 9)."""
    entry, symbol = generated.entry, generated.symbol
    out: dict[str, Any] = {"kind": entry.kind, "output": short(generated.body.text, 16)}
    if generated.watched:
        out["watch"] = {w.symbol.reference: watch_digest(w) for w in generated.watched}
    if entry.part:
        out["part"] = entry.part
    if symbol is None:
        return out
    out |= symbol_record(symbol)
    if entry.kind != "delegate" and (elsewhere := recorded(generated.completions)):
        out["completed"] = elsewhere
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
        "sha256": short(symbol.data, 32),
        "body": body_digest(symbol.node, symbol.file),
        "line_digests": " ".join(
            short(line.strip()) for first, last in symbol.line_ranges for line in symbol.file.lines(first, last)
        ),
    }
    if isinstance(symbol.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found = signature(symbol.node, symbol.file)
        out["signature"] = short(render(found), 16)
        out["parameters"] = [p.name for p in found.parameters]
        out["shape"] = list(result_shape(symbol.node))
        out["reads"] = list(attributes_read(symbol.node))
        out["decorators"] = [short(text, 16) for text in found.decorators]
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
            "emitted": short(edit.emitted, 16),
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
