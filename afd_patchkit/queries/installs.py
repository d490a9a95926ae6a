"""What the generated package replaces in a process, as the lock has it: nothing is imported, and no upstream is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.project import Project
from afd_patchkit.run import lock as locks
from afd_patchkit.run.compare import stale_inputs


@dataclass(frozen=True)
class PlannedInstall:
    """One attribute that is replaced.

    Attributes:
        symbol: `package.module:Qual.name` of what is bound.
        replacement: of what it is bound to.
        mode: `process`, `scope` or `subclass`.
        gate: the release that it is bound on, as a requirement.
        original: the definition that must be in place.
        digests: of each of its functions the digest of its source.
        bound: the other names that upstream gives it, and that are bound, too.
        native: those that stay.
        everywhere: whatever else holds the object is bound, too.
    """

    symbol: str
    replacement: str
    mode: str
    gate: str
    original: str
    digests: tuple[str, ...]
    bound: tuple[str, ...]
    native: tuple[str, ...]
    everywhere: bool


@dataclass(frozen=True)
class InstallPlan:
    """What a generated package replaces.

    Attributes:
        package: the generated package.
        installs: in the order in which they are bound.
        stale: input files that are not what the lock was made from: the plan may be another one after `regen`.
    """

    package: str
    installs: tuple[PlannedInstall, ...]
    stale: tuple[str, ...] = ()


def install_plan(project: Project) -> InstallPlan:
    """The plan of `install()` and `scope()`.

    Raises:
        PatchkitError: there is no lock (PK106), or it cannot be used (PK105).
    """
    shown = project.shown(project.lock)
    lock = locks.load(project.lock, shown)
    if lock is None:
        raise PatchkitError(
            finding("PK106", "there is no lock", generated=Position(shown), help="Run `afd-patchkit regen` first.")
        )
    rows = tuple(
        _planned(project.package, name, record, lock["pins"])
        for name, module in lock["modules"].items()
        for record in module.get("installs", ())
    )
    return InstallPlan(project.package, rows, tuple(stale_inputs(lock, locks.current_inputs(project))))


def _planned(package: str, module: str, record: Mapping[str, Any], pins: Mapping[str, Any]) -> PlannedInstall:
    everywhere = record["aliases"] == "all"
    names: tuple[list[str], list[str]] = [], []
    for site, name in record["sites"]:
        stays = site in record["native"] or not (everywhere or site in record["aliases"])
        names[stays].append(f"{site}:{name}")
    pin = pins[record["pin"]]
    dotted = f"{package}.{module.removesuffix('.py').replace('/', '.')}"
    return PlannedInstall(
        symbol=record["symbol"],
        replacement=f"{dotted}:{record['with']}",
        mode=record["mode"],
        gate=f"{pin['distribution']}=={pin['version']}",
        original=record["original"],
        digests=tuple(digest for _, digest in record["parts"]),
        bound=tuple(names[0]) if record["mode"] != "subclass" else (),
        native=tuple(names[1]) if record["mode"] != "subclass" else (),
        everywhere=everywhere and record["mode"] != "subclass",
    )
