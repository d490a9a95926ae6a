"""One entry of an upgrade: which axis moves, its status, what changed and what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from afd_patchkit.assemble.entry import GeneratedEntry
from afd_patchkit.assemble.module import Attempt
from afd_patchkit.assemble.record import entry_record, symbol_record, watch_digest
from afd_patchkit.delta.apply import Reader
from afd_patchkit.digests import short
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.manifest.nested import nested, takes_of
from afd_patchkit.model import Delta, Entry
from afd_patchkit.names.completions import WORDS, places
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upgrade.checks import early_exits, is_serious
from afd_patchkit.upgrade.deltas import EntryChange, Judged, judge
from afd_patchkit.upgrade.result import ORDER, DeltaResult, EntryResult, Status
from afd_patchkit.upgrade.sides import One
from afd_patchkit.upgrade.signatures import new_attributes, signature_findings
from afd_patchkit.upgrade.unset import unset_attributes

Axis = Literal["target", "donor"]


@dataclass(frozen=True)
class Subject:
    """One entry on both sides.

    Attributes:
        ref: `module.py::name`.
        entry: what the manifest says.
        axis: which kind of pin moves.
        touched: its own text comes from the pin that moves.
        record: the lock's record at the base; empty when there is none.
        old: what was generated at the base; None when the old upstream is not at hand.
        new: the attempt at the new upstream.
        symbol: the new symbol; None when it is gone (or for owned code).
        base: the old symbol.
        read_old: gives old files.
        read_new: gives new files.
        version: the version (or commit) the pin moves to.
        gates: errors of the assembled module that this entry causes, and what its own code refers to in vain.
        leanings: what its own code refers to, and what changed.
        warnings: codes of warnings that the base had.
    """

    ref: str
    entry: Entry
    axis: Axis
    touched: bool
    record: Mapping[str, Any]
    old: GeneratedEntry | None
    new: Attempt
    symbol: Symbol | None
    base: Symbol | None
    read_old: Reader | None
    read_new: Reader | None
    version: str
    gates: tuple[Finding, ...] = ()
    leanings: tuple[Finding, ...] = ()
    warnings: frozenset[str] = frozenset()

    @property
    def symbol_text(self) -> str:
        """`module:Qual.name`, or the part of owned code."""
        return self.entry.symbol.text if self.entry.symbol is not None else (self.entry.part or "?")


def worst(statuses: Sequence[Status]) -> Status:
    """The status that needs most attention."""
    return min(statuses, key=ORDER.index, default="unchanged")


def classify(subject: Subject) -> EntryResult:
    """Status of an entry whose symbol is there (or that has none)."""
    if subject.entry.kind == "owned":
        return _owned(subject)
    assert subject.symbol is not None
    change = EntryChange(
        subject.ref,
        subject.entry.deltas,
        subject.record,
        subject.base,
        subject.symbol,
        subject.read_old,
        subject.read_new,
    )
    judged = judge(change) if subject.entry.kind != "delegate" else Judged(())
    judged = _taken(subject, judged)
    reasons = [*judged.reasons]
    changed = not change.same_text
    if changed:
        reasons += signature_findings(subject.ref, subject.entry, subject.record, subject.base, subject.symbol)
    reasons += _unset(subject, change)
    reasons += _completed(subject)
    reasons += _watched(subject)
    reasons += _other_definition(subject)
    reasons += subject.leanings
    errors, gates = _gates(subject, judged)
    reasons += [f for f in (*errors, *gates) if f not in reasons]
    statuses: list[Status] = [d.status for d in judged.deltas]
    statuses.append("clean" if changed else "unchanged")
    if any(is_serious(f) for f in reasons):
        statuses.append("review")
    if errors:
        statuses.append("conflict")
    generated = subject.new.generated
    text = generated.body.text if generated is not None else judged.conflict
    result = EntryResult(
        ref=subject.ref,
        kind=subject.entry.kind,
        symbol=subject.symbol_text,
        new_symbol=subject.symbol.reference,
        axis=subject.axis,
        status=worst(statuses),
        reasons=tuple(dict.fromkeys(reasons)),
        upstream_changed=what_changed(change, subject) if changed else _nothing(subject),
        deltas=judged.deltas,
        base=subject.base.data.decode() if subject.base is not None else None,
        new=subject.symbol.data.decode(),
        file=subject.symbol.file.path,
        base_lines=subject.base.line_ranges if subject.base is not None else (),
        new_lines=subject.symbol.line_ranges,
        ours_old=subject.old.body.text if subject.old is not None else None,
        ours_new=text,
        other=judged.other,
        new_digest=new_digest(subject, subject.symbol),
        base_digest=base_digest(subject),
        attributes=new_attributes(subject.record, symbol_record(subject.symbol)) if changed else (),
    )
    return replace(result, must_do=must_do(result))


def new_digest(subject: Subject, symbol: Symbol | None) -> str:
    """What an acceptance is bound to: the new text, and where only the surroundings move, the release, too."""
    data = symbol.data if symbol is not None else b""
    if not subject.touched:
        data += subject.version.encode()
    data += "".join(f"{f.message}{f.details}" for f in subject.leanings).encode()
    if subject.entry.watch and subject.new.generated is not None:
        data += _watch_digest(_watch_now(subject)).encode()
    return short(data, 16)


def base_digest(subject: Subject) -> str:
    """Digest of what the entry was made from: its upstream text, or what owned code mirrors."""
    if subject.entry.kind == "owned":
        return short("".join(f"{k}{v}" for k, v in sorted(subject.record.get("watch", {}).items())), 16)
    return str(subject.record.get("sha256", ""))[:16]


def _nothing(subject: Subject) -> str:
    return "nothing" if subject.touched else "nothing (its text comes from another pin)"


def what_changed(change: EntryChange, subject: Subject) -> str:
    """The first column of the report."""
    assert subject.symbol is not None
    parts = []
    lines = change.lines
    if lines.plus or lines.minus:
        parts.append(f"text +{lines.plus}/-{lines.minus}")
    else:
        parts.append("layout only")
    old, now = subject.record, symbol_record(subject.symbol)
    if "signature" in old and "signature" in now:
        before, after = old.get("parameters", []), now["parameters"]
        parts += [f"parameter added: {n}" for n in after if n not in before]
        parts += [f"parameter removed: {n}" for n in before if n not in after]
        if before == after and old["signature"] != now["signature"]:
            parts.append("signature")
        if old.get("decorators") != now.get("decorators"):
            parts.append("decorators")
    if old["symbol"] != subject.symbol.reference:
        parts.append(f"moved to {subject.symbol.reference}")
    return "; ".join(parts)


def must_do(result: EntryResult) -> str:
    """The last column of the report."""
    if result.status in ("unchanged", "clean"):
        return "nothing"
    if result.status == "moved":
        return f"set `symbol: {result.new_symbol}`, or accept and write"
    if result.status == "missing":
        best = f"; most like it: {result.successors[0][0]}" if result.successors else ""
        return f"name its successor, or delete the entry{best}"
    if result.status == "retire":
        return "delete the entry from the manifest"
    names = [d.name for d in result.deltas if d.status == result.status]
    which = ", ".join(repr(n) for n in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if result.status == "absorbed":
        return f"delete {which}: upstream has it" if which else "delete the entry: upstream has it"
    if result.status == "conflict":
        proposed = any(d.proposal for d in result.deltas)
        return f"mend {which or 'the entry'}" + (", or accept the proposed anchor" if proposed else "")
    return f"read {which or 'the reasons'}, then mend or accept"


# ---- gates ------------------------------------------------------------------------------------------------------------


def _gates(subject: Subject, judged: Judged) -> tuple[list[Finding], list[Finding]]:
    """Errors that keep the entry from being generated, and warnings that are new."""
    if subject.new.error is not None:
        known = {f.code for d in judged.deltas for f in d.reasons} | {f.code for f in judged.reasons}
        failed = any(d.status in ("conflict", "absorbed") for d in judged.deltas)
        errors = [f for f in subject.new.error.findings if not (failed and f.family == "delta") and f.code not in known]
        return errors, []
    assert subject.new.generated is not None
    errors = list(subject.gates)
    if subject.old is not None:
        before = {_said(f) for f in subject.old.findings}
        return errors, [f for f in subject.new.generated.findings if is_serious(f) and _said(f) not in before]
    return errors, [f for f in subject.new.generated.findings if is_serious(f) and f.code not in subject.warnings]


def _said(item: Finding) -> tuple[str, str]:
    """What a finding says, whatever versions it names."""
    return item.code, re.sub(r"\b\d+(\.\d+)+\w*", "V", item.message)


def _completed(subject: Subject) -> list[Finding]:
    """What upstream does now elsewhere to a definition that is copied, and did not do before."""
    generated, symbol = subject.new.generated, subject.symbol
    if generated is None or symbol is None or subject.entry.kind == "delegate" or not subject.touched:
        return []
    known = [d for digests in subject.record.get("completed", {}).values() for d in digests]
    new = []
    for one in generated.completions:
        if one.digest in known:
            known.remove(one.digest)
        else:
            new.append(one)
    if not new:
        return []
    words = ", ".join(dict.fromkeys(WORDS[c.how] for c in new))
    return [
        finding(
            "PK554",
            f"upstream has a new statement elsewhere that {words}",
            entry=subject.ref,
            manifest=subject.entry.where,
            upstream=symbol.position,
            details=places(new),
            help="Does the copy need the same? Then add it; else accept.",
        )
    ]


def _unset(subject: Subject, change: EntryChange) -> list[Finding]:
    """Attributes that an early return of ours in a constructor leaves unset."""
    if change.new.name != "__init__" or not change.deltas:
        return []

    def unset(one: One) -> set[str]:
        return set(unset_attributes(one, [edit for node, edit in early_exits(one) if isinstance(node, ast.Return)]))

    now = unset(change.now(change.deltas))
    old = change.old(change.deltas)
    known = unset(old) if old is not None else (set() if not change.same_text else now)
    if not now:
        return []
    more = sorted(now - known)
    return [
        finding(
            "PK535" if more else "PK656",
            f"an early return leaves attributes unset that other methods read: {', '.join(more or sorted(now))}",
            entry=subject.ref,
            manifest=subject.entry.where,
            upstream=change.new.position,
            help="Set them before the early return, or make sure that these methods are not called.",
        )
    ]


# ---- taken text -------------------------------------------------------------------------------------------------------


def _taken(subject: Subject, judged: Judged) -> Judged:
    """Deltas that take text of a pin that moved."""
    new = subject.new.generated
    if new is None or new.applied is None:
        return judged
    before = subject.record.get("taken", {})
    after = entry_record(new).get("taken", {})
    changed = {key for key in after if before.get(key) != after[key]}
    if not changed:
        return judged
    results = []
    for delta, result in zip(subject.entry.deltas, judged.deltas, strict=True):
        names = sorted(changed & takes(delta))
        if not names:
            results.append(result)
            continue
        reason = finding(
            "PK524",
            f"the text that the delta takes changed: {', '.join(n.partition(' ')[2] for n in names)}",
            entry=subject.ref,
            delta=delta.name,
            manifest=delta.where,
            help="Read what the donor changed; it is taken as it is now.",
        )
        status = worst([result.status, "review"])
        results.append(replace(result, status=status, reasons=(*result.reasons, reason)))
    return replace(judged, deltas=tuple(results))


def takes(delta: Delta) -> set[str]:
    """`pin symbol` of everything that a delta takes."""
    return {f"{take.pin} {take.symbol.text}" for each in nested([delta]) for take in takes_of(each)}


# ---- owned code -------------------------------------------------------------------------------------------------------


def _owned(subject: Subject) -> EntryResult:
    before: Mapping[str, str] = subject.record.get("watch", {})
    result = EntryResult(
        subject.ref, "owned", subject.symbol_text, subject.symbol_text, subject.axis, "unchanged",
        upstream_changed="nothing",
        base_digest=base_digest(subject),
    )  # fmt: skip
    if subject.gates and subject.new.error is None:
        result = replace(
            result, status="conflict", reasons=subject.gates, upstream_changed="what our code calls or imports"
        )
        return replace(result, must_do="mend the code", new_digest=short(subject.version, 16))
    if subject.new.error is not None:
        gone = any(f.group == "gone" for f in subject.new.error.findings)
        status: Status = "missing" if gone else "conflict"
        result = replace(
            result, status=status, reasons=subject.new.error.findings, upstream_changed="a watched symbol is gone"
        )
        return replace(result, must_do="correct `watch`, and read what replaced the symbol")
    assert subject.new.generated is not None
    texts = {w.symbol.reference: w.symbol for w in subject.new.generated.watched}
    after = _watch_now(subject)
    changed = [ref for ref in after if before.get(ref) != after[ref]]
    moved = _watch_digest(after)
    if subject.leanings:
        moved = short((moved + "".join(f"{f.message}{f.details}" for f in subject.leanings)), 16)
    if not changed or not before:
        if subject.leanings:
            result = replace(
                result, status="review", reasons=subject.leanings, upstream_changed="what our code relies on"
            )
            return replace(result, must_do="read what changed there, then mend or accept", new_digest=moved)
        return replace(result, must_do="nothing", new_digest=moved)
    reasons = tuple(_watched(subject))
    old = {w.symbol.reference: w.symbol for w in subject.old.watched} if subject.old is not None else {}
    result = replace(
        result,
        status="review",
        reasons=(*reasons, *subject.leanings),
        upstream_changed=f"{', '.join(changed)} changed",
        base="\n\n".join(old[r].data.decode() for r in changed if r in old) or None,
        new="\n\n".join(texts[r].data.decode() for r in changed),
        new_digest=moved,
    )
    return replace(result, must_do="read what changed there, then mend or accept")


def _other_definition(subject: Subject) -> list[Finding]:
    """An alias that leads to another definition than before."""
    alias, was = subject.entry.alias, subject.record.get("symbol")
    assert subject.symbol is not None
    if alias is None or was in (None, subject.symbol.reference):
        return []
    return [
        finding(
            "PK550",
            f"{alias.text} is imported from elsewhere now",
            entry=subject.ref,
            manifest=alias.position,
            upstream=subject.symbol.position,
            details=(f"was: {was}", f"now: {subject.symbol.reference}"),
            help="Is it the same thing? Then accept it.",
        )
    ]


def _watch_now(subject: Subject) -> dict[str, str]:
    """Digests of what the entry mirrors, as it is now."""
    assert subject.new.generated is not None
    return {w.symbol.reference: watch_digest(w) for w in subject.new.generated.watched}


def _watch_digest(after: Mapping[str, str]) -> str:
    return short("".join(f"{k}{v}" for k, v in sorted(after.items())), 16)


def _watched(subject: Subject) -> list[Finding]:
    """What the entry mirrors and upstream changed."""
    before: Mapping[str, str] = subject.record.get("watch", {})
    if subject.new.generated is None or not before:
        return []
    after, places = _watch_now(subject), {code.text: code.position for code in subject.entry.watch}
    texts = {w.symbol.reference: w.symbol for w in subject.new.generated.watched}
    return [
        finding(
            "PK536",
            f"{ref}, which this code mirrors, changed upstream",
            entry=subject.ref,
            manifest=places.get(ref, subject.entry.where),
            upstream=texts[ref].position,
            help="Read the change; does our code have to follow?",
        )
        for ref in after
        if before.get(ref) != after[ref]
    ]


# ---- gone or elsewhere ------------------------------------------------------------------------------------------------


def missing(subject: Subject, error: PatchkitError, successors: tuple[tuple[str, float], ...]) -> EntryResult:
    """The result of an entry whose symbol the new release does not have, with likely successors."""
    item = error.findings[0]
    reason = finding(
        "PK538",
        f"{subject.symbol_text} is gone",
        entry=subject.ref,
        manifest=subject.entry.symbol.position if subject.entry.symbol else subject.entry.where,
        upstream=item.upstream,
        details=tuple(f"likely successor: {ref} ({value:.0%} alike)" for ref, value in successors),
        help="Name the successor in `symbol`, or delete the entry when upstream needs it no more.",
    )
    deltas = tuple(DeltaResult(d.name, "missing") for d in subject.entry.deltas)
    result = EntryResult(
        subject.ref, subject.entry.kind, subject.symbol_text, subject.symbol_text, subject.axis, "missing", (reason,),
        upstream_changed="gone",
        deltas=deltas,
        successors=successors,
        base=subject.base.data.decode() if subject.base is not None else None,
        ours_old=subject.old.body.text if subject.old is not None else None,
        new_digest=new_digest(subject, None),
        base_digest=base_digest(subject),
    )  # fmt: skip
    return replace(result, must_do=must_do(result))


def moved(result: EntryResult, entry: Entry, symbol: Symbol) -> EntryResult:
    """`result`, classified at the symbol's new place, as an entry that has moved."""
    assert entry.symbol is not None
    reason = finding(
        "PK539",
        f"{result.symbol} moved to {symbol.reference} with the same text",
        entry=result.ref,
        manifest=entry.symbol.position,
        upstream=symbol.position,
        help=f"Set `symbol: {symbol.reference}`; accepted, `upgrade --write` does it.",
    )
    status: Status = worst([result.status, "moved"])
    changed = replace(
        result, status=status, new_symbol=symbol.reference, reasons=(reason, *result.reasons),
        upstream_changed=f"moved to {symbol.reference}", named_at=entry.symbol.position,
    )  # fmt: skip
    return replace(changed, must_do=must_do(changed))


__all__ = ["Axis", "Subject", "classify", "missing", "moved", "worst"]
