"""Which release of an upstream is installed, and whether it is the pinned one, by PEP 440.

The policy is that of `==`: an epoch, a pre-, post- or development release is another release; a local version (`+cpu`) counts only
where the pin names one; zeros at the end, `v` and spelling (`alpha`, `-1`) do not count.
"""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

import re
from typing import NamedTuple

_VERSION = r"""\s*v?(?:(?P<epoch>[0-9]+)!)?(?P<release>[0-9]+(?:\.[0-9]+)*)
    (?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>[0-9]*))?
    (?P<post>-(?P<post_short>[0-9]+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>[0-9]*))?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>[0-9]*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*"""
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}

_Public = tuple[int, tuple[int, ...], str, "int | None", "int | None"]


class Gate(NamedTuple):
    """The release that targets may be bound on.

    Attributes:
        distribution: its name on the package index.
        version: the pinned version.
    """

    distribution: str
    version: str


def parsed(version: str) -> tuple[_Public, tuple[str, ...]] | None:
    """The parts of a version that count, and those of its local version; None for what is no version."""
    match = re.fullmatch(_VERSION, version, re.VERBOSE | re.IGNORECASE | re.ASCII)
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    pre = ""
    if match["pre"]:
        letter = match["pre"].lower()
        pre = f"{_PRE.get(letter, letter)}{int(match['pre_number'] or 0)}"
    post = int(match["post_short"] or match["post_number"] or 0) if match["post"] else None
    dev = int(match["dev_number"] or 0) if match["dev"] else None
    local = re.split(r"[-_.]", match["local"].lower()) if match["local"] else []
    known = tuple(str(int(part)) if part.isdigit() else part for part in local)
    return (int(match["epoch"] or 0), tuple(release), pre, post, dev), known


def is_release(found: str, pinned: str) -> bool:
    """Whether a version is the pinned release, as `== pinned` says."""
    one, other = parsed(found), parsed(pinned)
    if one is None or other is None:
        return found == pinned
    return one[0] == other[0] and (not other[1] or one[1] == other[1])


def installed(distribution: str) -> str | None:
    """The installed version of a distribution; None where its metadata is not there."""
    from importlib import metadata  # a third of what importing this package may take

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def refusal(gate: Gate) -> str | None:
    """Why nothing may be bound on the installed release; None when it is the pinned one."""
    found = installed(gate.distribution)
    if found is None:
        return f"{gate.distribution} is not installed as a distribution, so that its version cannot be told; {gate.version} is needed"
    if is_release(found, gate.version):
        return None
    return f"{gate.distribution} {found} is installed, and {gate.version} is needed"
