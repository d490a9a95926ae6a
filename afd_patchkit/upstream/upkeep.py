"""What the cache holds, and what of it may go."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import finding
from afd_patchkit.upstream.cache import Store

DAY = 24 * 3600.0

MEANINGS: Mapping[str, str] = {
    "blobs": "files of upstreams",
    "members": "which files an artifact has",
    "releases": "which files a release has",
    "commits": "which files a commit has",
    "git-repositories": "repositories that commits are read from",
    "elsewhere": "what completes definitions elsewhere",
    "entries": "entries as they were generated",
    "aliases": "who holds a symbol by name",
    "upgrades": "which upgrade was run last",
    "locks": "locks of long downloads",
    "tmp": "left by runs that were killed",
}
_DERIVED = frozenset({"blobs", "entries", "hygiene", "git-repositories", "locks", "tmp"})
"""Kinds whose files name nothing that a pin needs."""
_DIGEST = re.compile(r"\b[a-z0-9_]+:[0-9a-f]{40,128}\b")


@dataclass(frozen=True, slots=True)
class Stored:
    """One file of the cache, or one repository.

    Attributes:
        path: where it lies.
        kind: what it is for, one of `MEANINGS` or a folder of an older format.
        size: bytes.
        used: seconds since the epoch: when it was last written or, where the file system says so, read.
    """

    path: Path
    kind: str
    size: int
    used: float


@dataclass(frozen=True)
class Needs:
    """What the pins of a lock need.

    Attributes:
        identities: digests of artifacts, and commits: what tells what is in them is needed, and so is what that names.
        blobs: contents, as `sha256:hex` or `git:hex`.
    """

    identities: frozenset[str] = frozenset()
    blobs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be.

    Attributes:
        removed: those files.
        kept: all others.
        failed: what could not be removed, and why.
    """

    removed: tuple[Stored, ...]
    kept: tuple[Stored, ...]
    failed: Mapping[Path, str] = field(default_factory=dict)


def contents(store: Store) -> list[Stored]:
    """Everything in the cache, in the order of its paths."""
    return sorted(_walk(store.root), key=lambda item: item.path) if store.root is not None else []


def _walk(root: Path) -> Iterator[Stored]:
    for folder, folders, files in os.walk(root):
        place = Path(folder)
        kind = place.relative_to(root).parts[:1]
        if kind == ("git-repositories",) and place.parent.name == "git-repositories":
            folders.clear()
            yield _repository(place)
            continue
        for name in files:
            with contextlib.suppress(OSError):
                found = (place / name).lstat()
                yield Stored(place / name, kind[0] if kind else "", found.st_size, max(found.st_mtime, found.st_atime))


def _repository(folder: Path) -> Stored:
    size, used = 0, 0.0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                found = Path(place, name).lstat()
                size, used = size + found.st_size, max(used, found.st_mtime, found.st_atime)
    return Stored(folder, "git-repositories", size, used)


def needed(store: Store, items: Iterable[Stored], needs: Needs) -> set[Path]:
    """The files of the cache that the pins of a lock need."""
    found: set[Path] = set()
    blobs = set(needs.blobs)
    items = list(items)
    for item in items:
        if item.kind in _DERIVED or not needs.identities:
            continue
        try:
            found_at = item.path.stat()
            text = item.path.read_text(encoding="utf-8", errors="replace")
            os.utime(item.path, ns=(found_at.st_atime_ns, found_at.st_mtime_ns))  # to look is not to use
        except OSError:
            continue
        if any(word in text or word in str(item.path) for word in needs.identities):
            found.add(item.path)
            blobs.update(_DIGEST.findall(text))
    return found | {item.path for item in items if item.kind == "blobs" and _blob(item.path) in blobs}


def _blob(path: Path) -> str:
    return f"{path.parts[-3]}:{path.parts[-2]}{path.name}"


def prune(store: Store, needs: Needs | None, *, older_than: float, dry_run: bool = False) -> Pruned:
    """Remove what no pin needs and nobody has used for a while; with the cache to itself, so that no run misses anything.

    Args:
        store: the cache.
        needs: what stays whatever its age; None to remove that, too.
        older_than: seconds; what was used since stays.
        dry_run: only say what would be removed.

    Raises:
        PatchkitError: another command is using the cache (PK112).
    """
    if store.root is None or not store.root.is_dir():
        return Pruned((), ())
    with store.alone() as alone:
        if not alone:
            raise PatchkitError(
                finding(
                    "PK112",
                    f"another command is using the cache in {store.root}",
                    help="Run it again when that command has ended.",
                )
            )
        items = contents(store)
        since = time.time() - older_than
        stays = needed(store, items, needs) if needs is not None else set()
        old = [i for i in items if i.path not in stays and (i.kind in ("tmp", "locks") or i.used <= since)]
        failed = {} if dry_run else _removed(store.root, old)
    removed = tuple(item for item in old if item.path not in failed)
    gone = {item.path for item in removed}
    return Pruned(removed, tuple(item for item in items if item.path not in gone), failed)


def _removed(root: Path, items: Collection[Stored]) -> dict[Path, str]:
    import shutil

    failed = {}
    for item in items:
        try:
            if item.kind == "git-repositories" and not item.path.is_symlink():
                shutil.rmtree(item.path)
            else:
                item.path.unlink()
        except OSError as error:
            failed[item.path] = error.strerror or str(error)
    for folder, _, _ in os.walk(root, topdown=False):
        if Path(folder) != root:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # only those that are empty
    return failed


def needs_of(pins: Mapping[str, Mapping[str, object]]) -> Needs:
    """What the pins of a lock need: its records by the names of the pins."""
    identities: set[str] = set()
    blobs: set[str] = set()
    for record in pins.values():
        text = json.dumps(record)
        identities.update(re.findall(r"\b[0-9a-f]{64}\b", json.dumps(record.get("artifact"))))
        identities.update(re.findall(r"\b[0-9a-f]{40}\b", json.dumps(record.get("git"))))
        blobs.update(f"sha256:{digest}" for digest in re.findall(r"\b[0-9a-f]{64}\b", text))
    return Needs(frozenset(identities), frozenset(blobs))
