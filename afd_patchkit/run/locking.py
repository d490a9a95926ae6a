"""The lock of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Severity
from afd_patchkit.model import Pin, Pins
from afd_patchkit.names import elsewhere
from afd_patchkit.run import lock as locks
from afd_patchkit.run.licences import licence_digests
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.pins import Opener
from afd_patchkit.version import ENGINE, __version__


def build_lock(
    kept: Mapping[str, Any],
    old: Lock | None,
    inputs: Mapping[str, str],
    pins: Pins,
    results: Sequence[ModuleResult],
    opener: Opener,
    moved: Mapping[str, str],
    *,
    full: bool = False,
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
        full: whether what the lock knows of licence files is read again.
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
    if not any(result.failed for result in results):
        licences = {name: licence_digests(name, opener, full=full) for name in files}
    else:
        licences = {name: (opener.known(name) or {}).get("licences", {}) for name in files}
    asked = {pin for found in modules.values() for pin in found.get("asks", ())}
    lock: Lock = {
        "schema": locks.SCHEMA,
        "tool": __version__,
        "engine": ENGINE,
        "inputs": dict(inputs),
        "pins": {
            name: {
                **_pin_record(name, pin, opener, files.get(name, {}), asked=name in asked),
                **({"licences": licences[name]} if name in licences else {}),
            }
            for name, pin in pins.pins.items()
        },
        "modules": modules,
        "warnings": sorted({code for found in modules.values() for code in found.get("warnings", ())}),
    }
    if moved:
        lock["overrides"] = dict(moved)
    return lock


def _module_facts(result: ModuleResult) -> dict[str, Any]:
    """What the lock says of a module beside its entries."""
    return {
        "counts": asdict(result.counts),
        "files": {pin: sorted(files) for pin, files in result.files.items()},
        "warnings": sorted({f.code for f in result.findings if f.severity is Severity.WARNING}),
    }


def partly(lock: Lock, inputs: Mapping[str, str], results: Sequence[ModuleResult]) -> dict[str, str]:
    """Input digests when only some modules were generated; those of the others stay as they were."""
    used = {result.manifest for result in results} | {p for r in results for p in r.lock.get("parts", ())}
    return {**lock["inputs"], **{name: digest for name, digest in inputs.items() if name in used}}


def _pin_record(name: str, pin: Pin, opener: Opener, files: Mapping[str, Any], *, asked: bool) -> dict[str, Any]:
    out: dict[str, Any] = {
        "distribution": pin.distribution,
        "version": pin.version,
        "role": pin.role,
        "packages": list(pin.import_packages),
        "files": dict(files),
        "artifact": {"source": "none", "file": "", "sha256": None},
    }
    if pin.commit:
        out["commit"] = pin.commit
    if pin.source_commit:
        out["git"] = pin.source_commit
    known = opener.known(name)
    upstream = opener.opened.get(name)
    if upstream is not None:
        artifact = upstream.artifact
        out["artifact"] = {"source": artifact.source, "file": artifact.file, "sha256": artifact.sha256}
    if asked and (names := _elsewhere(name, pin, opener)) is not None:
        out |= names
    if (
        known is not None
        and known["artifact"]["source"] != "none"
        and (pin.git is None or not known["artifact"]["sha256"])
    ):
        # the same release, proved file by file on reading: equal digests are equal, wherever they lie
        out["artifact"] = dict(known["artifact"])
    return out


def _elsewhere(name: str, pin: Pin, opener: Opener) -> Mapping[str, Any] | None:
    """What the modules of a pin do to each other; None where its files cannot be had."""
    known = opener.known(name) or {}
    if name not in opener.opened and known.keys() >= elsewhere.KEYS:
        return {key: known[key] for key in sorted(elsewhere.KEYS)}
    try:
        return elsewhere.told(
            opener(name, pin)
        )  # an entry that was kept, or a worker, asked; this process may not have
    except PatchkitError:  # an entry that needs it has said so
        return None
