"""What is claimed of a module's entries, for the second proof (`proof/`): the declared changes as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from afd_patchkit.assemble.entry import GeneratedEntry, Own
from afd_patchkit.assemble.imports import Part
from afd_patchkit.assemble.proof.claims import Claim, ClaimedChange, Disagreement, Kept, OwnedClaim, Put, Renamed
from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.edits import Edit, Keep, Nesting
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.source.locate import Symbol
from afd_patchkit.source.text import SourceFile, Span


def claims_of(
    generated: Sequence[tuple[GeneratedEntry, str | None, Mapping[str, Any]]], parts: Sequence[Part]
) -> Iterator[Claim | OwnedClaim]:
    """What is claimed of the entries of a module.

    Args:
        generated: the entries, each with the name of its generated class and its part of the lock.
        parts: the owned files that went into the module.
    """
    for part in parts:
        yield OwnedClaim(part.path, part.path, part.body)
    for entry, group, record in generated:
        if entry.symbol is not None and entry.applied is not None:
            yield _claim(entry, entry.symbol, entry.applied.edits, group, record)


def disagreed(found: Disagreement, *, module: str, manifest: Position | None) -> Finding:
    """The finding of a disagreement (PK114), or of what could not be proved at all (PK664)."""
    if found.unread:
        return finding(
            "PK664",
            f"{found.ref} is proved once only: {found.message}",
            entry=found.ref,
            manifest=manifest,
            upstream=Position(*found.upstream) if found.upstream else None,
            help="Update libcst, or read the entry's outline.",
        )
    return finding(
        "PK114",
        f"the second proof does not accept {found.ref}: {found.message}",
        entry=found.ref,
        manifest=manifest,
        upstream=Position(*found.upstream) if found.upstream else None,
        generated=Position(module, found.line) if found.line else None,
        details=found.details,
        help="This is a fault of afd-patchkit, not of the manifest. Report it with this text; nothing was written.",
    )


def _claim(
    entry: GeneratedEntry, symbol: Symbol, edits: Sequence[Edit], group: str | None, record: Mapping[str, Any]
) -> Claim:
    start = symbol.spans[0].start
    recorded: dict[str, list[dict[str, Any]]] = record.get("deltas", {})
    return Claim(
        ref=entry.ref,
        name=entry.name,
        group=group,
        qualname=symbol.qualname,
        path=symbol.file.path,
        upstream=symbol.file.text,
        indent=symbol.indent,
        parts=kept_parts(symbol, edits, entry.own),
        renamed=tuple(sorted(_renamed(entry), key=lambda one: one.span or (0, 0))),
        told=entry.entry.kind != "delegate",
        edits=frozenset(
            (name, start + one["span"][0], start + one["span"][1], one["emitted"])
            for name, found in recorded.items()
            for one in found
        ),
        names=frozenset((start + first, start + last) for first, last in record.get("name_edits", ())),
    )


def kept_parts(symbol: Symbol, edits: Sequence[Edit], own: Sequence[Own] = ()) -> tuple[Kept, ...]:
    """The statements of a symbol, with the changes that edits and a delegate's own text make in them."""
    nesting, parts = Nesting(edits), []
    for span in symbol.spans:
        kept = _kept(symbol.file, span, nesting, None, Keep(span))
        mine = [
            ClaimedChange(None, one.span.start, one.span.end, (Put(one.text),) if one.text else ())
            for one in own
            if span.start <= one.span.start < span.end
        ]
        changes = sorted([*kept.changes, *mine], key=lambda change: change.start)
        parts.append(Kept(kept.start, kept.end, tuple(changes)))
    return tuple(parts)


def _renamed(entry: GeneratedEntry) -> Iterator[Renamed]:
    for change in entry.renamed:
        if not change.spans:
            yield Renamed(change.old, change.new)
        else:  # in one piece, or the proof finds that it is not
            yield Renamed(change.old, change.new, (change.spans[0].start, change.spans[-1].end))


def _kept(file: SourceFile, span: Span, nesting: Nesting, parent: Edit | None, keep: Keep) -> Kept:
    changes = tuple(_change(file, edit, nesting) for edit in nesting.children(parent, span))
    return Kept(span.start, span.end, changes, keep.remove, keep.add)


def _change(file: SourceFile, edit: Edit, nesting: Nesting) -> ClaimedChange:
    parts: list[Put | Kept] = []
    for piece in edit.pieces:
        if isinstance(piece, Keep):
            parts.append(_kept(file, piece.span, nesting, edit, piece))
        elif isinstance(piece, Buffer):
            parts += _taken(piece)
        else:
            parts.append(Put(piece))
    return ClaimedChange(edit.delta, edit.span.start, edit.span.end, tuple(parts))


def _taken(buffer: Buffer) -> Iterator[Put]:
    for line in buffer.split_lines():
        fence = any(run.label == "fence" and run.text.strip() for run in line)
        for run in (run for run in line if run.text):
            origin = (run.file.path, run.file.data, run.start) if run.file is not None else None
            yield Put(run.text, origin, fence)
