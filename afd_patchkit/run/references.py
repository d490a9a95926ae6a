"""References of all modules of a run: judged against the pins, and put into what the lock keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from afd_patchkit.assemble.memo import Memo
from afd_patchkit.assemble.module import module_name
from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.report import ReferenceCounts
from afd_patchkit.model import Manifest
from afd_patchkit.project import Project
from afd_patchkit.references.judge import Judgement, Places, judge
from afd_patchkit.references.overrides import unfit_callers
from afd_patchkit.references.patched import uses_of_patched
from afd_patchkit.references.texts import Catalogue, OwnText
from afd_patchkit.references.world import World
from afd_patchkit.run.modules import make_module
from afd_patchkit.run.ownership import module_path
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

UpstreamOf = Callable[[str], Upstream | None]


def judged_packages(workspace: Workspace, manifests: Iterable[Manifest], sources: Iterable[str]) -> UpstreamOf:
    """Gives the target of an import package: of pins that entries come from, or run on, and of those that the user names a source of.

    Others are not judged, so that a lock says the same wherever it is made; all are where no entry says a pin.

    Raises of what is given:
        UpstreamError: a pin that only owned code runs on cannot be had.
    """
    pins = workspace.pins.pins
    entries = [(e.kind, e.pin or m.pin) for m in manifests for e, _ in m.all_entries()]
    read = {pins[pin].distribution for kind, pin in entries if kind != "owned" and pin in pins}
    used = {pin for _, pin in entries if pin is not None} or set(pins)
    named = {source.partition("@")[0] for source in sources}
    distributions = {pins[name].distribution for name in used | named if name in pins}
    targets = {
        package: name
        for name, pin in pins.items()
        if pin.role == "target" and pin.distribution in distributions
        for package in pin.import_packages
    }
    found: dict[str, Upstream | None] = {}

    def upstream_of(module: str) -> Upstream | None:
        parts = module.split(".")
        names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
        package = next((name for name in names if name in targets), None)
        if package is None:
            return None
        if package not in found:
            found[package] = None
            try:
                upstream = workspace.upstream(targets[package])
                upstream.modules()
                found[package] = upstream
            except PatchkitError:
                if pins[targets[package]].distribution not in read:
                    raise  # else an entry that needs it has said so
        return found.get(package)

    return upstream_of


def judged(
    project: Project,
    workspace: Workspace,
    manifests: Sequence[Manifest],
    results: Sequence[ModuleResult],
    sources: Iterable[str],
    memo: Memo,
) -> tuple[list[ModuleResult], ReferenceCounts]:
    """The results with findings about their references, and with these in what the lock keeps; and how much could be told.

    Args:
        project: the project.
        workspace: the upstreams.
        manifests: all manifests of the project.
        results: what was generated now.
        sources: pins that the user names a source of.
        memo: entries that earlier runs generated.
    """
    total = ReferenceCounts()
    if not any(r.own for r in results):
        return list(results), total
    gone = frozenset(module_name(project.package, r.module) for r in results if r.wholly_retired)
    others = [m for m in manifests if module_name(project.package, m.module) not in gone]
    texts = own_texts(
        project, others, [r.own for r in results if r.own is not None], partial(_made, project, workspace, memo)
    )
    catalogue = Catalogue.of(manifests, partial(module_name, project.package))
    upstream_of = judged_packages(workspace, manifests, sources)
    described = {m.module: m for m in manifests}
    out: list[ModuleResult] = []
    for result in results:
        if result.own is None:
            out.append(result)
            continue
        world = World(result.own.module, texts, upstream_of, project.package, catalogue, gone)
        places = places_of(project, described[result.module], result.lock.get("parts", ()))
        judgement = judge(world, places)
        more = (*unfit_callers(world, places), *uses_of_patched(world, places))
        result = replace(result, findings=(*result.findings, *more))  # noqa: PLW2901
        total += judgement.counts
        out.append(_with(result, judgement, world.trees.seen))
    return out, total


def own_texts(
    project: Project,
    manifests: Sequence[Manifest],
    texts: Iterable[OwnText],
    make: Callable[[Manifest], OwnText | None],
) -> dict[str, OwnText]:
    """All modules of ours: those that were generated now, the others as they lie on the disk.

    Args:
        project: the project.
        manifests: of the modules that are not gone.
        texts: what was generated now.
        make: generates a module that lies on the disk, should it be asked which of its text is ours.
    """
    found = {text.module: text for text in texts}
    for manifest in manifests:
        name = module_name(project.package, manifest.module)
        if name not in found:
            try:
                text = module_path(project, manifest.module).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            found[name] = OwnText(name, text, (), (), (), partial(make, manifest))
    return found


def _made(project: Project, workspace: Workspace, memo: Memo, manifest: Manifest) -> OwnText | None:
    return make_module(project, workspace, manifest, memo).own


def places_of(project: Project, manifest: Manifest, parts: Iterable[str]) -> Places:
    """Where the code of a manifest stands."""
    texts: dict[str, str] = {}
    for path in parts:
        try:
            texts[path] = (project.root / path).read_text(encoding="utf-8").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError):
            continue
    return Places(manifest, texts, project.marker)


def _with(result: ModuleResult, judgement: Judgement, seen: Mapping[str, SourceFile]) -> ModuleResult:
    findings = [item for items in judgement.findings.values() for item in items]
    entries: dict[str, Any] = {name: dict(record) for name, record in result.lock.get("entries", {}).items()}
    for ref, recorded in judgement.recorded.items():
        entries[ref.partition("::")[2]]["references"] = dict(sorted(recorded.found.items()))
    excused = {"excused": dict(sorted(judgement.excused.items()))} if judgement.excused else {}
    files = {pin: dict(paths) for pin, paths in result.files.items()}
    for file in seen.values():
        files.setdefault(file.pin, {})[file.path] = (file.raw_sha256, file.sha256)
    return replace(
        result,
        lock={**result.lock, "entries": entries, **excused},
        files=files,
        findings=(*result.findings, *findings),
        failed=result.failed or bool(findings),
    )
