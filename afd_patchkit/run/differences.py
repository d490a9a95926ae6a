"""What a run would change: the new lock against the old one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.project import Project
from afd_patchkit.run.compare import check_files, stale_inputs
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.ownership import module_path
from afd_patchkit.version import __version__


def differences(
    project: Project,
    lock: Lock | None,
    new: Lock,
    inputs: Mapping[str, str],
    results: Sequence[ModuleResult],
    modules: Sequence[str],
    explained: Collection[str] = (),
) -> list[Finding]:
    """What `regen` would change, and what on disk is not what the lock says.

    Args:
        project: the project.
        lock: the lock on disk; None when there is none.
        new: the lock that `regen` would write.
        inputs: path to digest of every input file now.
        results: the modules that were generated.
        modules: those that were asked for; all when empty.
        explained: moved pins that another finding is about: what differs for their sake is not said again.
    """
    shown = project.shown(project.lock)
    if lock is None:
        return [
            finding(
                "PK106", "there is no lock", generated=Position(shown), help="Run `afd-patchkit regen` and commit it."
            )
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
        mine = {result.manifest, *after.get("parts", ())}.intersection(stale)
        if before is not None and not mine and not before["files"].keys().isdisjoint(explained):
            continue
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
    covered = any(f.group == "outdated" for f in found)
    failed = any(r.failed for r in results)
    other = lock.get("overrides", {}) != new.get("overrides", {})
    if (differing or stale or other) and not (covered or explained or failed or modules):
        what = f"pins {', '.join(sorted(differing))} differ" if differing else f"{', '.join(stale)} changed"
        what = what if differing or stale else "it is of a run with other versions than the pinned ones"
        found.append(
            finding(
                "PK108", f"the lock is out of date: {what}", generated=Position(shown), help="Run `afd-patchkit regen`."
            )
        )
    return found


def _stale(
    project: Project,
    result: ModuleResult,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    stale: Sequence[str],
) -> Finding:
    if before is None:
        return finding(
            "PK101",
            f"{result.module} is not in the lock",
            manifest=Position(result.manifest),
            help="Run `afd-patchkit regen`.",
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


def status_of(lock: Lock | None, result: ModuleResult, *, touched: bool) -> str:
    """Status of a module in a `check`; `touched` says that its file is not what the lock says."""
    if result.failed:
        return "failed"
    if result.wholly_retired:
        return "retired"
    before = (lock or {}).get("modules", {}).get(result.module, {})
    return "unchanged" if before.get("sha256") == result.lock.get("sha256") and not touched else "differs"
