"""Method B: a three-way merge of lines by `git merge-file`, and the normal form in which results are compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afd_patchkit.digests import short
from afd_patchkit.fence import parsed
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import finding
from afd_patchkit.git import GitError, complaint, run_git


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of one merge: with conflict markers in `text` when it is not `clean`."""

    text: str
    clean: bool


def merge(ours: str, base: str, theirs: str) -> Merged:
    """Merge the changes `base` -> `ours` and `base` -> `theirs`, lines as units.

    Raises:
        UpstreamError: there is no `git`, or it fails (PK506).
    """
    if theirs in (base, ours):
        return Merged(ours, True)
    if base == ours:
        return Merged(theirs, True)
    with tempfile.TemporaryDirectory(prefix="afd-patchkit-") as folder:
        for name, text in (("generated", ours), ("base", base), ("new", theirs)):
            (Path(folder) / name).write_bytes(text.encode())
        arguments = [
            "merge-file",
            "-p",
            "--diff3",
            "-L",
            "generated",
            "-L",
            "base",
            "-L",
            "new",
            "generated",
            "base",
            "new",
        ]
        try:
            done = run_git(arguments, folder, more={"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull})
        except GitError as error:
            raise _failed(str(error)) from error
    if not 0 <= done.returncode < 128:
        raise _failed(f"git merge-file failed: {' / '.join(complaint(done))}")
    return Merged(done.stdout.decode(), done.returncode == 0)


def _failed(message: str) -> UpstreamError:
    return UpstreamError(
        finding(
            "PK506", message, help="Upgrades compare two methods; the second one needs git 2.20 or later on the path."
        )
    )


def normal(text: str, marker: str) -> list[str]:
    """The lines of `text` that are compared: fences and blank lines left out, white space at line ends too.

    Fences are drawn from the edits, not from the code: the two methods may draw them around other lines of the same
    code. Comments count, because a lost upstream comment is a lost line.
    """
    return [line.rstrip() for line in text.split("\n") if line.strip() and not parsed(line, marker)]


def private_marker(texts: Sequence[str]) -> str:
    """A comment prefix for fences that stands in none of `texts`."""
    number = 0
    while any(f"~delta~{number}~" in text for text in texts):
        number += 1
    return f"~delta~{number}~"


# ---- without the old text ---------------------------------------------------------------------------------------------


def line_digests(lines: Sequence[str]) -> list[str]:
    """The lock's digest of each line."""
    return [short(line.strip()) for line in lines]


def placed(digests: Sequence[str], edits: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """`digests` with the lines of each edit replaced by (or with an insertion of) a line that names the edits there.

    Args:
        digests: one per line of the symbol.
        edits: name and lock record of each edit.
    """
    groups: list[tuple[int, int, list[str]]] = []
    for name, record in sorted(edits, key=lambda e: (e[1]["lines"][0], e[1]["lines"][1])):
        first, last = record["lines"]
        if groups and first <= last and groups[-1][0] <= groups[-1][1] and first <= groups[-1][1]:
            start, end, names = groups[-1]
            groups[-1] = (start, max(end, last), [*names, name])
        else:
            groups.append((first, last, [name]))
    out: list[str] = []
    at = 1
    for first, last, names in groups:
        out += digests[at - 1 : first - 1]
        out.append("delta " + ", ".join(names))
        at = max(at, last + 1, first)
    return [*out, *digests[at - 1 :]]


def as_text(lines: Sequence[str]) -> str:
    """Join lines to one text."""
    return "".join(f"{line}\n" for line in lines)
