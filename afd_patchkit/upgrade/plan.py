"""What an upgrade moves, and whether that makes sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.version import InvalidVersion, Version

from afd_patchkit.digests import sha256
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Pin, Pins
from afd_patchkit.project import Project
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.pins import overridden
from afd_patchkit.upstream import releases
from afd_patchkit.upstream.options import SourceOptions


def the_pin(old: Pins, new: Pins, moved: Mapping[str, str], overrides: Mapping[str, str]) -> tuple[str, Pin, Pin]:
    """The one pin that moves: its name, before and after.

    Args:
        old: the pins as they are.
        new: the pins with the overrides.
        moved: the pins that the overrides change, with their version or commit.
        overrides: what the user asked for: pin or distribution to version or commit.

    Raises:
        ManifestError: not exactly one pin is named (PK095).
    """
    if len(overrides) != 1:
        raise ManifestError(
            finding("PK095", f"an upgrade moves one pin, not {len(overrides)}", help="Move them one after the other.")
        )
    if moved:
        name = next(iter(moved))
        return name, old.pins[name], new.pins[name]
    wanted = next(iter(overrides))
    name = (
        wanted
        if wanted in old.pins
        else next(n for n, p in old.pins.items() if p.distribution == wanted and p.role == "target")
    )
    return name, old.pins[name], old.pins[name]


def check_target(
    name: str, old: Pin, new: Pin, project: Project, lock: Lock | None, stale: Sequence[str] | None
) -> Iterator[Finding]:
    """Findings about the move itself: nothing to do, backwards, a lock that is not up to date.

    Args:
        name: the pin's name.
        old: the pin before.
        new: the pin afterwards.
        project: the project.
        lock: the lock on disk; None when there is none.
        stale: input files that changed since the lock; None when there is no lock.
    """
    pins = Position(project.shown(project.pins))
    if old == new:
        yield finding("PK650", f"pin {name} is at {old.distribution} {old.version} already", manifest=pins)
        return
    if new.version != old.version and _older(new.version, old.version):
        yield finding(
            "PK503",
            f"{new.distribution} {new.version} is older than the pin {name} ({old.version})",
            manifest=pins,
            help="An upgrade goes forward; nothing is written. To go back, edit pins.yaml and run `afd-patchkit regen`.",
        )
    if lock is None:
        yield finding(
            "PK505",
            "there is no lock to compare with",
            generated=Position(project.shown(project.lock)),
            help="Run `afd-patchkit regen` at the pinned version first.",
        )
    elif stale:
        yield finding(
            "PK505",
            f"the lock is out of date: {', '.join(stale[:4])}{' and more' if len(stale) > 4 else ''} changed since",
            generated=Position(project.shown(project.lock)),
            help="Run `afd-patchkit regen` at the pinned version first; nothing is written before that.",
        )


def _older(one: str, other: str) -> bool:
    try:
        return Version(one) < Version(other)
    except InvalidVersion:
        return False


def last_run(project: Project) -> str:
    """Under which name the cache keeps what the last upgrade of a project moved."""
    return sha256(str(project.root).encode())


def wanted_releases(
    project: Project, named: Sequence[tuple[str, str]], options: SourceOptions
) -> list[tuple[str, str]]:
    """The versions asked for, each once; `latest` and `newer` are what the package index has beyond the pin.

    Raises:
        PatchkitError: there is no such pin (PK091), or the index cannot be asked.
    """
    result: dict[tuple[str, str], None] = {}
    for name, version in named:
        if version not in {"latest", "newer"}:
            result[name, version] = None
            continue
        pins = load_manifests(project).pins
        _, moved = overridden(pins, {name: version})
        found = next(iter(moved))
        newer = releases.newer_releases(found, pins.pins[found], options) or [pins.pins[found].version]
        result |= dict.fromkeys((found, v) for v in (newer if version == "newer" else newer[-1:]))
    return list(result)
