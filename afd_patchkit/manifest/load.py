"""Read pins and manifests of a project; all errors of all files in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from afd_patchkit.files import LONGEST_INPUT, read_regular
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.manifest import cross
from afd_patchkit.manifest.nodes import Document
from afd_patchkit.manifest.reader import read
from afd_patchkit.model import Manifest, Model, Pins
from afd_patchkit.project import Project

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a project says, valid as far as that can be seen without upstream."""

    pins: Pins
    manifests: tuple[Manifest, ...]


def load_manifests(project: Project) -> Loaded:
    """Read `pins.yaml` and every manifest of `project`.

    Raises:
        ManifestError: with every error of every file, in the order of their places.
    """
    problems: list[Finding] = []
    pins = _read(Pins, project, project.pins, problems)
    manifests = [
        made for path in project.manifest_files() if (made := _read(Manifest, project, path, problems)) is not None
    ]
    problems += list(cross.problems(project, pins, manifests, whole=not problems))
    if problems or pins is None:
        raise ManifestError.collect(_ordered(problems))
    return Loaded(pins, tuple(manifests))


def parse_manifest(data: bytes, file: str) -> Manifest:
    """One manifest from its bytes; `file` names it in positions.

    Raises:
        ManifestError: with all errors that the file alone shows.
    """
    return _alone(Manifest, data, file)


def parse_pins(data: bytes, file: str) -> Pins:
    """`pins.yaml` from its bytes.

    Raises:
        ManifestError: with all its errors.
    """
    return _alone(Pins, data, file)


def _alone(cls: type[M], data: bytes, file: str) -> M:
    problems: list[Finding] = []
    made = _parse(cls, data, file, problems)
    if problems or made is None:
        raise ManifestError.collect(_ordered(problems))
    return made


def _parse(cls: type[M], data: bytes, file: str, problems: list[Finding]) -> M | None:
    made, found = read(cls, Document(data, file))
    problems += found
    return made


def _read(cls: type[M], project: Project, path: Path, problems: list[Finding]) -> M | None:
    name = project.shown(path)
    if not project.holds(path):
        problems.append(project.outside(path))
        return None
    try:
        data = read_regular(path, LONGEST_INPUT)
    except OSError as error:
        help_ = "`afd-patchkit init` writes a first one." if path == project.pins else None
        message = f"cannot read {name}: {error.strerror or error}"
        problems.append(finding("PK024", message, manifest=Position(name), help=help_))
        return None
    return _parse(cls, data, name, problems)


def _ordered(problems: Sequence[Finding]) -> list[Finding]:
    return sorted(dict.fromkeys(problems), key=lambda f: (f.manifest or Position(""), f.code, f.message))
