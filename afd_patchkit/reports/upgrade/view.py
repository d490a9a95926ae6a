"""What the renderers of an upgrade share: words, order, counts, and the findings with what was accepted of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from afd_patchkit.findings.finding import Finding, Position, Severity
from afd_patchkit.reports.context import rebase
from afd_patchkit.reports.layout import plural
from afd_patchkit.upgrade.result import NEEDS_PERSON, ORDER, DeltaResult, EntryResult, Status, UpgradeResult

MEANINGS: dict[Status, str] = {
    "missing": "the symbol is gone upstream",
    "conflict": "a delta no longer applies",
    "review": "it applies, but what it relies on has changed",
    "absorbed": "upstream has the change itself",
    "moved": "the same text stands elsewhere",
    "clean": "carried over; two methods agree",
    "unchanged": "upstream did not touch it",
    "retire": "its removal condition holds: delete it",
}

TO_DO: dict[Status, str] = {
    "missing": "name the successor in the manifest, or delete the entry",
    "conflict": "mend the delta in the manifest",
    "review": "read the change; mend the delta, or accept it",
    "absorbed": "delete the delta; delete the entry if it has no other",
    "moved": "write the new symbol into the manifest",
    "clean": "nothing",
    "unchanged": "nothing",
    "retire": "delete the entry from its manifest",
}


@dataclass(frozen=True, slots=True)
class Raised:
    """One finding of an upgrade.

    Attributes:
        finding: the finding.
        accepted: a valid acceptance covers it.
        version: the release it was found at.
    """

    finding: Finding
    accepted: bool
    version: str


def title(result: UpgradeResult, arrow: str = "->") -> str:
    """`vllm 0.26.0 -> 0.27.1`, with the pin's name where it is another than the distribution's."""
    name = result.distribution if result.pin == result.distribution else f"{result.distribution} ({result.pin})"
    return " ".join(part for part in (name, result.old, arrow, result.new) if part)


def worst_first(result: UpgradeResult) -> list[EntryResult]:
    """The entries, those that need most attention first; accepted ones behind the others of their status."""
    rank = {status: number for number, status in enumerate(ORDER)}
    return sorted(result.entries, key=lambda e: (rank[e.status], e.status in NEEDS_PERSON and e.accepted))


def tally(result: UpgradeResult) -> str:
    """`1 conflict, 2 review (1 accepted), 30 unchanged`; `no entries` for an empty project."""
    parts = []
    for status in ORDER:
        if number := result.count(status):
            accepted = sum(e.accepted for e in result.entries if e.status == status and status in NEEDS_PERSON)
            parts.append(f"{number:,} {status}" + (f" ({accepted:,} accepted)" if accepted else ""))
    return ", ".join(parts) or "no entries"


def verdict(result: UpgradeResult) -> str:
    """The one sentence that a maintainer wants to know first."""
    blocking = sum(e.blocks for e in result.entries)
    retired = result.count("retire")
    parts = []
    if blocking:
        parts.append(f"{plural(blocking, 'entry needs', 'entries need')} a person")
    if retired:
        parts.append(f"{plural(retired, 'entry is', 'entries are')} to be deleted")
    if parts:
        return " and ".join(parts)
    if result.exit_code:
        return "it could not be judged"
    if all(e.status == "unchanged" for e in result.entries):
        return "upstream touched nothing that is copied"
    return "everything carries over"


def fates(entry: EntryResult) -> str:
    """What happened to the deltas: `2 clean, 1 review: halves`."""
    if not entry.deltas:
        if entry.kind == "copy" and entry.status in {"unchanged", "clean"}:
            return "no deltas: verbatim"
        return "no deltas"
    counts = Counter(d.status for d in entry.deltas)
    parts = []
    for status in ORDER:
        if status not in counts:
            continue
        named = [d.name for d in entry.deltas if d.status == status]
        names = f": {_few(named)}" if status in NEEDS_PERSON or status == "retire" else ""
        parts.append(f"{counts[status]} {status}{names}")
    return "; ".join(parts)


def _few(names: Sequence[str]) -> str:
    """The names, the first three of many."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def must_do(entry: EntryResult) -> str:
    """What a person has to do."""
    if entry.status in NEEDS_PERSON and entry.accepted:
        return "nothing: accepted"
    return entry.must_do or TO_DO[entry.status]


def changed(entry: EntryResult) -> str:
    """What upstream changed, in words."""
    return entry.upstream_changed or ("nothing" if entry.status == "unchanged" else MEANINGS[entry.status])


def origin(entry: EntryResult) -> str:
    """`copy of acme.engine:Engine.step`, with the new place where it has moved."""
    if entry.kind == "owned":
        return f"our own code, {entry.symbol}" if entry.symbol else "our own code"
    text = f"{entry.kind} of {entry.symbol}" if entry.symbol else entry.kind
    if entry.new_symbol and entry.new_symbol != entry.symbol:
        text += f", now {entry.new_symbol}"
    return text + (" (donor)" if entry.axis == "donor" else "")


def entry_findings(entry: EntryResult) -> Iterator[tuple[Finding, bool]]:
    """The findings of one entry, its own before its deltas', with whether they are accepted."""
    for item in entry.reasons:
        yield item.at(entry=entry.ref), entry.accepted
    for delta in entry.deltas:
        for item in delta.reasons:
            yield item.at(entry=entry.ref, delta=delta.name), delta.accepted or entry.accepted


def raised(results: Iterable[UpgradeResult]) -> list[Raised]:
    """All findings of all targets; one that a target has twice, word for word, stands once."""
    found: dict[Raised, None] = {}
    for result in results:
        pairs = [(item, False) for item in result.findings]
        pairs += [pair for entry in result.entries for pair in entry_findings(entry)]
        for item, accepted in pairs:
            found[Raised(item, accepted, result.new)] = None
    return list(found)


def overall(results: Sequence[UpgradeResult]) -> int:
    """The exit code of several targets: the most serious one."""
    return max((result.exit_code for result in results), default=0)


@dataclass(frozen=True, slots=True)
class Row:
    """One entry over several releases: the status at each, None where the entry is not judged."""

    ref: str
    axis: str
    cells: tuple[EntryResult | None, ...]

    @property
    def label(self) -> str:
        """The entry, with its axis where that is the donor."""
        return self.ref + (" (donor)" if self.axis == "donor" else "")


def matrix(results: Sequence[UpgradeResult]) -> list[Row]:
    """Entries over releases, in the order in which they are first seen."""
    keys = dict.fromkeys((e.ref, e.axis) for result in results for e in result.entries)
    tables = [{(e.ref, e.axis): e for e in result.entries} for result in results]
    return [Row(ref, axis, tuple(table.get((ref, axis)) for table in tables)) for ref, axis in keys]


def alias_lines(result: UpgradeResult) -> list[str]:
    """`+ acme.cli imports acme.engine:step` for each alias site that came or went."""
    lines = []
    for change in result.aliases:
        lines += [f"+ {place} holds {change.symbol} by name now" for place in change.added]
        lines += [f"- {place} no longer holds {change.symbol}" for place in change.removed]
    return lines


def attribute_lines(result: UpgradeResult) -> list[str]:
    """`module.py::name: batch.ranks, batch.size` for entries that read attributes which they did not read before."""
    return [f"{entry.ref}: {', '.join(entry.attributes)}" for entry in result.entries if entry.attributes]


def condition_lines(result: UpgradeResult) -> list[str]:
    """The removal conditions that hold, each with what it retires: `46 entries: the target defines acme.engine:Overlap`."""
    found = Counter((e.upstream_changed or "").partition(": ")[2] for e in result.entries if e.status == "retire")
    return [f"{plural(count, 'entry', 'entries')}: {condition}" for condition, count in found.items() if condition]


def deletion_lines(result: UpgradeResult) -> list[str]:
    """Where what retires stands; a manifest of which nothing is left is one line."""
    whole: Counter[str] = Counter()
    single = []
    for line in result.deletions:
        place, _, ref = line.partition(": ")
        if ref.partition("::")[0] in result.retired_modules:
            whole[place.rpartition(":")[0]] += 1
        else:
            single.append(line)
    return [*(f"{file}: the file, {plural(count, 'entry', 'entries')}" for file, count in whole.items()), *single]


def extras(result: UpgradeResult) -> list[tuple[str, list[str]]]:
    """The lists that stand beside the table: title and lines, without the empty ones."""
    found = [
        ("Removal conditions that hold", condition_lines(result)),
        ("To delete from the manifests", deletion_lines(result)),
        ("Modules that vanish wholly", list(result.retired_modules)),
        ("What the manifests say of entries that retire", list(result.remarks)),
        ("What stays although others of its set retire", list(result.stays)),
        ("Alias sites added and removed", alias_lines(result)),
        ("Attributes that the new text reads and the old one did not", attribute_lines(result)),
        ("Written", list(result.written)),
    ]
    return [(name, lines) for name, lines in found if lines]


def moved_findings(result: UpgradeResult, root: Path, here: Path) -> UpgradeResult:
    """The result with places as one would type them in the folder `here` (see `rebase`)."""

    def findings(items: tuple[Finding, ...]) -> tuple[Finding, ...]:
        return rebase(items, root, here)

    return replace(
        result,
        findings=findings(result.findings),
        entries=tuple(
            replace(e, reasons=findings(e.reasons), deltas=tuple(_moved_delta(d, findings) for d in e.deltas))
            for e in result.entries
        ),
    )


def _moved_delta(delta: DeltaResult, findings: Callable[[tuple[Finding, ...]], tuple[Finding, ...]]) -> DeltaResult:
    proposal = delta.proposal
    if proposal is not None:
        carrier = Finding("PK501", "", Severity.NOTE, manifest=proposal.where)
        where = findings((carrier,))[0].manifest
        proposal = replace(proposal, where=where or proposal.where)
    return replace(delta, reasons=findings(delta.reasons), proposal=proposal)


def lines_text(lines: tuple[int, int]) -> str:
    """`12`, `12-15`, or `-` for unknown lines."""
    first, last = lines
    if not first:
        return "-"
    return str(first) if first == last else f"{first}-{last}"


def place_text(place: Position | None) -> str | None:
    """The place as text."""
    return str(place) if place else None
