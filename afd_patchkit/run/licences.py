"""The licence and notice files of the pins, which lie beside the modules that embed their text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from afd_patchkit.digests import sha256
from afd_patchkit.files import read_regular
from afd_patchkit.project import Project
from afd_patchkit.run.ownership import licence_path
from afd_patchkit.run.pins import Opener
from afd_patchkit.upstream.failures import mismatch


def licence_digests(name: str, opener: Opener, *, full: bool) -> dict[str, str]:
    """Name to digest of each licence file of a pin.

    What the lock knows of the same release stands; a full run compares it with the files. Another artifact of the release, a tree
    say, may have more of them, or lack some.

    Args:
        name: the pin.
        opener: opens upstreams.
        full: whether to read them whatever the lock says.

    Raises:
        UpstreamError: they cannot be had, or one is not the locked one (PK402).
    """
    known = opener.known(name) or {}
    locked: dict[str, str] | None = known.get("licences")
    if locked is not None and not full:
        return locked
    upstream = opener(name, opener.pins.pins[name])
    there = upstream.licences()
    same = known.get("artifact", {}).get("sha256") == upstream.artifact.sha256 is not None
    names = sorted(there) if locked is None or same else sorted(set(there) & set(locked))
    found = {path: sha256(data) for path, data in upstream.licence_files(names).items()}
    for path, digest in found.items() if locked is not None and not same else ():
        if digest != (locked or {})[path]:
            raise mismatch(f"{path} of {upstream.request.label} is not the locked licence file", path=path)
    return found if locked is None or same else {**locked, **found}


def licence_files(project: Project, lock: Mapping[str, Any], opener: Opener) -> dict[str, bytes]:
    """What must stand beside the modules, by path below the generated folder; files that stand there already are left out.

    Args:
        project: the project.
        lock: the lock that is written.
        opener: opens upstreams.

    Raises:
        UpstreamError: a file cannot be had.
    """
    found: dict[str, bytes] = {}
    for name, pin in lock["pins"].items():
        places = {path: licence_path(project, name, pin["version"], path) for path in pin.get("licences", {})}
        missing = {path: digest for path, digest in pin.get("licences", {}).items() if not _is_at(places[path], digest)}
        store = opener.options.store
        kept = {path: data for path, digest in missing.items() if (data := store.blob(f"sha256:{digest}")) is not None}
        if rest := sorted(missing.keys() - kept.keys()):
            read = opener(name, opener.pins.pins[name]).licence_files(rest)
            for path, data in read.items():
                if sha256(data) != missing[path]:
                    raise mismatch(f"{path} of pin {name} is not the locked licence file", path=path)
            kept |= read
        found |= {_below(project, places[path]): data for path, data in kept.items()}
    return found


def _is_at(path: Path, digest: str) -> bool:
    try:
        return not path.is_symlink() and sha256(read_regular(path)) == digest
    except OSError:
        return False


def _below(project: Project, path: Path) -> str:
    return path.relative_to(project.generated).as_posix()
