"""What is taken from an sdist: the Python files of the import packages, and the licence files, in memory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import IO

from afd_patchkit.upstream import archives
from afd_patchkit.upstream.failures import mismatch, refused
from afd_patchkit.upstream.licences import in_tree, is_licence
from afd_patchkit.upstream.verified import Request
from afd_patchkit.upstream.wheel import check_identity


def read_sdist(
    file: IO[bytes], archive: str, request: Request, *, public: bool = False
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Path inside the distribution to content, for the Python files of the pin's packages; name to content of licence files.

    Args:
        file: the archive.
        archive: its name, for findings.
        request: the pin that is opened.
        public: local parts of versions (`+cpu`) do not count.

    Raises:
        UpstreamError: it is no sound sdist (PK407), has no such package, or is of another release (PK402).
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    files: dict[str, bytes]
    if archive.endswith((".tar.gz", ".tgz")):
        files = dict(archives.read_tar_gz(file, size, archive, _wanted))
    elif archive.endswith(".zip"):

        def read(start: int, end: int) -> bytes:
            file.seek(start)
            return file.read(end - start)

        members = archives.read_directory(read, size, archive)
        files = {m.name: archives.extract(m, read(m.start, m.end), archive) for m in members if _wanted(m.name)}
    else:
        raise refused(archive, "an sdist is a .tar.gz (or, of old, a .zip)")
    info = files.pop(next((path for path in files if path.count("/") == 1 and path.endswith("/PKG-INFO")), ""), None)
    if info is not None:
        check_identity(request, archive, *pkg_info(info.decode("utf-8", "replace")), public=public)
    roots = {path.partition("/")[0] for path in files}
    if len(roots) > 1:
        raise refused(archive, f"an sdist has one top folder, this has {', '.join(sorted(roots)[:3])}")
    root = f"{roots.pop()}/" if roots else ""
    table = package_table((path.removeprefix(root) for path in files), request, archive)
    licences = in_tree((path.removeprefix(root) for path in files), archive)
    return (
        {path: files[root + place] for path, place in table.items()},
        {name: files[root + place] for name, place in licences.items()},
    )


def _wanted(path: str) -> bool:
    below = path.partition("/")[2]
    return path.endswith(".py") or below == "PKG-INFO" or is_licence(below)


def pkg_info(text: str) -> tuple[str, str]:
    """Name and version from core metadata."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not line.strip():
            break
        if colon and key in {"Name", "Version"}:
            fields.setdefault(key, value.strip())
    return fields.get("Name", "?"), fields.get("Version", "?")


def package_table(paths: Iterable[str], request: Request, archive: str) -> Mapping[str, str]:
    """Path inside the distribution to path in a source tree, for the packages at its root or below `src/`.

    Raises:
        UpstreamError: a package is in neither place (PK402).
    """
    files = [path for path in paths if path.endswith(".py")]
    table: dict[str, str] = {}
    for package in request.packages:
        for prefix in ("", "src/"):
            found = _below(files, prefix, package)
            if found:
                table.update((path.removeprefix(prefix), path) for path in found)
                break
        else:
            tops = sorted({p.removeprefix("src/").partition("/")[0] for p in files if "/" in p.removeprefix("src/")})
            raise mismatch(
                f"{archive} has no package {package.replace('/', '.')} at its root or below src/ ({request.label})",
                details=(f"folders with Python files: {', '.join(tops[:10]) or 'none'}",),
            )
    return table


def _below(files: Collection[str], prefix: str, package: str) -> list[str]:
    """Files of a package, or the one file of a single-module distribution."""
    found = [path for path in files if path.startswith(f"{prefix}{package}/")]
    return found or [path for path in files if path == f"{prefix}{package}.py"]
