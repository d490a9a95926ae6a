"""The lock: a committed record of every digest and signature, without upstream text. Cheap to import."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afd_patchkit.digests import sha256, short
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position, finding

if TYPE_CHECKING:
    from afd_patchkit.project import Project

SCHEMA = 1
Lock = dict[str, Any]

_MODULE = re.compile(r"(?:\w+/)*\w+\.py")


def dumps(lock: Lock) -> bytes:
    """The lock as bytes; the same lock gives the same bytes everywhere."""
    return (json.dumps(lock, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")


def load(path: Path, shown: str) -> Lock | None:
    """The lock at `path`, or None when there is none.

    Raises:
        PatchkitError: it cannot be read or is not a lock (PK105).
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _broken(shown, str(error.strerror)) from error
    try:
        lock = json.loads(data)
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise _broken(shown, "it is not JSON (a merge conflict?)", line) from error
    if (
        not isinstance(lock, dict)
        or not isinstance(lock.get("modules"), dict)
        or not isinstance(lock.get("pins"), dict)
    ):
        raise _broken(shown, "it is not a lock")
    if lock.get("schema") != SCHEMA:
        raise _broken(shown, f"its schema is {lock.get('schema')!r}, this tool writes {SCHEMA}")
    if outside := [name for name in lock["modules"] if not _MODULE.fullmatch(name)]:
        raise _broken(shown, f"{outside[0]!r} is no path of a module in the generated package")
    return lock


def _broken(shown: str, message: str, line: int = 0) -> PatchkitError:
    return PatchkitError(
        finding(
            "PK105",
            f"the lock cannot be used: {message}",
            generated=Position(shown, line),
            help="Restore it from version control (either side of a conflict will do) or delete it, then run `afd-patchkit regen`.",
        )
    )


def input_digests(root: Path, paths: list[Path]) -> dict[str, str]:
    """Digest of every input file by its path below `root`; line ends do not count.

    A missing file is left out.
    """
    found: dict[str, str] = {}
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError:
            continue
        found[path.relative_to(root).as_posix()] = sha256(data.replace(b"\r\n", b"\n"))
    return found


def settings_digest(project: Project) -> str:
    """Digest of the settings that decide output."""
    return short(repr((project.package, project.marker, project.manifests.name)), 16)


def current_inputs(project: Project) -> dict[str, str]:
    """Digest of every input file."""
    files = [p for p in project.input_files() if p != project.settings]
    return {**input_digests(project.root, files), "[settings]": settings_digest(project)}
