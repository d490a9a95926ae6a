"""Whose a file of the generated folder is. Cheap to import.

The tool replaces and removes only what is its own: a file that the lock names with the digest on disk, or that carries the
header of generated files. Everything else is somebody's work, and is named instead. Symbolic links are never followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from afd_patchkit.digests import sha256
from afd_patchkit.files import read_regular
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.header import is_generated, line
from afd_patchkit.project import Project
from afd_patchkit.upstream.licences import is_sound

_RUNS = (".py", ".pyw", ".pyc", ".so", ".pyd")
"""Endings of files that Python imports; an extension module wins over a `.py` of the same name."""

_UNTOUCHED = 0
"""The flags of a `.pyc` that Python compares with time and size of its source; others may hold any code."""


def module_path(project: Project, module: str) -> Path:
    """Where a generated module is."""
    return project.package_folder / module


def outline_path(project: Project, module: str) -> Path:
    """Where a module's outline is."""
    return project.outlines / f"{module.removesuffix('.py')}.outline"


def typed_marker(project: Project) -> Path:
    """The file that says that the package has types."""
    return project.package_folder / "py.typed"


def licence_folder(project: Project) -> Path:
    """Where the licence files of the pins are."""
    return project.package_folder / "licenses"


def licence_sums(project: Project) -> Path:
    """The list of them, which says which files there are the tool's: they have no header."""
    return licence_folder(project) / "SHA256SUMS"


def licence_paths(project: Project, lock: Mapping[str, Any] | None) -> dict[Path, str]:
    """Path and digest of each licence file that a lock names."""
    return {
        licence_path(project, name, pin["version"], licence): digest
        for name, pin in (lock or {}).get("pins", {}).items()
        for licence, digest in pin.get("licences", {}).items()
    }


def licence_path(project: Project, pin: str, version: str, name: str) -> Path:
    """Where a licence file of a pin is.

    Args:
        project: the project.
        pin: name of the pin.
        version: its version.
        name: name of the file, as it lies in the source tree.
    """
    return licence_folder(project) / re.sub(r"[^A-Za-z0-9.+!_-]", "_", f"{pin}-{version}") / name


def sums_text(project: Project, lock: Mapping[str, Any]) -> bytes:
    """The list of licence files, as `sha256sum` writes it."""
    folder = licence_folder(project)
    rows = sorted((p.relative_to(folder).as_posix(), digest) for p, digest in licence_paths(project, lock).items())
    head = line(project.shown(project.pins))
    return "".join([f"{head}\n", *(f"{digest}  {name}\n" for name, digest in rows)]).encode()


def _summed(project: Project) -> dict[Path, str]:
    """What the list on disk says: a lock of another branch may stand beside these files."""
    path = licence_sums(project)
    try:
        data = read_regular(path) if project.linked(path) is None else b""
    except OSError:
        return {}
    if not is_generated(data):
        return {}
    rows = (row.partition("  ") for row in data.decode("utf-8", "replace").splitlines())
    return {licence_folder(project) / name: digest for digest, _, name in rows if is_sound(name)}


def package_inits(project: Project, modules: Collection[str]) -> list[Path]:
    """The `__init__.py` of every package that holds a module."""
    root = project.package_folder
    folders = {root} if modules else set()
    for name in modules:
        folder = (root / name).parent
        while folder != root:
            folders.add(folder)
            folder = folder.parent
    return sorted(folder / "__init__.py" for folder in folders)


def unknown_files(project: Project, live: Collection[str], support: Collection[Path]) -> Iterator[Path]:
    """What lies among the generated files and belongs to none of the modules `live`, and is no `support` file, in order.

    In the package: links, and what Python would import. Among the outlines: links and `.outline` files.
    """
    known = {module_path(project, name) for name in live} | set(support)
    for path in _files(project.package_folder):
        if path not in known and (path.is_symlink() or (path.suffix in _RUNS and not _is_cache(path))):
            yield path
    known = {outline_path(project, name) for name in live}
    for path in _files(project.outlines):
        if path not in known and (path.is_symlink() or path.suffix == ".outline"):
            yield path


def _files(folder: Path) -> Iterator[Path]:
    """Files and links below a folder; the folder itself when it is a link."""
    if folder.is_symlink():
        yield folder
        return
    for current, folders, names in os.walk(folder):
        folders.sort()
        here = Path(current)
        links = [name for name in folders if (here / name).is_symlink()]
        yield from (here / name for name in sorted([*names, *links]))


def _is_cache(path: Path) -> bool:
    """Whether a file is what Python itself leaves in `__pycache__`, compared with its source before it is used."""
    if path.suffix != ".pyc" or path.parent.name != "__pycache__" or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError:
        return False
    return len(head) < 8 or int.from_bytes(head[4:], "little") == _UNTOUCHED


def is_ours(path: Path, locked: str | None) -> bool:
    """Whether the file at `path` may be replaced or removed: `locked` is its digest in the lock, if it is there."""
    try:
        data = read_regular(path)
    except OSError:
        return False
    return sha256(data) == locked or is_generated(data)


def locked_digests(project: Project, lock: Mapping[str, Any] | None) -> dict[Path, str]:
    """The digest of each file that the lock names, and of each licence file that their list on disk does."""
    found = {**_summed(project), **licence_paths(project, lock)}
    for name, record in (lock or {}).get("modules", {}).items():
        if "sha256" in record:
            found[module_path(project, name)] = record["sha256"]
            found[outline_path(project, name)] = record["outline"]
    return found


def leftovers(
    project: Project, new: Mapping[str, Any], support: Collection[Path], lock: Mapping[str, Any] | None
) -> tuple[list[Path], list[Finding]]:
    """Generated files that are not generated any more, and a finding for each file there that is not the tool's.

    Args:
        project: the project.
        new: the lock that is written.
        support: what stands beside the modules in the package.
        lock: the lock on disk; None when there is none.
    """
    live = [name for name, found in new["modules"].items() if "sha256" in found]
    digests = locked_digests(project, lock)
    gone, findings = [], []
    for path in unknown_files(project, live, support):
        if not path.is_symlink() and path.suffix in (".py", ".outline") and is_ours(path, digests.get(path)):
            gone.append(path)
        else:
            findings.append(foreign(project, path))
    marker = typed_marker(project)
    if not live and marker.is_file() and not marker.is_symlink() and is_ours(marker, None):
        gone.append(marker)
    licences = licence_paths(project, new)
    others = (path for path in _files(licence_folder(project)) if path not in licences and path not in support)
    gone += [p for p in others if not p.is_symlink() and p.suffix not in _RUNS and is_ours(p, digests.get(p))]
    return gone, findings


def in_the_way(project: Project, wanted: Mapping[Path, bytes], lock: Mapping[str, Any] | None) -> list[Finding]:
    """A finding for each path where something stands that must not be replaced.

    Args:
        project: the project.
        wanted: what is to be written. The lock's own path may be among them: whoever read it knows that it is a lock.
        lock: the lock on disk; None when there is none.
    """
    digests = locked_digests(project, lock)
    found: dict[Path, Finding] = {}
    for path, data in wanted.items():
        link = project.linked(path)
        if link is not None:
            found[link] = _blocked(project, link, "is a symbolic link", "Links are never written through: remove it.")
            continue
        barrier = next(
            (p for p in path.parents if p.is_relative_to(project.generated) and _is_there(p, file=True)), None
        )
        if barrier is not None:
            found[barrier] = _blocked(project, barrier, "is a file, and a folder must stand there", "Move it away.")
        elif _is_there(path, file=False):
            found[path] = _blocked(project, path, "is no file, and one must be written there", "Move it away.")
        elif (
            path.exists()
            and path != project.lock
            and path.read_bytes() != data
            and not is_ours(path, digests.get(path))
        ):
            found[path] = _blocked(
                project,
                path,
                "was not generated, and would be overwritten",
                "Move it away, or let `package`, `generated` or the manifest's `module` name another place.",
            )
    return list(found.values())


def _is_there(path: Path, *, file: bool) -> bool:
    """Whether a file (or else: something that is no file) is at `path`."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not stat.S_ISDIR(mode) if file else not stat.S_ISREG(mode)


def _blocked(project: Project, path: Path, what: str, help_: str) -> Finding:
    return finding(
        "PK115",
        f"{project.shown(path)} {what}",
        generated=Position(project.shown(path)),
        help=f"Nothing was written. {help_}",
    )


def foreign(project: Project, path: Path) -> Finding:
    """The finding for a file among the generated ones that no manifest generates."""
    if path.is_symlink():
        what = "a symbolic link stands among the generated files"
    elif path.suffix == ".pyc" and path.parent.name == "__pycache__":
        what = "this compiled file runs in place of its source, whatever the source says"
    elif path.suffix not in (".py", ".outline"):
        what = f"no manifest generates this file, and Python would import it ({path.suffix})"
    else:
        what = "no manifest generates this file"
    return finding(
        "PK104",
        what,
        generated=Position(project.shown(path)),
        help="Delete it, or move it away; `afd-patchkit regen` removes only what it has generated itself. Hand-written code "
        "belongs beside the generated package.",
    )
