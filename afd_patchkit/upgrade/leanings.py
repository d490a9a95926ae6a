"""What our own code refers to, on the new upstream: gone, called wrongly, or another contract than before."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from afd_patchkit.assemble.module import module_name
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Manifest
from afd_patchkit.project import Project
from afd_patchkit.references.contract import changes, members
from afd_patchkit.references.judge import Places, gone, missing_imports
from afd_patchkit.references.patched import uses_of_patched
from afd_patchkit.references.successors import successors
from afd_patchkit.references.texts import Catalogue, OwnText
from afd_patchkit.references.things import Missing
from afd_patchkit.references.world import Leaning, World
from afd_patchkit.run.references import judged_packages, places_of

_UNSEEN = "nothing in this release says what it is"


@dataclass(frozen=True)
class Leant:
    """One reference, what it is judged in, where its code stands, and whether it works there."""

    leaning: Leaning
    world: World
    places: Places
    works: bool


@dataclass
class Leanings:
    """The references of all modules on one side.

    Attributes:
        found: by entry.
        problems: by entry, what does not work there; "" for imports that no entry uses.
        remarks: what works, and may not be meant.
    """

    found: dict[str, list[Leant]] = field(default_factory=dict)
    problems: dict[str, list[Finding]] = field(default_factory=dict)
    remarks: list[Finding] = field(default_factory=list)


def leanings(
    project: Project,
    workspace: Workspace,
    manifests: Sequence[Manifest],
    drafts: Mapping[str, tuple[OwnText, Sequence[str]]],
    retired: Iterable[str],
    sources: Iterable[str],
) -> Leanings:
    """The references of the modules of one side.

    Args:
        project: the project.
        workspace: the upstreams of the side.
        manifests: all manifests.
        drafts: by path of a module, its text as far as it could be generated, and the paths of its parts.
        retired: dotted names of modules that the side makes superfluous.
        sources: pins that the user names a source of.
    """
    out = Leanings()
    texts = {text.module: text for text, _ in drafts.values()}
    catalogue = Catalogue.of(manifests, partial(module_name, project.package))
    upstream_of = judged_packages(workspace, manifests, sources)
    superfluous = frozenset(retired)
    for manifest in manifests:
        if manifest.module not in drafts:
            continue
        text, parts = drafts[manifest.module]
        world = World(text.module, texts, upstream_of, project.package, catalogue, superfluous)
        places = places_of(project, manifest, parts)
        for bound, item in missing_imports(world, places):
            for ref in _users(text, bound) or [""]:
                _say(out, ref, replace(item, entry=ref or None))
        out.remarks += uses_of_patched(world, places)
        for leaning in world.leanings():
            problem = gone(world, leaning, places)
            out.found.setdefault(leaning.piece.ref, []).append(Leant(leaning, world, places, problem is None))
            if problem is not None:
                _say(out, leaning.piece.ref, problem)
    return out


def _say(out: Leanings, ref: str, item: Finding) -> None:
    known = out.problems.setdefault(ref, [])
    placed = item.on_upgrade()
    if placed not in known:
        known.append(placed)


def _users(text: OwnText, bound: str) -> list[str]:
    """The entries in whose text a name stands."""
    data = text.text.encode()
    starts = [piece.start for piece in text.pieces] + [len(data)]
    word = re.compile(rb"\b" + re.escape(bound.encode()) + rb"\b")
    return [
        p.ref for p, start, end in zip(text.pieces, starts, starts[1:], strict=False) if word.search(data, start, end)
    ]


def new_remarks(here: Leanings, base: Leanings | None, warned: Collection[str], ref: str) -> tuple[Finding, ...]:
    """Remarks about an entry that the base has not; without its text those of kinds that the lock has no warning of.

    Args:
        here: the new side.
        base: the old one; None when its text is not at hand.
        warned: codes of warnings that the base had.
        ref: the entry.
    """
    known = {_said(f) for f in base.remarks} if base is not None else set()
    mine = [f for f in here.remarks if f.entry == ref and _said(f) not in known]
    return tuple(f for f in mine if base is not None or f.code not in warned)


def new_problems(here: Leanings, base: Leanings | None, locked: Mapping[str, Any], ref: str) -> tuple[Finding, ...]:
    """What does not work on the new upstream and did at the base, with likely successors.

    Args:
        here: the new side.
        base: the old one; None when its text is not at hand.
        locked: the references of the entry as the lock has them.
        ref: the entry.
    """
    before = {_said(f) for f in base.problems.get(ref, ())} if base is not None else set()
    out = []
    for item in here.problems.get(ref, ()):
        if _said(item) not in before:
            near = _successors(here, ref, item, {**locked, **_contracts(base, ref)})
            details = dict.fromkeys((*(f"likely successor: {n}" for n in near), *item.details))
            out.append(replace(item, details=tuple(details)))
    return tuple(out)


def _said(item: Finding) -> tuple[str, str]:
    return item.code, item.message


def _successors(here: Leanings, ref: str, item: Finding, known: Mapping[str, Any]) -> list[str]:
    """Definitions of the new tree that are what the missing one was, but for the name."""
    for one in here.found.get(ref, ()):
        thing = one.leaning.reference.thing
        old = known.get(one.leaning.reference.key)
        if isinstance(thing, Missing) and old is not None and f"`{thing.name}`" in item.message:
            return successors(one.world, old["contract"])
    return []


def _contracts(base: Leanings | None, ref: str) -> dict[str, Any]:
    """The references of an entry at the base, as the lock would have them."""
    out: dict[str, Any] = {}
    for one in base.found.get(ref, ()) if base is not None else ():
        thing = one.leaning.reference.thing
        made = one.world.contract(thing)
        if made is not None and one.leaning.ours and one.world.follows_upstream(thing):
            out[one.leaning.reference.key] = {"contract": made.data, "text": made.text}
    return out


def changed_contracts(
    here: Leanings, base: Leanings | None, locked: Mapping[str, Any], ref: str
) -> tuple[Finding, ...]:
    """Reviews: what an entry's own code relies on has another contract now, or is not to be seen any more.

    Args:
        here: what our own code relies on, on the new release.
        base: the same at the pin; None when the old upstream is not at hand.
        locked: the lock's references of the entry.
        ref: the entry.
    """
    said: dict[str, Finding] = {}
    named = {one.leaning.reference.key for one in here.found.get(ref, ()) if one.leaning.ours}
    for one, old in _pairs(here, base, locked, ref):
        reference = one.leaning.reference
        made = one.world.contract(reference.thing) if one.world.follows_upstream(reference.thing) else None
        if not one.works or (made is None and (one.world.is_entry(old.key) or here.problems.get(ref))):
            continue  # said as an error, or what is an error keeps it from being seen
        words = [_UNSEEN] if made is None else changes(old.contract, made.data, [reference.used])
        if made is not None and named >= {f"{old.key}.{name}" for name in old.contract.get("members", ())}:
            words += [w for w in members(old.contract, made.data) if w not in words]
        if not words:
            continue
        delta, at = one.places.of(one.leaning)
        earlier = said.get(old.key)
        if earlier is not None:
            words = [w for w in words if w not in earlier.message]
            if words:
                said[old.key] = replace(earlier, message=f"{earlier.message}; {'; '.join(words)}")
            continue
        near = successors(one.world, old.contract) if made is None else []
        said[old.key] = finding(
            "PK550",
            f"{old.key}, which our own code relies on, changed: {'; '.join(words)}",
            entry=ref,
            delta=delta,
            manifest=at,
            details=(
                *(f"likely successor: {n}" for n in near),
                f"was: {old.text}",
                *([f"now: {made.text}"] if made is not None else []),
            ),
            help="Does our code still mean what it says? Then accept; else change it.",
        )
    return tuple(said.values())


@dataclass(frozen=True)
class _Before:
    """What a reference led to at the pin."""

    key: str
    contract: Mapping[str, Any]
    text: str = "see the old release; the lock has its digest only"


def _pairs(
    here: Leanings, base: Leanings | None, locked: Mapping[str, Any], ref: str
) -> Iterator[tuple[Leant, _Before]]:
    """Each reference of our own code with what it led to at the pin, where that was known.

    Our own text is the same on both sides, so its references correspond in their order; from the lock they are known by what they
    led to.
    """
    ours = [one for one in here.found.get(ref, ()) if one.leaning.ours]
    known = {key: _Before(key, found["contract"]) for key, found in locked.items()}
    before: dict[tuple[str, str, int], _Before] = {}
    for name, one in _numbered(o for o in (base.found.get(ref, ()) if base is not None else ()) if o.leaning.ours):
        thing, key = one.leaning.reference.thing, one.leaning.reference.key
        made = one.world.contract(thing)
        if made is not None and one.world.follows_upstream(thing):
            before[name] = known[key] = _Before(key, made.data, made.text)
    for name, one in _numbered(ours):
        old = before.get(name) or known.get(one.leaning.reference.key)
        if old is not None:
            yield one, old


def _numbered(found: Iterable[Leant]) -> Iterator[tuple[tuple[str, str, int], Leant]]:
    """References by how they are written, the same ones numbered."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        reference = one.leaning.reference
        name = (ast.dump(reference.node), reference.used)
        counts[name] += 1
        yield (*name, counts[name]), one
