"""The slow half of `regen` and `check`: generate every module into memory, then write or compare."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from afd_patchkit import __version__
from afd_patchkit import lock as locks
from afd_patchkit.api import ENGINE, Progress, locked_report
from afd_patchkit.assemble.module import ModuleMaker
from afd_patchkit.assemble.record import ModuleResult, record
from afd_patchkit.assemble.workspace import Workspace, import_packages
from afd_patchkit.compare import check_files, module_path, outline_path, package_inits, stale_inputs
from afd_patchkit.errors import ManifestError, PatchkitError
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.manifest.model import Manifest, Pin, Pins
from afd_patchkit.project import Project
from afd_patchkit.report import ModuleReport, PinReport, Report
from afd_patchkit.review.finding import Finding, Position, Severity, finding
from afd_patchkit.source.locate import parse_reference
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.resolve import open_upstream, pin_report
from afd_patchkit.upstream.settings import SourceOptions
from afd_patchkit.upstream.verified import SourceUpstream

if TYPE_CHECKING:
    from afd_patchkit.lock import Lock

_PARALLEL_FROM = 400  # entries; below, starting workers costs more than they save


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
    results = generate_modules(project, workspace, [m for m in chosen if m.module not in kept], opener, jobs, progress)
    findings = [f for result in results for f in result.findings]
    if lock is not None and modules:
        kept = {name: found for name, found in lock["modules"].items() if name not in {r.module for r in results}}
        inputs = _partly(lock, inputs, results)
    new = build_lock(kept, lock, inputs, pins, results, opener, moved)
    findings += _other_tool(project, lock)
    failed = any(r.failed for r in results)
    changed = _unsettled(project, opener.options, moved) if moved and lock is not None else []
    findings += changed
    pin_reports = opener.reports()
    if check:
        findings += _compare(project, lock, new, inputs, results, modules)
        touched = {f.generated.file for f in findings if f.generated is not None}
        shown = project.shown
        status = {
            r.module: _status(lock, r, touched=shown(module_path(project, r.module)) in touched) for r in results
        }
        return Report(_unique(findings), _all_reports(kept if not modules else {}, results, status), pin_reports)
    if failed or changed or any(f.severity is Severity.ERROR for f in findings):
        findings += _hand_edits(project, lock, results)
        return Report(_unique(findings), _all_reports(kept if not modules else {}, results, {}), pin_reports)
    written, removed = write_generated(project, lock, new, results)
    status = {r.module: "written" if _touched(project, r, written) else "unchanged" for r in results}
    reports = _all_reports(kept if not modules else {}, results, status)
    return Report(_unique(findings), reports, pin_reports, tuple(written), tuple(removed))


def _proved(project: Project, lock: Lock, inputs: Mapping[str, str], manifests: Sequence[Manifest]) -> dict[str, Any]:
    """The lock's records of modules that digests prove unchanged: inputs, tool, files on disk; nothing to warn about."""
    stale = set(stale_inputs(lock, inputs))
    common = {"[settings]", project.shown(project.pins)}
    if lock.get("engine") != ENGINE or lock.get("tool") != __version__ or lock.get("overrides") or stale & common:
        return {}
    touched = {f.generated.file for f in check_files(project, lock, complete=True) if f.generated is not None}

    def proved(manifest: Manifest) -> bool:
        found = lock["modules"].get(manifest.module)
        if not found or found["warnings"] or found["manifest"] != manifest.path:
            return False
        files = {project.shown(path(project, manifest.module)) for path in (module_path, outline_path)}
        return not stale.intersection([manifest.path, *found["parts"]]) and not touched & files

    return {m.module: lock["modules"][m.module] for m in manifests if proved(m)}


def _unique(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys(findings))


def _hand_edits(project: Project, lock: Lock | None, results: Sequence[ModuleResult]) -> list[Finding]:
    """When nothing can be written, say at least what else is wrong."""
    return [f for f in check_files(project, lock) if f.code == "PK102"] if lock else []


# ---- what to generate from ----------------------------------------------------------------------------------------


def overridden(pins: Pins, overrides: Mapping[str, str]) -> tuple[Pins, dict[str, str]]:
    """The pins with other versions or commits; the second result names those that really moved.

    Raises:
        ManifestError: an override names no pin (PK091).
    """
    changed = dict(pins.pins)
    moved: dict[str, str] = {}
    for name, version in overrides.items():
        found = [n for n, p in pins.pins.items() if n == name and p.role == "target"] or [
            n for n, p in pins.pins.items() if p.distribution == name and p.role == "target"
        ] or [n for n in pins.pins if n == name]
        if not found:
            raise ManifestError(
                finding(
                    "PK091",
                    f"no pin or distribution is named {name}",
                    help=f"Pins: {', '.join(sorted(pins.pins))}.",
                )
            )
        pin = pins.pins[found[0]]
        new = _moved_pin(pin, version)
        if new != pin:
            changed[found[0]] = new
            moved[found[0]] = version
    return pins.model_copy(update={"pins": changed}), moved


def _moved_pin(pin: Pin, version: str) -> Pin:
    commit = len(version) == 40 and all(c in "0123456789abcdef" for c in version)
    if commit and pin.git is not None:
        if pin.git.commit == version:
            return pin
        return pin.model_copy(update={"git": pin.git.model_copy(update={"commit": version}), "commit": None})
    return pin if version == pin.version else pin.model_copy(update={"version": version, "commit": None, "git": None})


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


class Opener:
    """Opens each pin once, with what the lock knows of it."""

    def __init__(self, options: SourceOptions, lock: Lock | None, pins: Pins) -> None:
        self.options, self.lock, self.pins = options, lock, pins
        self.opened: dict[str, SourceUpstream] = {}

    def __call__(self, name: str, pin: Pin) -> SourceUpstream:
        """The upstream of a pin, opened when first asked for."""
        upstream = self.opened.get(name)
        if upstream is None:
            known = self.known(name)
            artifact = None
            files: dict[str, str] = {}
            if known is not None:
                files = {path: found["raw"] for path, found in known["files"].items()}
                if known["artifact"]["sha256"] and name not in self.options.sources:
                    artifact = Artifact(**known["artifact"])
            upstream = open_upstream(name, pin, self.options, locked=files, locked_artifact=artifact)
            self.opened[name] = upstream
        return upstream

    def known(self, name: str) -> Mapping[str, Any] | None:
        """The lock's record of the pin, if it is the same release."""
        record_ = (self.lock or {}).get("pins", {}).get(name)
        pin = self.pins.pins[name]
        if record_ and record_["version"] == pin.version and record_["distribution"] == pin.distribution:
            same_commit = record_.get("git") == (pin.git.commit if pin.git else None)
            return record_ if same_commit else None
        return None

    def reports(self) -> tuple[PinReport, ...]:
        """What each opened pin was read from."""
        return tuple(pin_report(self.opened[name]) for name in sorted(self.opened))


# ---- generation ---------------------------------------------------------------------------------------------------


def generate_modules(
    project: Project,
    workspace: Workspace,
    manifests: Sequence[Manifest],
    opener: Opener,
    jobs: int | None = 1,
    progress: Progress | None = None,
) -> list[ModuleResult]:
    """Generate modules into memory; user errors become findings of failed results."""
    prefetch(workspace, manifests, opener)
    if progress:
        progress.start(len(manifests))
    entries = sum(1 for m in manifests for _ in m.all_entries())
    count = jobs or (2 if entries >= _PARALLEL_FROM else 1)
    results: list[ModuleResult] = []
    try:
        for result in _results(project, workspace, manifests, opener, min(count, len(manifests) or 1)):
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
    project: Project, workspace: Workspace, manifests: Sequence[Manifest], opener: Opener, jobs: int
) -> Iterator[ModuleResult]:
    if jobs == 1:
        for manifest in manifests:
            yield make_module(project, workspace, manifest)
        return
    from concurrent.futures import ProcessPoolExecutor  # slow to import, and rarely needed

    options = replace(opener.options, progress=None)
    arguments = (project, workspace.pins, options, opener.lock)
    with ProcessPoolExecutor(jobs, initializer=_start_worker, initargs=arguments) as pool:
        yield from pool.map(_work, [m.path for m in manifests], chunksize=max(1, len(manifests) // (jobs * 8)))


_worker: Callable[[str], ModuleResult] | None = None


def _start_worker(project: Project, pins: Pins, options: SourceOptions, lock: Lock | None) -> None:
    global _worker  # noqa: PLW0603 - the state of one worker process
    manifests = {m.path: m for m in load_manifests(project).manifests}
    workspace = Workspace(pins, Opener(options, lock, pins))
    _worker = lambda path: make_module(project, workspace, manifests[path])  # noqa: E731


def _work(path: str) -> ModuleResult:
    assert _worker is not None
    return _worker(path)


def make_module(project: Project, workspace: Workspace, manifest: Manifest) -> ModuleResult:
    """Generate one module; user errors become findings of a failed result."""
    maker = ModuleMaker(
        manifest,
        workspace,
        package=project.package,
        marker=project.marker,
        folder=(project.root / manifest.path).parent,
        root=project.root,
    )
    try:
        return record(maker.make())
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
    for pin, modules in wanted.items():
        try:
            upstream = opener(pin, workspace.pins.pins[pin])
            known = (opener.known(pin) or {}).get("files", {})
            upstream.read_many(sorted((modules | {_module_of(path) for path in known}) & set(upstream.modules())))
        except PatchkitError:
            continue  # the entry that needs it reports it, with its place


def _module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# ---- the lock -------------------------------------------------------------------------------------------------


def build_lock(
    kept: Mapping[str, Any],
    old: Lock | None,
    inputs: Mapping[str, str],
    pins: Pins,
    results: Sequence[ModuleResult],
    opener: Opener,
    moved: Mapping[str, str],
) -> Lock:
    """The lock of this run.

    Args:
        kept: records of modules that were not generated now, from `old`.
        old: the lock before.
        inputs: digest of every input file.
        pins: the pins of this run.
        results: what was generated.
        opener: the upstreams that were opened.
        moved: pins at another version than the pinned one.
    """
    modules: dict[str, Any] = dict(kept)
    files: dict[str, dict[str, Any]] = {}
    for found in kept.values():
        for pin, paths in found["files"].items():
            known = (old or {})["pins"][pin]["files"]
            files.setdefault(pin, {}).update({path: known[path] for path in paths if path in known})
    for result in results:
        modules[result.module] = {**result.lock, **_module_facts(result)}
        for pin, used in result.files.items():
            for path, (raw, text) in used.items():
                files.setdefault(pin, {})[path] = {"raw": raw, "text": text}
    lock: Lock = {
        "schema": locks.SCHEMA,
        "tool": __version__,
        "engine": ENGINE,
        "inputs": dict(inputs),
        "pins": {name: _pin_record(name, pin, opener, files.get(name, {}), old) for name, pin in pins.pins.items()},
        "modules": modules,
        "warnings": sorted({code for found in modules.values() for code in found.get("warnings", ())}),
    }
    if moved:
        lock["overrides"] = dict(moved)
    return lock


def _module_facts(result: ModuleResult) -> dict[str, Any]:
    """What the lock says of a module beside its entries."""
    return {
        "counts": {
            "entries": result.entries,
            "deltas": result.deltas,
            "upstream_lines": result.upstream_lines,
            "verbatim_lines": result.verbatim_lines,
            "lines": result.text.count("\n"),
            "files": sum(len(files) for files in result.files.values()),
        },
        "files": {pin: sorted(files) for pin, files in result.files.items()},
        "warnings": sorted({f.code for f in result.findings if f.severity is Severity.WARNING}),
    }


def _partly(lock: Lock, inputs: Mapping[str, str], results: Sequence[ModuleResult]) -> dict[str, str]:
    """Input digests when only some modules were generated; those of the others stay as they were."""
    used = {result.manifest for result in results} | {p for r in results for p in r.lock.get("parts", ())}
    return {**lock["inputs"], **{name: digest for name, digest in inputs.items() if name in used}}


def _pin_record(name: str, pin: Pin, opener: Opener, files: Mapping[str, Any], old: Lock | None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "distribution": pin.distribution,
        "version": pin.version,
        "role": pin.role,
        "packages": list(import_packages(pin)),
        "files": dict(files),
        "artifact": {"source": "none", "file": "", "sha256": None},
    }
    if pin.commit:
        out["commit"] = pin.commit
    if pin.git:
        out["git"] = pin.git.commit
    known = opener.known(name)
    upstream = opener.opened.get(name)
    if upstream is not None:
        artifact = upstream.artifact
        out["artifact"] = {"source": artifact.source, "file": artifact.file, "sha256": artifact.sha256}
    if known is not None and known["artifact"]["sha256"]:
        # the same release, proved file by file on reading: its artifact stays the identity, whatever was read now
        out["artifact"] = dict(known["artifact"])
    return out


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
    """With other versions than the pinned ones: every entry that a person must look at before code is written for them."""
    from afd_patchkit.rebase.api import upgrades  # it imports this module

    found: list[Finding] = []
    for pin, version in moved.items():
        (result,) = upgrades(project, [{pin: version}], options=options)
        found += [f for f in result.findings if f.exit_code]
        found += [
            finding(
                "PK501",
                f"{entry.symbol} is not settled at {result.distribution} {version}: {entry.status}",
                entry=entry.ref,
                manifest=next((f.manifest for f in entry.reasons if f.manifest), None),
                details=tuple(line for line in (entry.upstream_changed, entry.must_do) if line),
                help=f"Nothing was written. `afd-patchkit upgrade --pin {pin}={version}` shows the change.",
            )
            for entry in result.entries
            if entry.blocks
        ]
    return found


# ---- compare and write ----------------------------------------------------------------------------------------


def _compare(
    project: Project,
    lock: Lock | None,
    new: Lock,
    inputs: Mapping[str, str],
    results: Sequence[ModuleResult],
    modules: Sequence[str],
) -> list[Finding]:
    shown = project.shown(project.lock)
    if lock is None:
        return [
            finding("PK106", "there is no lock", generated=Position(shown), help="Run `afd-patchkit regen` and commit it.")
        ]
    found = check_files(project, lock)
    if lock.get("tool") != new["tool"] or lock.get("engine") != new["engine"]:
        found.append(
            finding(
                "PK107",
                f"the lock was written by afd-patchkit {lock.get('tool')}, this is {__version__}",
                generated=Position(shown),
                help="Run `afd-patchkit regen` with the version that the project uses, and commit the lock.",
            )
        )
    stale = stale_inputs(lock, inputs)
    for result in results:
        if result.failed:
            continue
        before = lock["modules"].get(result.module)
        after = new["modules"][result.module]
        if before != after:
            found.append(_stale(project, result, before, after, stale))
    if not modules:
        found += [
            finding(
                "PK101",
                f"the lock has a module {name} that no manifest describes",
                generated=Position(shown),
                help="Run `afd-patchkit regen`.",
            )
            for name in sorted(set(lock["modules"]) - set(new["modules"]))
        ]
    differing = [name for name, pin in new["pins"].items() if lock["pins"].get(name) != pin]
    covered = {f.code for f in found} & {"PK101", "PK108"}
    failed = any(r.failed for r in results)
    if (differing or stale) and not covered and not failed and not modules:
        what = f"pins {', '.join(sorted(differing))} differ" if differing else f"{', '.join(stale)} changed"
        found.append(
            finding("PK108", f"the lock is out of date: {what}", generated=Position(shown), help="Run `afd-patchkit regen`.")
        )
    return found


def _stale(
    project: Project, result: ModuleResult, before: Mapping[str, Any] | None, after: Mapping[str, Any], stale: Sequence[str]
) -> Finding:
    if before is None:
        return finding(
            "PK101", f"{result.module} is not in the lock", manifest=Position(result.manifest), help="Run `afd-patchkit regen`."
        )
    old, new = before.get("entries", {}), after.get("entries", {})
    details = [f"entry {name}: new" for name in sorted(set(new) - set(old))]
    details += [f"entry {name}: gone" for name in sorted(set(old) - set(new))]
    for name in sorted(set(old) & set(new)):
        if old[name].get("sha256") != new[name].get("sha256"):
            details.append(f"entry {name}: upstream's {new[name].get('symbol')} differs from the lock")
        elif old[name].get("watch") != new[name].get("watch"):
            details.append(f"entry {name}: a watched upstream symbol changed")
        elif old[name] != new[name]:
            details.append(f"entry {name}: its generated text or records differ")
    if before.get("retired") != after.get("retired"):
        details.append("the retired entries differ")
    watched = any("watched" in d for d in details)
    mine = [name for name in stale if name == result.manifest or name in after.get("parts", ())]
    reason = f"{', '.join(mine)} changed" if mine else "it would be generated differently"
    return finding(
        "PK109" if watched and not mine else "PK101",
        f"{result.module} is out of date: {reason}",
        manifest=Position(result.manifest),
        generated=Position(project.shown(module_path(project, result.module))),
        details=tuple(details),
        help="Run `afd-patchkit regen` and commit lock and outlines.",
    )


def _status(lock: Lock | None, result: ModuleResult, *, touched: bool) -> str:
    if result.failed:
        return "failed"
    if result.wholly_retired:
        return "retired"
    before = (lock or {}).get("modules", {}).get(result.module, {})
    return "unchanged" if before.get("sha256") == result.lock.get("sha256") and not touched else "differs"


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


_INIT = b'"""Generated by afd-patchkit; do not edit."""\n'


def write_generated(
    project: Project,
    old: Lock | None,
    new: Lock,
    results: Sequence[ModuleResult],
    extra: Mapping[str, bytes] | None = None,
) -> tuple[list[str], list[str]]:
    """Write what changed, and `extra` files of the generated folder, in one step.

    Returns:
        the written and the removed paths, as the user would type them.
    """
    from afd_patchkit.store import exclusive, replace_files

    wanted: dict[str, bytes] = dict(extra or {})

    def put(path: Any, data: bytes) -> None:
        wanted[path.relative_to(project.generated).as_posix()] = data

    live = {name for name, found in new["modules"].items() if "sha256" in found}
    for result in results:
        if result.text:
            put(module_path(project, result.module), result.text.encode())
            put(outline_path(project, result.module), result.outline.encode())
    for path in package_inits(project, dict.fromkeys(live)):
        put(path, _INIT)
    put(project.lock, locks.dumps(new))
    with exclusive(project.generated):
        removed = _leftovers(project, live)
        changed = {name: data for name, data in wanted.items() if not _same(project, name, data)}
        if changed or removed:
            replace_files(project.generated, changed, removed)
    prefix = project.shown(project.generated)
    return [f"{prefix}/{name}" for name in sorted(changed)], [f"{prefix}/{name}" for name in sorted(removed)]


def _same(project: Project, name: str, data: bytes) -> bool:
    try:
        return (project.generated / name).read_bytes() == data
    except OSError:
        return False


def _leftovers(project: Project, live: set[str]) -> list[str]:
    """Generated files that no manifest generates any more."""
    from afd_patchkit.compare import _files

    package = project.generated / project.package
    keep = {module_path(project, n) for n in live} | set(package_inits(project, dict.fromkeys(live)))
    keep |= {outline_path(project, n) for n in live}
    found = [*_files(package, ".py"), *_files(project.generated / "outlines", ".outline")]
    return [p.relative_to(project.generated).as_posix() for p in found if p not in keep]


def _touched(project: Project, result: ModuleResult, written: Sequence[str]) -> bool:
    return project.shown(module_path(project, result.module)) in written
