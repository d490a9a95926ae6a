"""Edits: spans of upstream bytes and what stands there instead; checking them and applying them all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from afd_patchkit.delta.buffer import Buffer, Run
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.operations import OPERATIONS, Operation
from afd_patchkit.source.text import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Keep:
    """Upstream text that stays inside an edit (wrapping).

    Attributes:
        span: bytes of the file; starts behind the indentation of its first line.
        remove: indentation its further lines have upstream.
        add: indentation they get instead.
        width: columns of the indentation of the kept statements; None for an expression.
        whole: it is a whole block, so that what is put before its first or behind its last statement stands in it.
    """

    span: Span
    remove: str = ""
    add: str = ""
    width: int | None = None
    whole: bool = False


Piece = str | Keep | Buffer

CLAUSE, STATEMENT = 0, 1


def keeps(pieces: Sequence[Piece]) -> bool:
    """Whether some upstream text stays inside."""
    return any(isinstance(piece, Keep) for piece in pieces)


@dataclass(frozen=True, slots=True)
class Edit:
    """One span of upstream bytes that a delta touches.

    Attributes:
        id: number within the entry.
        span: bytes of the file that are replaced; empty for an insertion.
        pieces: what stands there instead.
        delta: name of the delta.
        operation: name of its operation.
        order: at one insertion point, smaller ones come first, then manifest order. Code put behind a statement has
            `(-width, CLAUSE or STATEMENT)`, so that deeper blocks end first and clauses stand where they must.
        width: columns of the indentation of the statements it replaces or adds; None for pieces of statements.
        part: it belongs to the statement at whose edge it is inserted (a clause, assignment targets), not beside it.
        group: number that edits of one delta share which must stand in one fence; None for all others.
        parent: id of the wrapping edit whose `Keep` this edit belongs into; None at the top level.
        touched: the bytes whose meaning the edit depends on (the anchor), for the lock.
        where: the delta in the manifest.
    """

    id: int
    span: Span
    pieces: tuple[Piece, ...]
    delta: str
    operation: str
    order: tuple[int, int] = (0, 0)
    width: int | None = None
    part: bool = False
    group: int | None = None
    parent: int | None = None
    touched: Span | None = None
    where: Position | None = None

    @property
    def does(self) -> Operation:
        """What is to be known of its operation."""
        return OPERATIONS[self.operation]

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


_Holder = tuple[int, Edit, tuple[Span, ...]]
"""A bit, the edit that it stands for, and what that keeps."""


class Nesting:
    """Which edit stands in the kept text of which other one."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self.edits = edits
        self._by_id = {edit.id: edit for edit in edits}
        holding = [(1 << index, edit, edit.keeps) for index, edit in enumerate(edits) if keeps(edit.pieces)]
        self._bits = {edit.id: bit for bit, edit, _ in holding}
        # edits are many at times, and pairs of them too many for more than a bit each
        self._holders = {edit.id: self._holding(edit, holding) for edit in edits}
        self._owners = {edit.id: self._innermost(edit, holding) for edit in edits}
        self._children: dict[int | None, list[Edit]] = {}
        for edit in sorted(edits, key=lambda e: (e.span.start, len(e.span) > 0, e.order, e.id)):
            self._children.setdefault(self._owners[edit.id], []).append(edit)

    def children(self, parent: Edit | None, span: Span) -> list[Edit]:
        """The edits to apply directly inside `span`, in order; `span` is kept text of `parent`, or of the symbol."""
        inside = self._children.get(parent.id if parent is not None else None, [])
        return [edit for edit in inside if span.contains(edit.span)]

    def related(self, one: Edit, other: Edit) -> bool:
        """Whether one stands in kept text of the other, at any depth."""
        held, holds = self._holders, self._bits
        return bool(held[one.id] & holds.get(other.id, 0) or held[other.id] & holds.get(one.id, 0))

    def owner(self, edit: Edit) -> Edit | None:
        """The innermost edit that this one lies in."""
        owner = self._owners[edit.id]
        return None if owner is None else self._by_id[owner]

    def depth(self, edit: Edit) -> int:
        """How many edits this one lies in."""
        owner = self.owner(edit)
        return 0 if owner is None else 1 + self.depth(owner)

    def declared(self, edit: Edit, ancestor: Edit) -> bool:
        """Whether `edit` was declared inside `ancestor` (`deltas:`)."""
        parent = edit.parent
        while parent is not None:
            if parent == ancestor.id:
                return True
            parent = self._by_id[parent].parent
        return False

    def _holding(self, edit: Edit, holding: Sequence[_Holder]) -> int:
        """The bits of the edits that hold this one."""
        held, span = 0, edit.span
        for bit, holder, kept in holding:
            near = any(keep.start <= span.start and span.end <= keep.end for keep in kept)
            if near and holder.id != edit.id and self._holds(holder, edit):
                held |= bit
        return held

    def _innermost(self, edit: Edit, holding: Sequence[_Holder]) -> int | None:
        held = self._holders[edit.id]
        holders = [other for bit, other, _ in holding if bit & held] if held else []
        # the innermost one stands in all the others
        return max(holders, key=lambda e: (self._holders[e.id] & held).bit_count()).id if holders else None

    def _holds(self, holder: Edit, edit: Edit) -> bool:
        return any(self._keeps(holder, piece, edit) for piece in holder.pieces if isinstance(piece, Keep))

    def _keeps(self, holder: Edit, keep: Keep, edit: Edit) -> bool:
        if not keep.span.contains(edit.span) or (keep.width is None and edit.width is not None):
            return False  # elsewhere; or statements, which no expression can hold
        if not len(edit.span):
            return self.declared(edit, holder) or _inside(edit, keep.span, keep.width, block=keep.whole)
        if keep.span == edit.span and any(
            holder.span == p.span and (p.width is not None or holder.width is None)
            for p in edit.pieces
            if isinstance(p, Keep)
        ):
            return holder.id < edit.id  # each keeps the other's text: the earlier delta is the outer one
        removed = not edit.pieces or (edit.does.drops and not edit.does.keeps)
        return keep.span != edit.span or not removed  # what is removed whole cannot be kept


def _inside(insertion: Edit, span: Span, width: int | None, *, block: bool = False, clause: bool = False) -> bool:
    """Whether an insertion stands in `span`; at its edges that depends on what it belongs to.

    Args:
        insertion: an edit with an empty span.
        span: some bytes.
        width: columns of the indentation of the statements in `span`; None for a piece of a statement.
        block: `span` is a whole block: what stands beside its statements stands in it.
        clause: `span` is a clause: other clauses stand beside it.
    """
    point = insertion.span.start
    if span.start < point < span.end:
        return True
    if width is None or point not in (span.start, span.end):
        return False
    if insertion.width is None:
        return insertion.part
    if insertion.width == width:
        return block or (insertion.part and not clause)
    return insertion.width > width and (insertion.part or point == span.end)


def check_overlaps(edits: Sequence[Edit], file: SourceFile, entry: str) -> list[Finding]:
    """Findings for edits that are neither disjoint nor nested (PK210), and for the same insertion made twice (PK211).

    A delta is told of the first other one that is in its way.
    """
    found: dict[tuple[str, str], tuple[int, Finding]] = {}

    def note(code: str, one: Edit, other: Edit, make: Callable[[Edit, Edit, SourceFile, str], Finding]) -> None:
        known = found.get((code, other.delta))
        if known is None or one.id < known[0]:
            found[code, other.delta] = (one.id, make(one, other, file, entry))

    nesting = Nesting(edits)
    ordered = sorted(edits, key=lambda e: (e.span.start, -e.span.end, e.id))
    for index, first in enumerate(ordered):
        for second in ordered[index + 1 :]:
            if second.span.start > first.span.end:
                break
            if _clash(first, second, nesting):
                one, other = sorted((first, second), key=lambda e: e.id)
                note("PK210", one, other, _overlap)
    for one, other in _repeated(edits, file):
        note("PK211", one, other, _twice)
    return [problem for _, problem in found.values()]


def _repeated(edits: Sequence[Edit], file: SourceFile) -> Iterator[tuple[Edit, Edit]]:
    """Deltas that insert the same text at the same place as another (behind one statement and before the next counts)."""
    first: dict[tuple[str, int | None, int | None], Edit] = {}
    before = 0
    for edit in sorted((e for e in edits if not len(e.span) and e.emitted.strip()), key=lambda e: (e.span.start, e.id)):
        if file.data[before : edit.span.start].strip():
            first.clear()
        before = edit.span.start
        one = first.setdefault((edit.emitted.strip(), edit.width, edit.parent), edit)
        if one.delta != edit.delta:
            yield (one, edit) if one.id < edit.id else (edit, one)


def _twice(one: Edit, other: Edit, file: SourceFile, entry: str) -> Finding:
    return finding(
        "PK211",
        f"delta {other.delta!r} inserts the same text at the same place as delta {one.delta!r}",
        entry=entry,
        delta=other.delta,
        manifest=other.where,
        upstream=file.position(max(one.span.start, other.span.start)),
        details=(f"delta {one.delta!r} is at {one.where}",),
        help="Delete one of them.",
    )


def _overlap(one: Edit, other: Edit, file: SourceFile, entry: str) -> Finding:
    if one.delta == other.delta:
        message = f"delta {one.delta!r} touches the same upstream text twice"
        help_ = "Its matches overlap: narrow the pattern, or split the delta."
    else:
        message = f"delta {other.delta!r} touches upstream text that delta {one.delta!r} replaces"
        help_ = "Join the two deltas, narrow one of them, or keep the text with `__upstream__` or `parts`."
    return finding(
        "PK210",
        message,
        entry=entry,
        delta=other.delta,
        manifest=other.where,
        upstream=file.position(max(one.span.start, other.span.start)),
        details=(f"delta {one.delta!r} is at {one.where}",) if one.delta != other.delta else (),
        help=help_,
    )


def _clash(one: Edit, other: Edit, nesting: Nesting) -> bool:
    if nesting.related(one, other) or (not len(one.span) and not len(other.span)):
        return False
    if not len(one.span) or not len(other.span):
        point, region = (one, other) if not len(one.span) else (other, one)
        return _inside(point, region.span, region.width, clause=region.part)
    return one.span.overlaps(other.span)


def render(file: SourceFile, span: Span, nesting: Nesting, parent: Edit | None = None) -> Buffer:
    """Upstream's `span` with the edits inside it applied.

    Args:
        file: the file of all spans.
        span: what to render.
        nesting: all edits of the entry; those that do not belong here are left alone.
        parent: the edit whose kept text is being rendered; None for the symbol itself.
    """
    out: list[Run] = []
    at = span.start
    for edit in nesting.children(parent, span):
        out.extend(Buffer.verbatim(file, Span(at, edit.span.start)).runs)
        out.extend(_emit(file, edit, nesting).runs)
        at = edit.span.end
    out.extend(Buffer.verbatim(file, Span(at, span.end)).runs)
    return Buffer(run for run in out if run.text or not run.file)


def _emit(file: SourceFile, edit: Edit, nesting: Nesting) -> Buffer:
    lead, tail = _edges(edit)
    before, body, behind = Buffer(), Buffer(), Buffer()
    for index, piece in enumerate(edit.pieces):
        if isinstance(piece, str):
            body += Buffer.emitted(piece)
        elif isinstance(piece, Buffer):
            body += piece
        else:
            kept = render(file, piece.span, nesting, edit).reindent(piece.remove, piece.add, skip_first=True)
            if index == 0 and lead:
                before = kept
            elif index > 0 and tail and index == len(edit.pieces) - 1:
                behind = kept
            else:
                body += kept
    if not body.runs and not before.runs:
        body = Buffer.emitted("")
    return before + body.inside(edit.id) + behind


def _edges(edit: Edit) -> tuple[bool, bool]:
    """Whether the edit begins, and whether it ends, with kept statements that stay just where they stood.

    They are not changed, and so no part of the edit's fence.
    """
    if not edit.pieces:
        return False, False
    first, last = edit.pieces[0], edit.pieces[-1]
    lead = isinstance(first, Keep) and _stays(first) and first.span.start == edit.span.start
    tail = isinstance(last, Keep) and _stays(last) and last.span.end == edit.span.end
    if lead and tail and isinstance(first, Keep) and isinstance(last, Keep) and first.span.overlaps(last.span):
        return True, False
    return lead, tail


def _stays(keep: Keep) -> bool:
    return keep.width is not None and keep.remove == keep.add
