"""Entries whose removal condition holds on the new target: what to delete, what stays and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from afd_patchkit.assemble.comments import describe_probes
from afd_patchkit.assemble.module import Retired
from afd_patchkit.digests import sha256
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Manifest
from afd_patchkit.upgrade.result import EntryResult


def retire_result(retired: Retired, axis: Literal["target", "donor"], doubts: Sequence[Finding] = ()) -> EntryResult:
    """The result of an entry that the new target makes superfluous, or perhaps does.

    Args:
        retired: the entry and its condition.
        axis: which kind of pin moves.
        doubts: why a person must say whether it does.
    """
    entry = retired.entry
    condition = describe_probes([retired.probe])
    symbol = entry.symbol.text if entry.symbol is not None else (entry.part or "?")
    reason = finding(
        "PK540",
        f"{retired.name} is superfluous on this target: {condition}",
        entry=retired.ref,
        manifest=entry.where,
        help="Delete the entry from the manifest once the pin has moved; it is not generated any more.",
    )
    must_do = "; ".join(filter(None, [f"delete the entry ({entry.where})", _remark(retired)]))
    result = EntryResult(
        retired.ref, entry.kind, symbol, symbol, axis, "retire", (reason,), upstream_changed=f"has it now: {condition}",
        must_do=must_do, superfluous=True,
    )  # fmt: skip
    if not doubts:
        return result
    said = "".join(f"{f.message}{f.details}" for f in doubts)
    return replace(
        result, status="review", reasons=tuple(doubts), upstream_changed=f"perhaps has it now: {condition}",
        must_do="read the reasons: delete or accept it when it is superfluous, else correct `remove_when`",
        base_digest=sha256(condition.encode())[:16], new_digest=sha256(said.encode())[:16],
    )  # fmt: skip


def deletions(retired: Iterable[Retired]) -> Iterator[str]:
    """What to delete, as `file:line: entry`."""
    for item in retired:
        yield f"{item.entry.where.file}:{item.entry.where.line}: {item.ref}"


def remarks(retired: Iterable[Retired]) -> Iterator[str]:
    """What the manifest says in `removal` of such an entry, as `entry: text`."""
    for item in retired:
        if item.entry.removal:
            yield f"{item.ref}: {_remark(item)}"


def _remark(item: Retired) -> str:
    return " ".join((item.entry.removal or "").split())


def staying(entries: Sequence[EntryResult], manifests: Sequence[Manifest]) -> Iterator[str]:
    """Entries that stay although others of their set (the folder of their module) retire, with the reason."""
    gone = {_folder(e.ref) for e in entries if e.status == "retire"}
    known = {
        manifest.ref(entry, group): (manifest, entry)
        for manifest in manifests
        for entry, group in manifest.all_entries()
    }
    for result in entries:
        if not result.superfluous and _folder(result.ref) in gone:
            manifest, entry = known[result.ref]
            probes = entry.remove_when or manifest.remove_when
            why = (
                f"its removal condition does not hold: {describe_probes(probes)}"
                if probes
                else "it has no removal condition"
            )
            yield f"{result.ref}: {why}. {' '.join(entry.reason.split())}"


def _folder(ref: str) -> str:
    module = ref.partition("::")[0]
    return module.rpartition("/")[0] or module
