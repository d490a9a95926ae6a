"""The lock: a committed record of every digest and signature, without upstream text. Cheap to import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afd_patchkit.digests import sha256, short
from afd_patchkit.files import read_regular
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.run.shape import wrong_entries, wrong_lock
from afd_patchkit.upstream.licences import is_sound
from afd_patchkit.version import ENGINE

if TYPE_CHECKING:
    from afd_patchkit.project import Project

SCHEMA = 1
Lock = dict[str, Any]

_MODULE = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*/)*[A-Za-z_][A-Za-z0-9_]*\.py")
_HEAD = re.compile(r'  "(?:[^"\\]|\\.)*": \{\n')
"""The line above a module or pin in the lock's text."""
_SEAL = re.compile(r'[^\n]*\n(   "record": "([0-9a-f]{16})",\n)')
"""The digest of a record, in the line below its name."""
_KEYS = frozenset({"schema", "tool", "engine", "inputs", "pins", "modules", "names", "warnings", "overrides"})


def dumps(lock: Lock) -> bytes:
    """The lock as bytes; the same lock gives the same bytes everywhere.

    Each module and each pin carries the digest of its own text, so that an edit by hand is found, and branches that change
    different modules still merge line by line.
    """
    text = json.dumps({**lock, "names": sorted(lock["pins"])}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    out, done = [], 0
    for start, end in _records(text):
        record = text[start:end]
        head, _, rest = record.partition("\n")
        out += [text[done:start], f'{head}\n   "record": "{short(record, 16)}",\n{rest}']
        done = end
    return "".join([*out, text[done:]]).encode("utf-8", "surrogatepass")


def _records(text: str) -> Iterator[tuple[int, int]]:
    """Where each module and each pin stands in the lock's text: looked for by the indentation, which is all that a large one allows."""
    start = text.find('\n  "') + 1
    while start > 0:
        head = _HEAD.match(text, start)
        end = text.find("\n  }", head.end() - 1) if head is not None else -1
        if end >= 0:
            yield start, end + len("\n  }")
        start = text.find('\n  "', max(end, start)) + 1


def load(path: Path, shown: str) -> Lock | None:
    """The lock at `path`, or None when there is none. `check_entries` looks at what quick answers do not need.

    Raises:
        PatchkitError: it cannot be read, is not a lock, or was edited by hand (PK105).
    """
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _broken(shown, str(error.strerror)) from error
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
        lock: Lock = json.loads(text)
    except UnicodeDecodeError as error:
        raise _broken(shown, "it is not UTF-8") from error
    except RecursionError as error:
        raise _broken(shown, "it is nested too deeply") from error
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise _broken(shown, "it is not JSON (a merge conflict?)", line) from error
    if isinstance(lock, dict) and "schema" in lock and lock["schema"] != SCHEMA:
        raise _broken(shown, f"its schema is {lock['schema']!r}, this tool writes {SCHEMA}")
    if (problem := wrong_lock(lock)) is not None:
        raise _broken(shown, problem)
    if outside := [name for name in lock["modules"] if not _MODULE.fullmatch(name)]:
        raise _broken(shown, f"{outside[0]!r} is no path of a module in the generated package")
    licences = (name for pin in lock["pins"].values() for name in pin.get("licences", ()))
    if (odd := next((name for name in licences if not is_sound(name)), None)) is not None:
        raise _broken(shown, f"{odd!a} is no name of a licence file")
    if lock["engine"] == ENGINE and (edited := _edited(lock, text)) is not None:
        raise _broken(shown, f"it was edited by hand: {edited}")
    for record in (*lock["modules"].values(), *lock["pins"].values()):
        record.pop("record", None)
    lock.pop("names", None)
    return lock


def check_entries(lock: Lock | None, shown: str) -> None:
    """Look at the records of entries, which an answer from digests alone does not read.

    Raises:
        PatchkitError: one of them lacks a key, or holds something of another type (PK105).
    """
    if lock is not None and (problem := wrong_entries(lock)) is not None:
        raise _broken(shown, problem)


def _edited(lock: Lock, text: str) -> str | None:
    """What is not as this tool writes it; None when everything is. It proves nothing against somebody who computes digests."""
    if more := sorted(lock.keys() - _KEYS):
        return f"`{more[0]}` is no key of a lock"
    if lock.get("names") != sorted(lock["pins"]):
        return "`names` does not name the pins"
    if lock["warnings"] != sorted({code for module in lock["modules"].values() for code in module["warnings"]}):
        return "`warnings` is not what the modules say"
    count = 0
    for start, end in _records(text):
        count += 1
        seal = _SEAL.match(text, start)
        if seal is None or short(text[start : seal.start(1)] + text[seal.end(1) : end], 16) != seal[2]:
            return f"the record of {text[start:end].partition(':')[0].strip()} has another digest"
    wanted = len(lock["modules"]) + len(lock["pins"])
    return None if count == wanted else f"{wanted} records, of which {count} are as the tool writes them"


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
            data = read_regular(path)
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
