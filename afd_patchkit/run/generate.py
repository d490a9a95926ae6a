"""The slow half of `regen` and `check`: generate every module into memory, then write or compare."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afd_patchkit.assemble.memo import Memo
from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, Severity, finding
from afd_patchkit.findings.report import ModuleReport, ReferenceCounts, Report
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Manifest
from afd_patchkit.project import Project
from afd_patchkit.run.compare import check_files, locked_report, stale_inputs
from afd_patchkit.run.dependents import dependents
from afd_patchkit.run.differences import differences, status_of
from afd_patchkit.run.installs import with_installs
from afd_patchkit.run.licences import licence_files
from afd_patchkit.run.lock import Lock, check_entries, load
from afd_patchkit.run.locking import build_lock, partly
from afd_patchkit.run.modules import generate_modules
from afd_patchkit.run.options import RunOptions
from afd_patchkit.run.ownership import module_path, outline_path
from afd_patchkit.run.pins import Opener, by_hand, overridden, renamed
from afd_patchkit.run.references import judged
from afd_patchkit.run.writing import touched, write_generated
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.version import ENGINE, __version__


@dataclass(frozen=True)
class Generated:
    """Every module of a run, in memory.

    Attributes:
        project: what they belong to.
        options: of the run.
        lock: the lock as it was, if there is one.
        new: the lock as it would be.
        inputs: digests of the input files.
        results: the modules that were generated.
        kept: the lock's records of those that were not.
        moved: the pins that are at another version than the pinned one.
        by_hand: the pins that pins.yaml has moved since the lock was written, with where to.
        findings: what is to be said whatever happens with the modules.
        opener: what opened the upstreams.
        references: what our own code refers to; None when not all of it was looked at.
    """

    project: Project
    options: RunOptions
    lock: Lock | None
    new: Lock
    inputs: Mapping[str, str]
    results: Sequence[ModuleResult]
    kept: Mapping[str, Any]
    moved: Mapping[str, str]
    by_hand: Mapping[str, str]
    findings: Sequence[Finding]
    opener: Opener
    references: ReferenceCounts | None

    @property
    def target(self) -> Project:
        """The project with the folder that the run is about: the tracked one is for the pinned versions only."""
        if self.options.into is not None:
            return self.project.at(_free(self.project, self.options.into))
        return self.project.at(self.project.beside(self.moved)) if self.moved else self.project

    def report(
        self,
        findings: Sequence[Finding],
        status: Mapping[str, str],
        written: Sequence[str] = (),
        removed: Sequence[str] = (),
    ) -> Report:
        """The report of the run, with each finding once.

        Args:
            findings: everything that was found.
            status: module to what became of it.
            written: paths that were written.
            removed: paths that were removed.
        """
        kept = {} if self.options.modules else self.kept
        modules = _all_reports(kept, self.results, status)
        return Report(
            tuple(dict.fromkeys(findings)),
            modules,
            self.opener.reports(),
            tuple(written),
            tuple(removed),
            references=self.references,
        )


def generate(project: Project, lock: Lock | None, inputs: Mapping[str, str], options: RunOptions) -> Generated:
    """Generate into memory. A module whose inputs and files are what the lock says is kept, unless a full run is wanted.

    Args:
        project: what to work on.
        lock: its lock, if there is one.
        inputs: digests of its input files.
        options: of the run.

    Raises:
        PatchkitError: pins, manifests or lock are unusable as a whole.
    """
    check_entries(lock, project.shown(project.lock))
    loaded = load_manifests(project)
    pins, moved = overridden(loaded.pins, options.overrides)
    chosen = _chosen(loaded.manifests, options.modules)
    opener = Opener(options.sources or SourceOptions(), lock, pins)
    workspace = Workspace(pins, opener)
    kept: dict[str, Any] = {}
    elsewhere = moved or options.into is not None
    for name in opener.options.sources:
        opener.compare(name)
    if lock is not None and not (options.full or elsewhere or options.modules):
        kept = _proved(project, lock, inputs, chosen)
    results = generate_modules(project, workspace, [m for m in chosen if m.module not in kept], opener, options)
    if lock is not None and kept:
        again = dependents(project, lock, kept, results, chosen)
        kept = {name: found for name, found in kept.items() if name not in again}
        results += generate_modules(project, workspace, [m for m in chosen if m.module in again], opener, options)
    if not moved:
        results = [result.pinned() for result in results]
    memo = Memo(opener.options.store, workspace)
    results, references = judged(project, workspace, loaded.manifests, results, opener.options.sources, memo)
    results = with_installs(workspace, loaded.manifests, results, opener.options.store)
    if lock is not None and options.modules and not elsewhere:
        kept = {name: found for name, found in lock["modules"].items() if name not in {r.module for r in results}}
        inputs = partly(lock, inputs, results)
    new = build_lock(kept, lock, inputs, pins, results, opener, moved, full=options.full)
    findings = [*(f for result in results for f in result.findings), *_other_tool(project, lock)]
    known = by_hand(loaded.pins, renamed(lock, loaded.pins))
    hands = {name: loaded.pins.pins[name].identity for name in known if name not in moved}
    counted = references if options.full and not options.modules else None
    return Generated(project, options, lock, new, inputs, results, kept, moved, hands, findings, opener, counted)


def checked(made: Generated, more: Sequence[Finding] = ()) -> Report:
    """What is to be said of a run, and what it would change; nothing is written."""
    project, lock = made.target, made.lock
    if project is not made.project:
        found = load(project.lock, project.shown(project.lock))
        project, lock = (made.project, lock) if found is None else (project, found)
    explained = made.by_hand if not made.moved and any(f.exit_code for f in more) else ()
    findings = [
        *made.findings,
        *more,
        *differences(project, lock, made.new, made.inputs, made.results, made.options.modules, explained),
    ]
    edited = {f.generated.file for f in findings if f.generated is not None}
    paths = {r.module: project.shown(module_path(project, r.module)) for r in made.results}
    return made.report(
        findings, {r.module: status_of(lock, r, touched=paths[r.module] in edited) for r in made.results}
    )


def written(made: Generated, more: Sequence[Finding] = ()) -> Report:
    """Write what a run has generated, unless something in it, or in the findings `more`, says no."""
    project = made.project
    findings = [*made.findings, *more]
    failed = any(r.failed for r in made.results)
    if failed or any(f.exit_code for f in more) or any(f.severity is Severity.ERROR for f in findings):
        # when nothing can be written, say at least what else is wrong
        edits = [f for f in check_files(project, made.lock) if f.group == "edited"] if made.lock else []
        return made.report([*findings, *edits], {})
    target = made.target
    old = made.lock if target is project else load(target.lock, target.shown(target.lock))
    licences = licence_files(target, made.new, made.opener)
    paths, removed = write_generated(target, old, made.new, made.results, licences)
    status = {r.module: "written" if touched(target, r, paths) else "unchanged" for r in made.results}
    return made.report(findings, status, paths, removed)


def _free(project: Project, folder: Path) -> Path:
    """`folder`, absolute, if nothing of the project's own is there.

    Raises:
        ManifestError: it is, holds or lies in the generated folder, the manifests' or git's (PK095).
    """
    path = Path(os.path.abspath(folder))
    real = path.resolve()
    taken = [project.generated.resolve(), project.manifests.resolve()]
    if ".git" in real.parts or any(real.is_relative_to(t) or t.is_relative_to(real) for t in taken):
        raise ManifestError(
            finding(
                "PK095",
                f"{project.shown(path)} cannot be generated into",
                help="Name a folder apart from the manifests and the generated folder.",
            )
        )
    return path


def _proved(project: Project, lock: Lock, inputs: Mapping[str, str], manifests: Sequence[Manifest]) -> dict[str, Any]:
    """The lock's records of modules that digests prove unchanged: inputs, tool, files on disk; nothing to warn about."""
    stale = set(stale_inputs(lock, inputs))
    common = {"[settings]", project.shown(project.pins)}
    if lock.get("engine") != ENGINE or lock.get("tool") != __version__ or lock.get("overrides") or stale & common:
        return {}
    edited = {f.generated.file for f in check_files(project, lock, complete=True) if f.generated is not None}

    def proved(manifest: Manifest) -> bool:
        found = lock["modules"].get(manifest.module)
        if not found or found["warnings"] or found["manifest"] != manifest.path:
            return False
        files = {project.shown(path(project, manifest.module)) for path in (module_path, outline_path)}
        return not stale.intersection([manifest.path, *found["parts"]]) and not edited & files

    return {m.module: lock["modules"][m.module] for m in manifests if proved(m)}


def _chosen(manifests: Sequence[Manifest], modules: Sequence[str]) -> list[Manifest]:
    """The manifests that the user named; all when none.

    Raises:
        ManifestError: a name fits no module (PK092).
    """
    if not modules:
        return list(manifests)
    chosen: list[Manifest] = []
    for wanted in modules:
        plain = wanted.removesuffix(".py").replace(".", "/")
        found = [
            m for m in manifests
            if m.module.removesuffix(".py") == plain
            or m.module.removesuffix(".py").endswith("/" + plain)
            or m.module.startswith(plain + "/")
            or m.path == wanted
        ]  # fmt: skip
        if not found:
            raise ManifestError(
                finding(
                    "PK092", f"no module is named {wanted}", help=f"Modules: {', '.join(m.module for m in manifests)}."
                )
            )
        chosen += [m for m in found if m not in chosen]
    return chosen


def _other_tool(project: Project, lock: Lock | None) -> list[Finding]:
    if lock is None or lock.get("engine", ENGINE) <= ENGINE:
        return []
    return [
        finding(
            "PK107",
            f"the lock was written by afd-patchkit {lock.get('tool')}, which is newer than this {__version__}",
            generated=Position(project.shown(project.lock)),
            help="Update afd-patchkit.",
        )
    ]


def _all_reports(
    kept: Mapping[str, Any], results: Sequence[ModuleResult], status: Mapping[str, str]
) -> tuple[ModuleReport, ...]:
    """One line per module, in order of their names' manifests."""
    unchanged = [locked_report(name, found) for name, found in kept.items()]
    return tuple(sorted([*unchanged, *_reports(results, status)], key=lambda r: r.module))


def _reports(results: Sequence[ModuleResult], status: Mapping[str, str]) -> tuple[ModuleReport, ...]:
    return tuple(
        ModuleReport(
            module=r.module,
            status="failed" if r.failed else "retired" if r.wholly_retired else status.get(r.module, "not written"),
            counts=r.counts,
            retired=r.retired,
        )
        for r in results
    )
