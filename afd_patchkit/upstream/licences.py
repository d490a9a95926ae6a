"""Which files of a distribution are licences and notices. Each is named as it lies in the source tree, wherever it was found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from afd_patchkit.project import reserved_on_windows
from afd_patchkit.upstream.failures import refused

MOST = 1000
"""More of them no honest distribution has."""

_NAME = re.compile(
    r"(?:un)?licen[cs]es?|copying|copyright|notices?|patents|authors|third[-_ ]?party[-_ ]?(?:licen[cs]es?|notices?)",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"licen[cs]es", re.IGNORECASE)
_CODE = re.compile(r"\.(?:pyw?|pyc|pyd|so)$", re.IGNORECASE)


def is_licence(path: str) -> bool:
    """Whether a file of a source tree is one: by its name in the top folder, or because it lies in a top folder for them."""
    top, slash, _ = path.partition("/")
    if _CODE.search(path):
        return False
    return bool(_FOLDER.fullmatch(top)) if slash else bool(_NAME.fullmatch(re.split(r"[.\-_]", top, maxsplit=1)[0]))


def in_tree(paths: Iterable[str], archive: str) -> dict[str, str]:
    """Name to path of the licence files of a source tree.

    Raises:
        UpstreamError: their names are none that every system can keep (PK407).
    """
    return _sound({path: path for path in paths if is_licence(path)}, archive)


def in_wheel(paths: Iterable[str], info: str, archive: str) -> dict[str, str]:
    """Name to path of the licence files below a `.dist-info` folder: in `licenses/`, or of old beside the metadata.

    Args:
        paths: the files of the wheel, or of an installation.
        info: the folder's name.
        archive: what it is, for findings.

    Raises:
        UpstreamError: their names are none that every system can keep (PK407).
    """
    found = {}
    for path in paths:
        below = path.removeprefix(f"{info}/")
        name = below.removeprefix("licenses/")
        if below != path and not _CODE.search(below) and (name != below or ("/" not in below and is_licence(below))):
            found[name] = path
    return _sound(found, archive)


def is_sound(name: str) -> bool:
    """Whether every system can keep a file of this name, below the folder where it belongs."""
    odd = not name.isprintable() or re.search(r'[<>:"|?*\\]', name) or len(name.encode()) > 200
    parts = name.split("/")
    return not (odd or _CODE.search(name) or any(_is_odd(part) for part in parts))


def _is_odd(part: str) -> bool:
    return not part or part != part.strip() or part.endswith(".") or reserved_on_windows(part)


def _sound(found: dict[str, str], archive: str) -> dict[str, str]:
    if len(found) > MOST:
        raise refused(archive, f"{len(found)} licence files")
    folded: set[str] = set()
    for name, path in found.items():
        parts = name.split("/")
        if not is_sound(name):
            raise refused(archive, f"no system-independent name of a licence file: {name!a}", path=ascii(path))
        folders = {"/".join(parts[:n]).casefold() for n in range(1, len(parts))}
        if name.casefold() in folded or not folders.isdisjoint(n.casefold() for n in found):
            raise refused(archive, f"two licence files that some systems cannot keep apart, {name!r}", path=path)
        folded.add(name.casefold())
    return dict(sorted(found.items()))
