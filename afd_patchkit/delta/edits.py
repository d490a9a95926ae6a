"""Edits: spans of upstream bytes and what stands there instead; checking them and applying them all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from afd_patchkit.delta.buffer import Buffer, Run
from afd_patchkit.errors import DeltaError
from afd_patchkit.review.finding import Finding, Position, finding
from afd_patchkit.source.text import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Keep:
    """Upstream text that stays inside an edit (wrapping).

    Attributes:
        span: bytes of the file; starts behind the indentation of its first line.
        remove: indentation its further lines have upstream.
        add: indentation they get instead.
    """

    span: Span
    remove: str = ""
    add: str = ""


Piece = str | Keep | Buffer


@dataclass(frozen=True, slots=True)
class Edit:
    """One span of upstream bytes that a delta touches.

    Attributes:
        id: number within the entry.
        span: bytes of the file that are replaced; empty for an insertion.
        pieces: what stands there instead.
        delta: name of the delta.
        operation: name of its operation.
        layer: at one insertion point, lower layers come first (0 clauses, 1 everything else).
        parent: id of the wrapping edit whose `Keep` this edit belongs into; None at the top level.
        touched: the bytes whose meaning the edit depends on (the anchor), for the lock.
        where: the delta in the manifest.
        extra: further bytes that an edit of the same delta must be fenced with (none usually).
    """

    id: int
    span: Span
    pieces: tuple[Piece, ...]
    delta: str
    operation: str
    layer: int = 1
    parent: int | None = None
    touched: Span | None = None
    where: Position | None = None
    extra: tuple[Span, ...] = field(default=())

    @property
    def keeps(self) -> tuple[Span, ...]:
        """The spans of upstream text that stay inside this edit."""
        return tuple(piece.span for piece in self.pieces if isinstance(piece, Keep))

    @property
    def emitted(self) -> str:
        """The emitted text, kept upstream text left out."""
        return "".join(
            piece.text if isinstance(piece, Buffer) else piece for piece in self.pieces if not isinstance(piece, Keep)
        )


def check_overlaps(edits: Sequence[Edit], file: SourceFile, entry: str) -> list[Finding]:
    """Findings for edits that are neither disjoint nor nested (PK210), and for the same insertion made twice (PK211)."""
    found: list[Finding] = []
    by_id = {edit.id: edit for edit in edits}
    ordered = sorted(edits, key=lambda e: (e.span.start, -e.span.end, e.id))
    for index, one in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.span.start > one.span.end:
                break
            problem = _clash(one, other, by_id)
            if problem:
                code, text = problem
                found.append(
                    finding(
                        code,
                        f"delta {other.delta!r} {text} delta {one.delta!r}",
                        entry=entry,
                        delta=other.delta,
                        manifest=other.where,
                        upstream=file.position(max(one.span.start, other.span.start)),
                        details=(f"the other delta stands at {one.where}",),
                        help="Join the two deltas, narrow one of them, or nest one in the other's `deltas:`.",
                    )
                )
    return found


def _clash(one: Edit, other: Edit, by_id: dict[int, Edit]) -> tuple[str, str] | None:
    if _is_ancestor(one, other, by_id) or _is_ancestor(other, one, by_id):
        return None
    if not len(one.span) and not len(other.span):
        same = one.span == other.span and one.emitted == other.emitted and one.parent == other.parent
        return ("PK211", "inserts the same text at the same place as") if same else None
    if not one.span.overlaps(other.span):
        inner = one.span.start < other.span.start < one.span.end  # an insertion inside a replaced span
        if not inner:
            return None
    if any(keep.contains(other.span) for keep in one.keeps) or any(keep.contains(one.span) for keep in other.keeps):
        return None
    return "PK210", "touches upstream text that is also touched by"


def _is_ancestor(one: Edit, other: Edit, by_id: dict[int, Edit]) -> bool:
    parent = other.parent
    while parent is not None:
        if parent == one.id:
            return True
        parent = by_id[parent].parent
    return False


def render(file: SourceFile, span: Span, edits: Sequence[Edit], parent: Edit | None = None) -> Buffer:
    """Upstream's `span` with the edits inside it applied.

    Args:
        file: the file of all spans.
        span: what to render.
        edits: all edits of the entry; those that do not belong here are left alone.
        parent: the edit whose kept text is being rendered; None for the symbol itself.
    """
    inside = [edit for edit in edits if _belongs(edit, span, parent, edits)]
    inside.sort(key=lambda e: (e.span.start, len(e.span) > 0, e.layer, e.id))
    out: list[Run] = []
    at = span.start
    for edit in inside:
        out.extend(Buffer.verbatim(file, Span(at, edit.span.start)).runs)
        out.extend(_emit(file, edit, edits).runs)
        at = max(at, edit.span.end)
    out.extend(Buffer.verbatim(file, Span(at, span.end)).runs)
    return Buffer(run for run in out if run.text or not run.file)


def _emit(file: SourceFile, edit: Edit, edits: Sequence[Edit]) -> Buffer:
    body = Buffer()
    for piece in edit.pieces:
        if isinstance(piece, str):
            body += Buffer.emitted(piece)
        elif isinstance(piece, Buffer):
            body += piece
        else:
            kept = render(file, piece.span, edits, edit)
            body += kept.reindent(piece.remove, piece.add, skip_first=True)
    if not body.runs:
        body = Buffer.emitted("")
    return body.inside(edit.id)


def _belongs(edit: Edit, span: Span, parent: Edit | None, edits: Sequence[Edit]) -> bool:
    """Whether `edit` is to be applied directly while `span` is rendered for `parent`."""
    if not span.contains(edit.span):
        return False
    owner = _owner(edit, edits)
    return owner is None if parent is None else owner is not None and owner.id == parent.id


def _owner(edit: Edit, edits: Sequence[Edit]) -> Edit | None:
    """The innermost edit whose kept text `edit` stands in; by declaration, else by position."""
    if edit.parent is not None:
        for other in edits:
            if other.id == edit.parent:
                inner = [
                    e for e in edits if e.id != edit.id and e.parent == edit.parent and _strictly_keeps(e, edit)
                ]
                return min(inner, key=lambda e: len(e.span)) if inner else other
    holders = [other for other in edits if other.id != edit.id and _strictly_keeps(other, edit)]
    return min(holders, key=lambda e: len(e.span)) if holders else None


def _strictly_keeps(holder: Edit, edit: Edit) -> bool:
    """Whether `edit` lies in kept text of `holder`; an insertion at its very edge stands outside."""
    for keep in holder.keeps:
        if keep.contains(edit.span) and (len(edit.span) or keep.start < edit.span.start < keep.end):
            if edit.span == holder.span and len(edit.span) and edit.id < holder.id:
                continue
            return True
    return False


def raise_overlaps(edits: Sequence[Edit], file: SourceFile, entry: str) -> None:
    """Raise `DeltaError` for overlapping edits."""
    found = check_overlaps(edits, file, entry)
    if found:
        raise DeltaError(*found)
