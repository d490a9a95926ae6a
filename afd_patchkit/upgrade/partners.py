"""Entries that are reviewed together, and entries that need what is retired."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from afd_patchkit.assemble.module import Retired, module_name
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Entry, Manifest
from afd_patchkit.upgrade.classify import must_do, worst
from afd_patchkit.upgrade.result import EntryResult


def _all(manifests: Sequence[Manifest]) -> Iterator[tuple[str, Entry, Manifest]]:
    for manifest in manifests:
        for ref, entry in manifest.by_ref().items():
            yield ref, entry, manifest


def _links(manifests: Sequence[Manifest]) -> set[tuple[str, str]]:
    """Pairs of references that one of them links by `depends_on`."""
    links = set()
    known = {ref for ref, _, _ in _all(manifests)}
    for ref, entry, manifest in _all(manifests):
        for name in entry.depends_on:
            other = name if "::" in name else f"{manifest.module}::{name}"
            if other in known:
                links |= {(ref, other), (other, ref)}
    return links


def drifted_partners(entries: Sequence[EntryResult], manifests: Sequence[Manifest]) -> list[EntryResult]:
    """Both ends of a `depends_on` are flagged when upstream changed one of them."""
    links = _links(manifests)
    drifted = {e.ref for e in entries if e.status not in ("unchanged", "retire")}
    places = {ref: entry.where for ref, entry, _ in _all(manifests)}
    out = []
    for result in entries:
        partners = sorted(other for ref, other in links if ref == result.ref)
        moved = [p for p in partners if p in drifted]
        if result.status == "retire" or not (moved or (partners and result.ref in drifted)):
            out.append(result)
            continue
        names = ", ".join(p.partition("::")[2] for p in (moved or partners))
        text = (
            f"upstream changed {names}, which this entry depends on"
            if moved
            else f"upstream changed it, and {names} is linked to it"
        )
        reason = finding(
            "PK537",
            text,
            entry=result.ref,
            manifest=places[result.ref],
            help="Entries linked by `depends_on` are reviewed together: read both.",
        )
        changed = replace(result, status=worst([result.status, "review"]), reasons=(*result.reasons, reason))
        out.append(replace(changed, must_do=must_do(changed)))
    return out


def needs_retired_module(
    entries: Sequence[EntryResult],
    manifests: Sequence[Manifest],
    retired: Mapping[str, Retired],
    needing: Sequence[Finding],
    package: str,
) -> list[EntryResult]:
    """Live entries that need a retired one, by `depends_on` or by an import of their module, are conflicts.

    Args:
        entries: what became of each entry.
        manifests: all manifests.
        retired: the entries that retire, by `module.py::name`.
        needing: findings about entries that depend on a retired one.
        package: name of the generated package.
    """
    gone = _gone_names(manifests, retired, package)
    reasons: dict[str, list[Finding]] = {}
    for item in needing:
        reasons.setdefault(item.entry or "", []).append(item)
    for ref, _, manifest in _all(manifests):
        for code in manifest.imports:
            for module, name in _imported(code.text):
                if (module, name) in gone or (module, None) in gone:
                    reasons.setdefault(ref, []).append(
                        finding(
                            "PK541",
                            f"its module imports {name} from {module}, which is retired on this target",
                            entry=ref,
                            manifest=code.position,
                            help="Give both the same removal condition, or import upstream's own.",
                        )
                    )
    out = []
    for result in entries:
        more = reasons.get(result.ref, []) if result.status != "retire" else []
        if more:
            changed = replace(
                result,
                status=worst([result.status, "conflict"]),
                reasons=tuple(dict.fromkeys((*result.reasons, *more))),
            )
            changed = replace(changed, must_do="give it the same removal condition, or make it stand alone")
            out.append(changed)
        else:
            out.append(result)
    return out


def _gone_names(
    manifests: Sequence[Manifest], retired: Mapping[str, Retired], package: str
) -> set[tuple[str, str | None]]:
    """Dotted module and name of everything that is not generated any more; name None for whole modules."""
    gone: set[tuple[str, str | None]] = set()
    for manifest in manifests:
        dotted = module_name(package, manifest.module)
        refs = [ref for ref, _, m in _all([manifest]) if m is manifest]
        if refs and all(ref in retired for ref in refs):
            gone.add((dotted, None))
        gone |= {(dotted, ref.partition("::")[2].partition(".")[0]) for ref in refs if ref in retired}
    return gone


def _imported(text: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, a.name) for a in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.name, a.name) for a in node.names)
