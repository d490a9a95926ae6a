"""Generate the modules of a run, in this process or in workers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from afd_patchkit.assemble.memo import Memo
from afd_patchkit.assemble.module import ModuleMaker
from afd_patchkit.assemble.result import ModuleResult, record
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Manifest, Pins
from afd_patchkit.project import Project
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.options import RunOptions
from afd_patchkit.run.pins import Opener
from afd_patchkit.source.deep import deep
from afd_patchkit.source.locate import parse_reference
from afd_patchkit.upstream.options import SourceOptions

_PARALLEL_FROM = 400  # entries; below, starting workers costs more than they save


def generate_modules(
    project: Project,
    workspace: Workspace,
    manifests: Sequence[Manifest],
    opener: Opener,
    options: RunOptions,
) -> list[ModuleResult]:
    """Generate modules into memory; user errors become findings of failed results.

    Args:
        project: what they belong to.
        workspace: the upstreams.
        manifests: what to generate.
        opener: what opened the upstreams.
        options: of the run; a full one generates also the entries that an earlier run generated from the same inputs, and
            proves each in a second way.
    """
    prefetch(workspace, manifests, opener)
    progress = options.progress
    if progress:
        progress.start(len(manifests))
    entries = sum(1 for m in manifests for _ in m.all_entries())
    count = options.jobs or (2 if entries >= _PARALLEL_FROM else 1)
    results: list[ModuleResult] = []
    gc.freeze()  # modules and models of the tool itself
    try:
        for result in _results(
            project, workspace, manifests, opener, min(count, len(manifests) or 1), full=options.full
        ):
            results.append(result)
            # What a module leaves behind (parsed files) lives until the end of the run. Scanning it again in every
            # collection would make the cost per entry grow with their number.
            gc.collect(1)
            gc.freeze()
            if progress:
                progress.advance(1)
    finally:
        gc.unfreeze()
        if progress:
            progress.done()
    return results


def _results(
    project: Project, workspace: Workspace, manifests: Sequence[Manifest], opener: Opener, jobs: int, *, full: bool
) -> Iterator[ModuleResult]:
    if jobs == 1:
        memo = Memo(opener.options.store, workspace, fresh=full)
        for manifest in manifests:
            yield make_module(project, workspace, manifest, memo, prove=full)
        return
    from concurrent.futures import ProcessPoolExecutor  # slow to import, and rarely needed

    options = replace(opener.options, progress=None)
    arguments = (project, workspace.pins, options, opener.lock, full)
    with ProcessPoolExecutor(jobs, initializer=_start_worker, initargs=arguments) as pool:
        yield from pool.map(_work, [m.path for m in manifests], chunksize=max(1, len(manifests) // (jobs * 8)))


_worker: Callable[[str], ModuleResult] | None = None


def _start_worker(project: Project, pins: Pins, options: SourceOptions, lock: Lock | None, full: bool) -> None:
    global _worker  # noqa: PLW0603 - the state of one worker process
    manifests = {m.path: m for m in load_manifests(project).manifests}
    workspace = Workspace(pins, Opener(options, lock, pins))
    memo = Memo(options.store, workspace, fresh=full)
    _worker = lambda path: make_module(project, workspace, manifests[path], memo, prove=full)  # noqa: E731


def _work(path: str) -> ModuleResult:
    assert _worker is not None
    return _worker(path)


def maker_of(project: Project, workspace: Workspace, manifest: Manifest) -> ModuleMaker:
    """What generates one module of a project."""
    return ModuleMaker(
        manifest,
        workspace,
        package=project.package,
        marker=project.marker,
        folder=(project.root / manifest.path).parent,
        root=project.root,
    )


def make_module(
    project: Project, workspace: Workspace, manifest: Manifest, memo: Memo | None = None, *, prove: bool = False
) -> ModuleResult:
    """Generate one module, and prove it in a second way if asked to; user errors become findings of a failed result.

    Args:
        project: the project.
        workspace: pins and opened upstreams.
        manifest: the module's manifest.
        memo: what earlier runs kept; None looks at nothing kept.
        prove: prove each entry in the second way, too.
    """
    try:
        with deep(manifest.module, manifest=manifest.where):
            return record(maker_of(project, workspace, manifest).make(memo, prove=prove))
    except PatchkitError as error:
        return ModuleResult(manifest.module, manifest.path, findings=error.findings, failed=True)


def prefetch(workspace: Workspace, manifests: Sequence[Manifest], opener: Opener) -> None:
    """Read all files that entries name in few requests; what else is needed comes one by one."""
    wanted: dict[str, set[str]] = {}
    for manifest in manifests:
        for entry, _ in manifest.all_entries():
            pin = entry.pin or manifest.pin
            if entry.symbol is not None and pin is not None:
                wanted.setdefault(pin, set()).add(parse_reference(entry.symbol.text)[0])
    store = opener.options.store
    for pin, modules in wanted.items():
        known = (opener.known(pin) or {}).get("files", {})
        locked = {_module_of(path) for path in known}
        if modules <= locked and all(store.has_blob(f"sha256:{file['raw']}") for file in known.values()):
            continue  # nothing to fetch
        try:
            upstream = opener(pin, workspace.pins.pins[pin])
            upstream.read_many(sorted((modules | locked) & set(upstream.modules())))
        except PatchkitError:
            continue  # the entry that needs it reports it, with its place


def _module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
