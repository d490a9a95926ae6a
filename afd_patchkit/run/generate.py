"""The slow half of `regen` and `check`: generate every module into memory, then write or compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, Severity, finding
from afd_patchkit.findings.report import ModuleReport, Progress, Report
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Manifest
from afd_patchkit.project import Project
from afd_patchkit.run.compare import check_files, locked_report, module_path, outline_path, stale_inputs
from afd_patchkit.run.differences import differences, status_of
from afd_patchkit.run.lock import ENGINE, Lock
from afd_patchkit.run.locking import build_lock, partly
from afd_patchkit.run.modules import generate_modules
from afd_patchkit.run.pins import Opener, overridden
from afd_patchkit.run.writing import touched, write_generated
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.version import __version__


def generate_all(
    project: Project,
    lock: Lock | None,
    inputs: Mapping[str, str],
    *,
    overrides: Mapping[str, str],
    check: bool,
    modules: Sequence[str],
    options: SourceOptions | None,
    full: bool,
    jobs: int | None,
    progress: Progress | None,
) -> Report:
    """Generate into memory; write unless `check` or an error says no.

    A module whose inputs and files are what the lock says is kept as it is, unless `full`.

    Raises:
        PatchkitError: pins, manifests or lock are unusable as a whole.
    """
    loaded = load_manifests(project)
    pins, moved = overridden(loaded.pins, overrides)
    chosen = _chosen(loaded.manifests, modules)
    opener = Opener(options or SourceOptions(), lock, pins)
    workspace = Workspace(pins, opener)
    kept: dict[str, Any] = {}
    if lock is not None and not full and not moved and not modules:
        kept = _proved(project, lock, inputs, chosen)
    results = generate_modules(project, workspace, [m for m in chosen if m.module not in kept], opener, jobs, progress, full=full)
    findings = [f for result in results for f in result.findings]
    if lock is not None and modules:
        kept = {name: found for name, found in lock["modules"].items() if name not in {r.module for r in results}}
        inputs = partly(lock, inputs, results)
    new = build_lock(kept, lock, inputs, pins, results, opener, moved)
    findings += _other_tool(project, lock)
    failed = any(r.failed for r in results)
    changed = _unsettled(project, opener.options, moved) if moved and lock is not None else []
    findings += changed
    pin_reports = opener.reports()
    if check:
        findings += differences(project, lock, new, inputs, results, modules)
        edited = {f.generated.file for f in findings if f.generated is not None}
        paths = {r.module: project.shown(module_path(project, r.module)) for r in results}
        status = {r.module: status_of(lock, r, touched=paths[r.module] in edited) for r in results}
        return Report(_unique(findings), _all_reports(kept if not modules else {}, results, status), pin_reports)
    if failed or any(f.exit_code for f in changed) or any(f.severity is Severity.ERROR for f in findings):
        findings += _hand_edits(project, lock, results)
        return Report(_unique(findings), _all_reports(kept if not modules else {}, results, {}), pin_reports)
    written, removed = write_generated(project, new, results)
    status = {r.module: "written" if touched(project, r, written) else "unchanged" for r in results}
    reports = _all_reports(kept if not modules else {}, results, status)
    return Report(_unique(findings), reports, pin_reports, tuple(written), tuple(removed))


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


def _unique(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))


def _hand_edits(project: Project, lock: Lock | None, results: Sequence[ModuleResult]) -> list[Finding]:
    """When nothing can be written, say at least what else is wrong."""
    return [f for f in check_files(project, lock) if f.code == "PK102"] if lock else []


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
                finding("PK092", f"no module is named {wanted}", help=f"Modules: {', '.join(m.module for m in manifests)}.")
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


def _unsettled(project: Project, options: SourceOptions, moved: Mapping[str, str]) -> list[Finding]:
    """With other versions than the pinned ones: what that means for each entry; errors keep code from being written."""
    # they import this module
    from afd_patchkit.queries.settled import settled
    from afd_patchkit.upgrade.upgrading import upgrades

    found: list[Finding] = []
    for pin, version in moved.items():
        (result,) = upgrades(project, [{pin: version}], options=options)
        found += settled(result, pin, version)
    return found


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
            entries=r.entries,
            deltas=r.deltas,
            upstream_lines=r.upstream_lines,
            verbatim_lines=r.verbatim_lines,
            lines=r.text.count("\n"),
            files=sum(len(files) for files in r.files.values()),
            retired=r.retired,
        )
        for r in results
    )
