"""What the renderers know besides the report, and what they share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from afd_patchkit.findings.finding import Finding, Position, Severity
from afd_patchkit.reports.layout import PLAIN, Style, plural

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True)
class Context:
    """How and where a report is shown.

    Attributes:
        command: the command that made the report, for titles.
        base: the folder that relative paths of positions start from (the current one).
        style: colour and width of text.
        verbosity: -1 quiet, 0 normal, 1 and more verbose.
        exit_code: the command's exit code where it is not the report's own.
    """

    command: str = "regen"
    base: Path = field(default_factory=Path)
    style: Style = PLAIN
    verbosity: int = 0
    exit_code: int | None = None


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes; by place within each, so that the order says nothing about how they were found."""

    def key(item: Finding) -> tuple[object, ...]:
        place = item.manifest or item.generated or item.upstream or Position("")
        return _RANK[item.severity], place, item.code, item.entry or "", item.delta or "", item.message

    return sorted(findings, key=key)


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Number of findings per severity."""
    result = {severity.value: 0 for severity in Severity}
    for item in findings:
        result[item.severity.value] += 1
    return result


def summary(findings: Sequence[Finding]) -> str:
    """`2 errors, 1 warning, 3 notes`, without the zeros; `no findings` when there is none."""
    parts = [plural(number, name) for name, number in counts(findings).items() if number]
    return ", ".join(parts) or "no findings"


def rebase(findings: Iterable[Finding], root: Path, here: Path) -> tuple[Finding, ...]:
    """The findings with places as one would type them in the folder `here`.

    Manifest and generated files are given relative to the project's `root`; upstream files stay as they are.
    """
    here = here.resolve()

    def moved(place: Position | None) -> Position | None:
        if place is None or place.file.startswith("<"):
            return place
        path = os.path.normpath(root.resolve() / place.file)
        if os.path.isabs(place.file) and not Path(path).is_relative_to(here):
            return place
        try:
            relative = os.path.relpath(path, here)
        except ValueError:  # another drive
            relative = path
        shorter = relative if len(relative) <= len(path) or not relative.startswith("..") else path
        return replace(place, file=Path(shorter).as_posix())

    return tuple(replace(f, manifest=moved(f.manifest), generated=moved(f.generated)) for f in findings)


def primary(item: Finding) -> Position | None:
    """The place in the user's own files that a finding is about, if any."""
    return item.manifest or item.generated


def repository_root(start: Path, environ: Mapping[str, str] | None = None) -> Path:
    """The folder that code scanners and annotations take paths relative to.

    That is `GITHUB_WORKSPACE` when `start` lies in it, else the git checkout around `start`, else `start`.
    """
    start = start.resolve()
    workspace = (os.environ if environ is None else environ).get("GITHUB_WORKSPACE")
    if workspace:
        root = Path(workspace).resolve()
        if start.is_relative_to(root):
            return root
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return start


def relative_path(file: str, base: Path, root: Path) -> str:
    """`file` (relative to `base`) as a `/`-separated path below `root`; unchanged when it lies outside."""
    if file.startswith("<"):  # no file at all: <memory>, <command line>
        return file
    path = Path(os.path.normpath(base.resolve() / file))
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return PurePath(file).as_posix()
