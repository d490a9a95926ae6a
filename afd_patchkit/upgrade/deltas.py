"""What happens to each delta of one entry when upstream's text changes: two methods, and what decides between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from afd_patchkit.delta.apply import Reader
from afd_patchkit.digests import short
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Delta
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upgrade.absorb import Answer, absorbed, absorbed_lines
from afd_patchkit.upgrade.align import Alignment, align
from afd_patchkit.upgrade.checks import between, check, is_serious
from afd_patchkit.upgrade.merge import Merged, as_text, merge, normal, placed, private_marker
from afd_patchkit.upgrade.pair import Pair
from afd_patchkit.upgrade.reanchor import propose
from afd_patchkit.upgrade.result import DeltaResult, Proposal, Status
from afd_patchkit.upgrade.sides import LineDiff, One, apply, file_line, flat


@dataclass(frozen=True)
class EntryChange:
    """One entry whose upstream text is (or may be) another now.

    Attributes:
        ref: `module.py::name`.
        deltas: in manifest order.
        record: the lock's record of the entry at the base.
        base: the old symbol; None when the old upstream is not at hand.
        new: the new symbol.
        read_old: gives old files for `take:`.
        read_new: gives new files for `take:`.
    """

    ref: str
    deltas: tuple[Delta, ...]
    record: Mapping[str, Any]
    base: Symbol | None
    new: Symbol
    read_old: Reader | None
    read_new: Reader | None

    @cached_property
    def marker(self) -> str:
        """A prefix for fences that cannot be upstream's."""
        return private_marker([s.file.text for s in (self.base, self.new) if s is not None])

    @cached_property
    def lines(self) -> LineDiff:
        """Which lines upstream kept, and which it changed."""
        return LineDiff.of(self.record["line_digests"].split(" "), self.new)

    @cached_property
    def alignment(self) -> Alignment | None:
        """Which statement of the old text became which of the new one."""
        return align(self.base, self.new) if self.base is not None else None

    @property
    def same_text(self) -> bool:
        """Whether upstream's text is what it was."""
        return bool(self.record["sha256"] == short(self.new.data, 32))

    @cached_property
    def plain_old(self) -> str:
        """The old text without deltas, dedented."""
        assert self.base is not None
        return self._apply(self.base, (), None).text

    @cached_property
    def plain_new(self) -> str:
        """The new text without deltas, dedented."""
        return self._apply(self.new, (), None).text

    def old(self, deltas: Sequence[Delta]) -> One | None:
        """The deltas, applied to the old text."""
        return None if self.base is None else self._apply(self.base, deltas, self.read_old)

    def now(self, deltas: Sequence[Delta]) -> One:
        """The deltas, applied to the new text."""
        return self._apply(self.new, deltas, self.read_new)

    def _apply(self, symbol: Symbol, deltas: Sequence[Delta], read: Reader | None) -> One:
        return apply(symbol, deltas, entry=self.ref, marker=self.marker, read=read)


@dataclass(frozen=True)
class Judged:
    """The deltas of one entry, judged.

    Attributes:
        deltas: one result each, in manifest order.
        reasons: findings about all of them together.
        abstained: deltas for which method B had no answer.
        other: method B's text of all deltas, where it differs.
        conflict: the merged text with conflict markers, when some delta does not apply any more.
    """

    deltas: tuple[DeltaResult, ...]
    reasons: tuple[Finding, ...] = ()
    abstained: tuple[str, ...] = ()
    other: str | None = None
    conflict: str | None = None


def judge(change: EntryChange) -> Judged:
    """Judge every delta of an entry."""
    if change.same_text:
        return Judged(tuple(_unchanged(change, delta) for delta in change.deltas))
    whole = change.now(change.deltas)
    judges = [_Judge(change, delta, whole) for delta in change.deltas]
    results = [j.result() for j in judges]
    gaps = between([j.pair for j in judges if j.pair.new.applied is not None], change.base)
    results = [_with_gap(r, gaps[r.name]) if r.name in gaps else r for r in results]
    reasons, other, conflict = _together(change, whole, results)
    return Judged(tuple(results), tuple(reasons), tuple(j.delta.name for j in judges if j.abstained), other, conflict)


def _unchanged(change: EntryChange, delta: Delta) -> DeltaResult:
    old = _old_lines(change, delta)
    ranges = change.record["lines"]
    shift = change.new.line_ranges[0][0] - ranges[0][0]
    new = (old[0] + shift, old[1] + shift) if old != (0, 0) else old
    return DeltaResult(delta.name, "unchanged", old_lines=old, new_lines=new)


def _old_lines(change: EntryChange, delta: Delta) -> tuple[int, int]:
    found = [r["lines"] for _, r in flat(change.record.get("deltas", {}), delta)]
    return _lines(found, change.record["lines"])


def _lines(found: Sequence[Sequence[int]], ranges: Sequence[Sequence[int]]) -> tuple[int, int]:
    if not found:
        return (0, 0)
    first, last = min(f for f, _ in found), max(max(f, n) for f, n in found)
    return file_line(ranges, first), file_line(ranges, last)


def _with_gap(result: DeltaResult, findings: list[Finding]) -> DeltaResult:
    """With new code beside it; that its neighbour is another statement now goes without saying then."""
    kept = tuple(f for f in result.reasons if f.group != "neighbour")
    status: Status = "review" if result.status in ("clean", "unchanged", "review") else result.status
    return replace(result, status=status, reasons=(*kept, *findings))


class _Judge:
    """Judges what becomes of one delta on the new release."""

    def __init__(self, change: EntryChange, delta: Delta, whole: One) -> None:
        self.change, self.delta = change, delta
        base = change.old([delta])
        if base is not None and base.applied is None:
            base = None  # it needs its neighbours: the lock knows where it stood
        old = flat(base.records if base is not None else change.record.get("deltas", {}), delta)
        self.pair = Pair(delta, change.ref, old, base, change.now([delta]), change.lines, change.alignment, whole)
        self.abstained = False

    def result(self) -> DeltaResult:
        """Decide on the status, with the reasons for it."""
        one = self.pair.new
        old_lines = _old_lines(self.change, self.delta)
        if one.applied is None:
            return self._gone(old_lines)
        new_lines = _lines([r["lines"] for _, r in flat(one.records, self.delta)], self.change.new.line_ranges)
        if not self.delta.does.edits:
            return DeltaResult(self.delta.name, "clean", old_lines=old_lines, new_lines=new_lines)
        answer = self._absorbed()
        does = self.delta.does
        changes = does.keeps or does.drops or does.call  # what it changes is still there
        if answer == "all" and not changes:
            return DeltaResult(self.delta.name, "absorbed", (self._upstream_has(),), False, old_lines, new_lines)
        reasons = check(self.pair)
        reasons += self._second_method()
        if answer != "no":  # the operation still finds something to change
            reasons.append(self._upstream_has_part())
        status: Status = "review" if any(map(is_serious, reasons)) else "clean"
        return DeltaResult(self.delta.name, status, tuple(dict.fromkeys(reasons)), False, old_lines, new_lines)

    # ---- it does not apply any more -----------------------------------------------------------------------------

    def _gone(self, old_lines: tuple[int, int]) -> DeltaResult:
        error = self.pair.new.error
        assert error is not None
        answer = self._absorbed()
        if answer == "all":
            return DeltaResult(self.delta.name, "absorbed", (self._upstream_has(),), False, old_lines)
        reasons = []
        for item in error.findings:
            if item.group == "there" and self.delta.operation == "parameter":
                reasons.append(
                    self.pair.say(
                        "PK518",
                        f"upstream added a parameter of the same name: {item.message}",
                        help="Rename ours, or use upstream's and delete the delta.",
                    )
                )
            else:
                reasons.append(
                    replace(
                        self.pair.say(
                            "PK521", f"the delta does not apply any more: {item.message}", details=item.details
                        ),
                        upstream=item.upstream or self.change.new.position,
                        help=item.help,
                    )
                )
        if answer == "partly":
            reasons.append(self._upstream_has_part())
        proposal = self._proposal() if any(f.group == "anchor" for f in error.findings) else None
        return DeltaResult(self.delta.name, "conflict", tuple(reasons), False, old_lines, (0, 0), proposal)

    def _proposal(self) -> Proposal | None:
        if self.change.base is None or self.change.alignment is None or self.pair.base is None:
            return None
        return propose(self.delta, self.pair.base, self.change.alignment, self._try)

    def _try(self, delta: Delta) -> One:
        return self.change.now([delta])

    # ---- it is upstream already ---------------------------------------------------------------------------------

    def _absorbed(self) -> Answer:
        base = self.pair.base
        if not self.delta.does.edits:
            return "no"
        if base is None or self.change.alignment is None:
            return absorbed_lines(self.delta, self.change.lines)
        marker = self.change.marker
        patched = "\n".join(normal(base.text, marker)) + "\n"
        return absorbed(patched, self.change.alignment)

    def _upstream_has(self) -> Finding:
        return self.pair.say(
            "PK522",
            "upstream has what this delta does",
            help="Read upstream's text, then delete the delta from the manifest.",
        )

    def _upstream_has_part(self) -> Finding:
        return self.pair.say(
            "PK523",
            "upstream has a part of what this delta does",
            help="Take out of the delta what upstream has now.",
        )

    # ---- method B ----------------------------------------------------------------------------------------------

    def _second_method(self) -> list[Finding]:
        merged = self._merged()
        if merged is None or not merged.clean:
            self.abstained = True
            return [] if self.delta.does.header or self._aligned() else [self._elsewhere()]
        if self.pair.base is not None:
            marker = self.change.marker
            same = normal(merged.text, marker) == normal(self.pair.new.text, marker)
        else:
            same = merged.text == as_text(placed(self.change.lines.new, flat(self.pair.new.records, self.delta)))
        if same:
            return []
        return [
            self.pair.say(
                "PK516",
                "the operation and a line merge put the delta in different places",
                details=_differences(merged.text, self.pair.new.text, self.change.marker) if self.pair.base else (),
                help="One of them is wrong, or both: compare the two texts.",
            )
        ]

    def _merged(self) -> Merged | None:
        change = self.change
        if self.pair.base is not None and change.base is not None:
            return merge(self.pair.base.text, change.plain_old, change.plain_new)
        if any("lines" not in record for _, record in self.pair.old):
            return None
        ours = as_text(placed(change.lines.old, self.pair.old))
        return merge(ours, as_text(change.lines.old), as_text(change.lines.new))

    def _aligned(self) -> bool:
        """Whether the anchor's statements became those that the pattern matches now."""
        if self.change.alignment is None or self.pair.base is None:
            return self._aligned_by_lines()
        old, new = self.pair.base.applied, self.pair.new.applied
        assert old is not None
        assert new is not None
        alignment = self.change.alignment
        for name, matches in old.matches.items():
            there = new.matches.get(name, [])
            if len(there) != len(matches):
                return False
            for one, other in zip(matches, there, strict=True):
                if one.body is None:
                    ends = [(one.owner, other.owner)]
                else:
                    ends = [(one.nodes[0], other.nodes[0]), (one.nodes[-1], other.nodes[-1])]
                for a, b in ends:
                    if id(a) in alignment.base.by_id:
                        found = alignment.find(a)
                        if found is None or found.node is not b:
                            return False
        return True

    def _aligned_by_lines(self) -> bool:
        """The same with line digests: the lines at the anchor are equal and are where the pattern matches."""
        new = flat(self.pair.new.records, self.delta)
        if len(new) != len(self.pair.old):
            return False
        kept = self.change.lines.kept
        for (_, old), (_, now) in zip(self.pair.old, new, strict=True):
            (first, last), (there, end) = old["lines"], now["lines"]
            if first <= last:
                if [kept.get(n) for n in range(first, last + 1)] != list(range(there, end + 1)):
                    return False
            elif kept.get(first) != there and kept.get(first - 1) != there - 1:
                return False
        return True

    def _elsewhere(self) -> Finding:
        return self.pair.say(
            "PK520",
            "the pattern matches, but perhaps not the statement that it matched before",
            at=min((e.span.start for _, e in self.pair.edits()), default=None),
            details=_old_anchor(self.pair),
            help="Compare old and new text; narrow the pattern, or accept this place.",
        )


def _old_anchor(pair: Pair) -> tuple[str, ...]:
    if pair.base is None or pair.base.applied is None:
        return ()
    file = pair.base.symbol.file
    return tuple(
        f"before: {file.path}:{file.line_of(m.span.start)}: {file.slice(m.span).splitlines()[0]}"
        for matches in pair.base.applied.matches.values()
        for m in matches[:3]
    )


def _differences(one: str, other: str, marker: str) -> tuple[str, ...]:
    from difflib import unified_diff

    lines = unified_diff(normal(one, marker), normal(other, marker), "line merge", "operation", n=0, lineterm="")
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))[:12]


def _together(
    change: EntryChange, whole: One, results: Sequence[DeltaResult]
) -> tuple[list[Finding], str | None, str | None]:
    """All deltas at once: they must apply together, and both methods must agree."""
    live = change.deltas
    base = change.old(live)
    merged = None
    if base is not None and base.applied is not None and change.base is not None:
        merged = merge(base.text, change.plain_old, change.plain_new)
    if whole.applied is None:
        alone = all(r.status not in ("conflict", "absorbed") for r in results)
        reasons = [*(whole.error.findings if whole.error and alone else ())]
        return list(reasons), None, merged.text if merged is not None else None
    if merged is None or not merged.clean or normal(merged.text, change.marker) == normal(whole.text, change.marker):
        return [], None, None
    found = finding(
        "PK516",
        "the operations and a line merge of all deltas give different texts",
        entry=change.ref,
        upstream=Position(change.new.file.path, change.new.line_ranges[0][0]),
        details=_differences(merged.text, whole.text, change.marker),
        help="Compare the two texts; with all deltas right one by one, look at where two of them meet.",
    )
    return [found], merged.text, None
