"""One project against other releases: both sides generated in memory, every entry classified."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from afd_patchkit.assemble.entry import symbol_of
from afd_patchkit.assemble.module import Attempt, Retired
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import DeltaError, PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.report import Progress
from afd_patchkit.manifest.load import Loaded, load_manifests
from afd_patchkit.model import Entry, Manifest, Pin, Pins
from afd_patchkit.names.aliases import Alias, Scanner
from afd_patchkit.project import Project
from afd_patchkit.references.texts import OwnText
from afd_patchkit.run import lock as locks
from afd_patchkit.run.compare import stale_inputs
from afd_patchkit.run.installs import install_problems
from afd_patchkit.run.lock import current_inputs
from afd_patchkit.run.modules import maker_of, prefetch
from afd_patchkit.run.pins import Opener, by_hand, overridden, renamed
from afd_patchkit.source.deep import deep
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upgrade.classify import Subject, classify, missing, moved, takes
from afd_patchkit.upgrade.dropped import Sides, doubts
from afd_patchkit.upgrade.leanings import Leanings, changed_contracts, leanings, new_problems, new_remarks
from afd_patchkit.upgrade.moved import Release, search
from afd_patchkit.upgrade.partners import drifted_partners, needs_retired_module
from afd_patchkit.upgrade.result import AliasChange, EntryResult, UpgradeResult
from afd_patchkit.upgrade.retire import deletions, remarks, retire_result, staying
from afd_patchkit.upstream.options import SourceOptions


@dataclass(frozen=True)
class Side:
    """A workspace and what its entries were generated to.

    Attributes:
        workspace: pins and upstreams.
        attempts: by reference.
        retired: by reference.
        problems: findings about whole modules.
        needing: findings about entries that depend on a retired one.
        broken: modules that are unusable as a whole.
        gates: findings about the assembled modules, by the entry that causes them.
        leant: what their own code refers to.
        doubtful: by entry, removal conditions of which nobody can say whether they hold.
    """

    workspace: Workspace
    attempts: Mapping[str, Attempt]
    retired: Mapping[str, Retired]
    problems: tuple[Finding, ...] = ()
    needing: tuple[Finding, ...] = ()
    broken: frozenset[str] = frozenset()
    gates: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    leant: Leanings = field(default_factory=Leanings)
    doubtful: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)

    def has_text(self, name: str) -> bool:
        """Whether the release of pin `name` could be read."""
        errors = [f for a in self.attempts.values() if a.error is not None for f in a.error.findings]
        assert isinstance(self.workspace.open, Opener)
        unread = any(f.group == "unavailable" for f in (*self.problems, *errors))
        return not unread and (name in self.workspace.open.opened or not self.attempts)


class Upgrader:
    """A project whose base is generated once, to be compared with any number of releases.

    Raises:
        PatchkitError: settings, manifests or lock are unusable.
    """

    def __init__(self, project: Project, options: SourceOptions | None = None) -> None:
        self.project, self.options = project, options or SourceOptions()
        self.lock = locks.load(project.lock, project.shown(project.lock))
        locks.check_entries(self.lock, project.shown(project.lock))
        loaded = load_manifests(project)
        self.lock = renamed(self.lock, loaded.pins)
        # the base is what the lock was made from, also when somebody moved a pin in pins.yaml since
        locked = by_hand(loaded.pins, self.lock)
        self.by_hand = {name: loaded.pins.pins[name] for name in locked}
        pins = loaded.pins.model_copy(update={"pins": {**loaded.pins.pins, **locked}})
        self.loaded: Loaded = replace(loaded, pins=pins)
        self._bases: dict[str, Side] = {}
        self._stale = None
        if self.lock is not None:
            moved = {project.shown(project.pins)} if self.by_hand else set()
            self._stale = [name for name in stale_inputs(self.lock, current_inputs(project)) if name not in moved]

    # ---- the two sides ------------------------------------------------------------------------------------------

    def base(self, name: str) -> Side:
        """What the pins give; without attempts where the old release of pin `name` is not at hand."""
        if name not in self._bases:
            opener = Opener(
                self._options(name, self.loaded.pins.pins[name].identity, base=True), self.lock, self.loaded.pins
            )
            self._bases[name] = self._side(Workspace(self.loaded.pins, opener), self.loaded.manifests, name)
        return self._bases[name]

    def _options(self, name: str, version: str, *, base: bool) -> SourceOptions:
        """An explicit source `NAME@VERSION` is for that release; a plain `NAME` is for the one the pin moves to."""
        given = self.options.sources
        if not any(key.partition("@")[0] == name for key in given):
            return self.options
        sources = {key: path for key, path in given.items() if key.partition("@")[0] != name}
        chosen = given.get(f"{name}@{version}", None if base else given.get(name))
        if chosen is not None:
            sources[name] = chosen
        return replace(self.options, sources=sources)

    def _side(self, workspace: Workspace, manifests: tuple[Manifest, ...], pin: str, *, prove: bool = False) -> Side:
        assert isinstance(workspace.open, Opener)
        prefetch(workspace, manifests, workspace.open)
        attempts: dict[str, Attempt] = {}
        retired: dict[str, Retired] = {}
        problems: list[Finding] = []
        needing: list[Finding] = []
        broken = set()
        drafts: dict[str, tuple[OwnText, Sequence[str]]] = {}
        superfluous: list[str] = []
        doubtful: dict[str, tuple[Finding, ...]] = {}
        gates: dict[str, tuple[Finding, ...]] = {}
        for manifest in manifests:
            maker = maker_of(self.project, workspace, manifest)
            try:
                found, gone = maker.attempts()
            except PatchkitError as error:
                problems += error.findings
                broken.add(manifest.module)
                continue
            attempts |= {a.ref: a for a in found}
            doubtful |= maker.doubtful
            retired |= {r.ref: r for r in gone}
            if found:
                drafts[manifest.module] = maker.draft(found), [part.path for part in maker.parts.values()]
            else:
                superfluous.append(maker.dotted)
            if prove:
                needing += maker.needs_retired(found, gone)
                if not any(a.error for a in found):
                    try:
                        maker.assembled(found, gone)
                    except PatchkitError as error:
                        for item in error.findings:
                            if item.entry is None:
                                problems.append(item)
                            else:
                                gates[item.entry] = (*gates.get(item.entry, ()), item)
        if prove:
            texts = {module: own for module, (own, _) in drafts.items()}
            for ref, item in install_problems(workspace, manifests, texts, retired, workspace.open.options.store):
                if ref in attempts and attempts[ref].error is not None:
                    continue
                if ref in attempts:
                    gates[ref] = (*gates.get(ref, ()), item.at(entry=ref))
                else:
                    problems.append(item)
        leant = leanings(self.project, workspace, manifests, drafts, superfluous, workspace.open.options.sources)
        problems += leant.problems.get("", ())
        return Side(
            workspace,
            attempts,
            retired,
            tuple(dict.fromkeys(problems)),
            tuple(needing),
            frozenset(broken),
            gates,
            leant,
            doubtful,
        )

    def _moved(self, overrides: Mapping[str, str]) -> tuple[Pins, dict[str, str]]:
        """The pins with the overrides; a pin that is to go where pins.yaml has moved it becomes what that says."""
        pins = self.loaded.pins.pins
        for name, pin in self.by_hand.items():
            names = {name, pins[name].distribution} if pins[name].role == "target" else {name}
            if len(overrides) == 1 and overrides.items() <= {(n, pin.identity) for n in names}:
                return self.loaded.pins.model_copy(update={"pins": {**pins, name: pin}}), {name: pin.identity}
        return overridden(self.loaded.pins, overrides)

    # ---- one release --------------------------------------------------------------------------------------------

    def to(self, overrides: Mapping[str, str], progress: Progress | None = None) -> UpgradeResult:
        """Compare with one other release.

        Args:
            overrides: one pin or distribution, and its version or commit.
            progress: told about entries.
        """
        started = time.monotonic()
        try:
            with deep("upstream or of a manifest"):
                result = self._to(overrides, progress)
        except PatchkitError as error:
            name, version = next(iter(overrides.items()), ("", ""))
            result = UpgradeResult(name, name, "", version, findings=error.findings)
        return replace(result, seconds=time.monotonic() - started)

    def _to(self, overrides: Mapping[str, str], progress: Progress | None) -> UpgradeResult:
        from afd_patchkit.upgrade.plan import check_target, the_pin

        pins, changed = self._moved(overrides)
        name, old, new = the_pin(self.loaded.pins, pins, changed, overrides)
        result = UpgradeResult(name, new.distribution, old.identity, new.identity)
        # where a person has moved the pin, to whatever release, and mended manifests with it, it is judged as it stands
        mine = new is self.by_hand.get(name)
        findings = [] if mine else list(check_target(name, old, new, self.project, self.lock, self._stale))
        if old == new:
            return replace(result, findings=tuple(findings))
        opener = Opener(self._options(name, new.identity, base=False), self.lock, pins)
        workspace = Workspace(pins, opener)
        findings += [note.on_upgrade() for note in workspace.upstream(name).notes]  # type: ignore[attr-defined]
        base = self.base(name)
        assert isinstance(base.workspace.open, Opener)
        opener.opened |= {n: u for n, u in base.workspace.open.opened.items() if n != name}
        here = self._side(workspace, self.loaded.manifests, name, prove=True)
        release = Release(workspace.upstream(name))
        entries: list[EntryResult] = []
        total = sum(1 for m in self.loaded.manifests for _ in m.all_entries())
        if progress:
            progress.start(total)
        for manifest in self.loaded.manifests:
            for result_ in self._entries(manifest, name, new, base, here, release, available=base.has_text(name)):
                entries.append(result_)
                if progress:
                    progress.advance(1)
        if progress:
            progress.done()
        available = base.has_text(name)
        if not available:
            findings.append(_from_digests(name, old))
        findings += _module_problems(here, base, entries)
        entries = drifted_partners(entries, self.loaded.manifests)
        entries = needs_retired_module(entries, self.loaded.manifests, here.retired, here.needing, self.project.package)
        return replace(
            result,
            entries=tuple(entries),
            retired_modules=tuple(
                m.module
                for m in self.loaded.manifests
                if not any(ref.startswith(m.module + "::") for ref in here.attempts) and m.module not in here.broken
            ),
            stays=tuple(staying(entries, self.loaded.manifests)),
            remarks=tuple(remarks(here.retired.values())),
            deletions=tuple(deletions(here.retired.values())),
            aliases=self._aliases(name, new, base, workspace) if available else (),
            findings=tuple(dict.fromkeys(findings)),
            base_available=available,
        )

    def write(self, result: UpgradeResult, overrides: Mapping[str, str], files: Mapping[str, bytes]) -> UpgradeResult:
        """Move the pin, with other input files that change with it.

        Raises:
            PatchkitError: it cannot be written; nothing was changed.
        """
        from afd_patchkit.upgrade.write import new_pins, write

        pins, _ = self._moved(overrides)
        pin = pins.pins[result.pin]
        opener = Opener(self._options(result.pin, pin.identity, base=False), self.lock, pins)
        inputs = {self.project.shown(self.project.pins): new_pins(self.project, result.pin, pin), **files}
        written, problems = write(self.project, self.lock, pins, self.loaded.manifests, opener, inputs)
        return replace(result, written=tuple(written), findings=(*result.findings, *problems))

    # ---- entries ------------------------------------------------------------------------------------------------

    def _entries(
        self, manifest: Manifest, name: str, pin: Pin, base: Side, here: Side, release: Release, *, available: bool
    ) -> Iterator[EntryResult]:
        maker = maker_of(self.project, here.workspace, manifest)
        sides = Sides(base.workspace.targets() if available else None, here.workspace.targets(), release)
        for ref, entry in manifest.by_ref().items():
            if ref in here.retired:
                known = ref in base.retired  # its condition held at the pin already: `regen` says so
                why = [] if known else [f.at(entry=ref) for f in doubts(maker.conditions(entry), sides)]
                yield retire_result(here.retired[ref], "donor" if pin.role == "donor" else "target", why)
                continue
            new = here.attempts.get(ref)
            if new is None:
                continue  # the module as a whole is unusable; its findings say why
            yield self._entry(manifest, entry, ref, new, name, pin, base, here, release)

    def _entry(
        self,
        manifest: Manifest,
        entry: Entry,
        ref: str,
        new: Attempt,
        name: str,
        pin: Pin,
        base: Side,
        here: Side,
        release: Release,
    ) -> EntryResult:
        own = entry.pin or manifest.pin
        before = base.attempts.get(ref)
        old = before.generated if before is not None else None
        record = self._record(manifest, ref, before)
        locked = self._locked(manifest, ref).get("references", {})
        compared = base.leant if before is not None else None
        warned = frozenset((self.lock or {}).get("warnings", ()))
        gates = tuple(f for f in here.gates.get(ref, ()) if f not in base.gates.get(ref, ()))
        subject = Subject(
            ref=ref,
            entry=entry,
            axis="donor" if pin.role == "donor" else "target",
            touched=own == name
            or (entry.kind == "owned")
            or any(t.startswith(f"{name} ") for d in entry.deltas for t in takes(d)),
            record=record,
            old=old,
            new=new,
            symbol=None,
            base=old.symbol if old is not None else None,
            read_old=base.workspace.read if old is not None else None,
            read_new=here.workspace.read,
            version=pin.identity,
            gates=(*gates, *new_problems(here.leant, compared, locked, ref)),
            leanings=(
                *changed_contracts(here.leant, compared, locked, ref),
                *new_remarks(here.leant, compared, warned, ref),
                *here.doubtful.get(ref, ()),
            ),
            warnings=warned,
        )
        if entry.kind == "owned" or entry.symbol is None:
            return classify(subject)
        if not record:
            return _unknown(subject, before)
        assert own is not None
        try:
            symbol = symbol_of(entry, here.workspace.upstream(own))
        except PatchkitError as error:
            if error.findings[0].group == "gone":
                return self._gone(subject, manifest, error, here, release)
            deltas = ()
            return EntryResult(
                ref, entry.kind, subject.symbol_text, subject.symbol_text, subject.axis, "conflict", error.findings,
                upstream_changed="cannot be read", must_do="see the findings", deltas=deltas,
            )  # fmt: skip
        try:
            with deep(ref, entry=ref, manifest=entry.where):
                return classify(replace(subject, symbol=symbol))
        except DeltaError as error:
            return EntryResult(
                ref, entry.kind, subject.symbol_text, subject.symbol_text, subject.axis, "conflict", error.findings,
                upstream_changed="not known", must_do="see the findings",
            )  # fmt: skip

    def _aliases(self, name: str, pin: Pin, base: Side, workspace: Workspace) -> tuple[AliasChange, ...]:
        """Modules that started or stopped to hold a function or class of a module that our entries replace."""
        packages = pin.import_packages
        symbols = dict.fromkeys(
            e.symbol.text
            for m in self.loaded.manifests
            for e, _ in m.all_entries()
            if e.symbol is not None and e.alias is None and e.kind in ("copy", "delegate") and (e.pin or m.pin) == name
        )
        held = [
            (module, symbol)
            for module, _, symbol in (text.partition(":") for text in symbols)
            if "." not in symbol  # of a member the class is imported, and that stays
            and any(f"{module}.".startswith(f"{package}.") for package in packages)
        ]
        if pin.role != "target" or not held:
            return ()
        try:
            sides = [Scanner([(w.upstream(name), packages)], self.options.store) for w in (base.workspace, workspace)]
        except PatchkitError:
            return ()
        changes = []
        for module, symbol in held:
            old, new = (side.aliases(module, symbol) for side in sides)
            if old.problems or new.problems:
                return ()  # files that are not in the cache, offline: a section that is missing, not a run that fails
            changes.append(alias_change(old.symbol, old.found, new.found))
        return tuple(change for change in changes if change.added or change.removed)

    def _record(self, manifest: Manifest, ref: str, before: Attempt | None) -> Mapping[str, Any]:
        """The lock's record at the base: computed when the old text is at hand, else from the lock."""
        from afd_patchkit.assemble.record import entry_record

        if before is not None and before.generated is not None:
            return entry_record(before.generated)
        if before is not None and before.error is not None and not isinstance(before.error, UpstreamError):
            return {}
        return self._locked(manifest, ref)

    def _locked(self, manifest: Manifest, ref: str) -> Mapping[str, Any]:
        """The lock's record of an entry; empty when it has none."""
        module = (self.lock or {}).get("modules", {}).get(manifest.module, {})
        found: Mapping[str, Any] = module.get("entries", {}).get(ref.partition("::")[2], {})
        return found

    def _gone(
        self, subject: Subject, manifest: Manifest, error: PatchkitError, here: Side, release: Release
    ) -> EntryResult:
        found = search(subject.record, subject.base, release)
        if found.same is None or subject.entry.alias is not None:  # the module holds the name no more, wherever that is
            return missing(subject, error, found.successors)
        there = self._at(subject.entry, manifest, found.same, subject.ref, here)
        if there is None:
            return missing(subject, error, found.successors)
        result = classify(replace(subject, new=there, symbol=found.same))
        return moved(result, subject.entry, found.same)

    def _at(self, entry: Entry, manifest: Manifest, symbol: Symbol, ref: str, here: Side) -> Attempt | None:
        """The entry, generated from another symbol."""
        changed = with_symbol(manifest, entry, symbol.reference)
        attempts, _ = maker_of(self.project, here.workspace, changed).attempts()
        return next((a for a in attempts if a.ref == ref), None)


def alias_change(symbol: str, old: Iterable[Alias], new: Iterable[Alias]) -> AliasChange:
    """What came and went among the aliases that keep the object they found at import."""
    before, after = ({(a.module, a.name, a.kind): a.place for a in side if a.static} for side in (old, new))
    return AliasChange(
        symbol,
        tuple(place for key, place in after.items() if key not in before),
        tuple(place for key, place in before.items() if key not in after),
    )


def with_symbol(manifest: Manifest, entry: Entry, reference: str) -> Manifest:
    """The manifest with another symbol in one entry, which keeps its name."""
    assert entry.symbol is not None
    new = entry.model_copy(
        update={"symbol": replace(entry.symbol, text=reference), "name": entry.generated_name, "branch": None}
    )
    items = []
    for item in manifest.entries:
        if item is entry:
            items.append(new)
        elif not isinstance(item, Entry):
            members = tuple(new if m is entry else m for m in item.class_.members)
            items.append(item.model_copy(update={"class_": item.class_.model_copy(update={"members": members})}))  # type: ignore[arg-type]
        else:
            items.append(item)
    return manifest.model_copy(update={"entries": tuple(items)})


def _from_digests(name: str, pin: Pin) -> Finding:
    return finding(
        "PK655",
        f"{pin.distribution} {pin.version} (pin {name}) is not at hand: decided from the lock's digests, old text is not shown",
        help="With the old release in reach, the report shows what upstream changed.",
    )


def _unknown(subject: Subject, before: Attempt | None) -> EntryResult:
    """The entry is not in the lock, and cannot be generated at the pin."""
    reasons = before.error.findings if before is not None and before.error is not None else ()
    reason = finding(
        "PK505",
        f"{subject.ref} has no base to compare with: the lock does not know it, or it does not apply at the pin",
        entry=subject.ref,
        manifest=subject.entry.where,
        help="Run `afd-patchkit regen` at the pinned version first.",
    )
    return EntryResult(
        subject.ref, subject.entry.kind, subject.symbol_text, subject.symbol_text, subject.axis, "conflict", (reason, *reasons),
        upstream_changed="not known", must_do="run `afd-patchkit regen` first",
    )  # fmt: skip


def _module_problems(here: Side, base: Side, entries: list[EntryResult]) -> list[Finding]:
    """Findings about whole modules that no entry carries, new ones only."""
    said = {f for e in entries for f in e.reasons}
    return [f for f in here.problems if f not in said and f not in base.problems]


__all__ = ["Position", "Side", "Upgrader", "with_symbol"]
