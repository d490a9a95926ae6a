"""What the running engine is: its own source, as a digest. Two checkouts of one `ENGINE` may differ while it is worked on."""

from __future__ import annotations

import hashlib
import os
import zipimport
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import afd_patchkit


@cache
def engine_digest() -> str | None:
    """Digest of all of its code; None where it cannot be read. It takes some milliseconds, once."""
    return digest_of(afd_patchkit)


def digest_of(package: object) -> str | None:
    """Digest of the code of a package, whether it lies in a folder or in an archive, as text or compiled.

    Args:
        package: the imported package.
    """
    loader = getattr(package, "__loader__", None)
    try:
        if isinstance(loader, zipimport.zipimporter):
            return hashlib.sha256(Path(loader.archive).read_bytes()).hexdigest()
        found = hashlib.sha256()
        for folder in getattr(package, "__path__", ()):
            for name in _code(folder, ""):
                with open(f"{folder}/{name}", "rb") as file:
                    data = file.read()
                found.update(f"{name} {len(data)}\n".encode())
                found.update(data)
        return found.hexdigest()
    except OSError:
        return None


def _code(root: str, below: str) -> Iterator[str]:
    with os.scandir(f"{root}/{below}") as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _code(root, f"{below}{entry.name}/")
            elif entry.name.endswith((".py", ".pyc")):
                yield f"{below}{entry.name}"
