"""`--write`: pin, manifests, acceptances, lock and modules move together, or not at all.

The generated folder is exchanged in one step, and carries a journal of the input files that go with it. A kill before the
exchange leaves the old state. Behind it, the journal is worked off; the next command finishes what a kill interrupted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.digests import sha256
from afd_patchkit.files import read_regular, replace_file
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, Position, Severity, finding
from afd_patchkit.manifest.load import parse_manifest, parse_pins
from afd_patchkit.model import Manifest, Pin, Pins
from afd_patchkit.project import JOURNAL, Project
from afd_patchkit.run.installs import with_installs
from afd_patchkit.run.licences import licence_files
from afd_patchkit.run.lock import current_inputs
from afd_patchkit.run.locking import build_lock
from afd_patchkit.run.modules import generate_modules
from afd_patchkit.run.options import RunOptions
from afd_patchkit.run.pins import Opener
from afd_patchkit.run.writing import write_generated
from afd_patchkit.upgrade.accepted import path_of
from afd_patchkit.upgrade.result import EntryResult
from afd_patchkit.upgrade.yaml_edit import ScalarEdit, edit_scalars, find_scalar, remove_key


def new_pins(project: Project, name: str, pin: Pin) -> bytes:
    """`pins.yaml` with one pin moved; everything else stays byte for byte.

    Raises:
        PatchkitError: the file cannot be edited that way (PK549).
    """
    shown = project.shown(project.pins)
    data = project.pins.read_bytes()
    base = ("pins", name)
    edits = []
    for path, value in _texts(pin.model_dump(exclude_none=True)):
        found = find_scalar(data, (*base, *path))
        if found is not None and found.old != value:
            edits.append(replace(found, new=value))
    out = edit_scalars(data, edits, shown) if edits else data
    for key in Pin.key_names():
        if getattr(pin, key) is None:
            out = remove_key(out, (*base, key), shown)
    if parse_pins(out, shown).pins[name].model_dump() != pin.model_dump():
        raise PatchkitError(
            finding(
                "PK549", f"{shown} cannot be edited by the tool", manifest=Position(shown), help="Move the pin by hand."
            )
        )
    return out


def _texts(values: Mapping[str, Any], base: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in values.items():
        if isinstance(value, str):
            yield (*base, key), value
        elif isinstance(value, Mapping):
            yield from _texts(value, (*base, key))


def new_manifests(project: Project, edits: Mapping[str, Sequence[ScalarEdit]]) -> dict[str, bytes]:
    """Manifests with accepted changes, by path."""
    return {name: edit_scalars((project.root / name).read_bytes(), found, name) for name, found in edits.items()}


def accepted_edits(entries: Sequence[EntryResult]) -> dict[str, list[ScalarEdit]]:
    """What acceptances change in manifests: proposed anchors and symbols that moved."""
    edits: dict[str, list[ScalarEdit]] = {}
    for result in entries:
        for delta in result.deltas:
            if delta.accepted and delta.status == "conflict" and delta.proposal is not None:
                item = delta.proposal
                edits.setdefault(item.where.file, []).append(ScalarEdit(item.where, item.old, item.new))
        at = result.named_at
        if at is not None and result.accepted:
            edits.setdefault(at.file, []).append(ScalarEdit(at, result.symbol, result.new_symbol))
    return edits


def write(
    project: Project,
    lock: dict[str, Any] | None,
    pins: Pins,
    manifests: Sequence[Manifest],
    opener: Opener,
    files: Mapping[str, bytes],
) -> tuple[list[str], list[Finding]]:
    """Generate everything and write it with the input files `files` (by path below the root). The caller holds `exclusive`.

    Args:
        project: the project.
        lock: the lock on disk; None when there is none.
        pins: the pins as they will be.
        manifests: the manifests as they are on disk.
        opener: opens upstreams.
        files: input files that change too, path below the root to content.

    Returns:
        the paths written, and findings that kept it from being written.

    Raises:
        PatchkitError: it cannot be written; the old state is intact.
    """
    replaced = {name: parse_manifest(data, name) for name, data in files.items() if _is_manifest(project, name)}
    all_manifests = tuple(replaced.get(m.path, m) for m in manifests)
    links = [link for name in files if (link := project.linked(project.root / name)) is not None]
    if links:
        return [], [project.outside(link) for link in links]
    workspace = Workspace(pins, opener)
    made = generate_modules(project, workspace, all_manifests, opener, RunOptions(jobs=1))
    results = with_installs(workspace, all_manifests, [result.pinned() for result in made], opener.options.store)
    errors = [f for r in results for f in r.findings if f.severity is Severity.ERROR]
    if errors or any(r.failed for r in results):
        return [], list(dict.fromkeys(errors))
    inputs = current_inputs(project)
    inputs |= {name: sha256(data.replace(b"\r\n", b"\n")) for name, data in files.items() if name in inputs}
    new = build_lock({}, lock, inputs, pins, results, opener, {})
    journal = json.dumps({"files": [_row(project, name, data) for name, data in sorted(files.items())]}).encode()
    extra = {**licence_files(project, new, opener), JOURNAL: journal}
    written, removed = write_generated(project, lock, new, results, extra)
    finish(project)
    hidden = f"/{JOURNAL}"
    return [*sorted(files), *(w for w in written if not w.endswith(hidden)), *removed], []


def _is_manifest(project: Project, name: str) -> bool:
    return name.endswith((".yaml", ".yml")) and name != project.shown(project.pins)


def _row(project: Project, name: str, data: bytes) -> dict[str, str | None]:
    path = project.root / name
    return {"path": name, "old": sha256(path.read_bytes()) if path.exists() else None, "text": data.decode()}


def journal_of(project: Project) -> Path:
    """The path of the journal of an interrupted `--write`."""
    return project.generated / JOURNAL


def finish(project: Project) -> bool:
    """End an interrupted write: the generated folder is the new one already, the inputs follow.

    Returns:
        whether there was one.

    Raises:
        PatchkitError: the journal is not one of the tool's (PK116), or an input was edited in between (PK547); nothing is
            overwritten.
    """
    path = journal_of(project)
    todo = []
    for name, old, data in _rows(project, path):
        place = project.root / name
        now = place.read_bytes() if place.exists() else None
        if now == data:
            continue
        if (sha256(now) if now is not None else None) != old:
            raise PatchkitError(
                finding(
                    "PK547",
                    f"an upgrade was interrupted, and {name} was edited since: it is left as it is",
                    manifest=Position(name),
                    generated=Position(project.shown(path)),
                    help=f"Restore {name} and run the command again; or restore generated/ from version control and "
                    f"delete {project.shown(path)} to give the upgrade up.",
                )
            )
        todo.append((place, data))
    for place, data in todo:
        put(place, data)
    path.unlink()
    return True


def _rows(project: Project, path: Path) -> list[tuple[str, str | None, bytes]]:
    """The rows of a journal: path below the root, digest before (None: no file), content.

    Whoever can commit a file can commit a journal: only what an upgrade writes is taken from one.

    Raises:
        PatchkitError: it is none, or names another file (PK116).
    """
    link = project.linked(path)
    try:
        if link is not None:
            raise ValueError(f"{project.shown(link)} is a symbolic link")
        found = _Journal.model_validate_json(read_regular(path))
        rows = [(row.path, row.old, row.text.encode()) for row in found.files]
    except (ValueError, OSError) as error:
        problems = error.errors(include_url=False) if isinstance(error, ValidationError) else []
        raise _no_journal(project, path, problems[0]["msg"] if problems else str(error)) from error
    known = {project.shown(p) for p in (project.pins, path_of(project), *project.manifest_files())}
    for name, _, _ in rows:
        if name not in known:
            raise _no_journal(project, path, f"it names {name!r}, which no upgrade writes")
        if (link := project.linked(project.root / name)) is not None:
            raise _no_journal(project, path, f"{project.shown(link)} is a symbolic link")
    return rows


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    path: str
    old: str | None
    text: str


class _Journal(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    files: tuple[_Row, ...]


def _no_journal(project: Project, path: Path, why: str) -> PatchkitError:
    shown = project.shown(path)
    return PatchkitError(
        finding(
            "PK116",
            f"{shown} is no journal of an upgrade: {why}",
            generated=Position(shown),
            help=f"Nothing was written. Delete {shown}; `afd-patchkit upgrade --write` makes a new one when it needs it.",
        )
    )


def put(path: Path, data: bytes) -> None:
    """Write an input file in one step.

    Raises:
        PatchkitError: it cannot be written (PK111).
    """
    try:
        replace_file(path, data)
    except OSError as error:
        raise PatchkitError(
            finding("PK111", f"{path.name} cannot be written: {error.strerror or error}", manifest=Position(str(path)),
                    help="Mend the permissions or free the disk, and run it again: it goes on where it stopped.")
        ) from error  # fmt: skip


def recover(project: Project, *, write: bool) -> list[Finding]:
    """What an interrupted `--write` left: ended when this run may write, else said.

    Raises:
        PatchkitError: something is left and this run must not write (PK546).
    """
    if not os.path.lexists(journal_of(project)):
        return []
    place = Position(project.shown(journal_of(project)))
    if write:
        finish(project)
        return [finding("PK654", "an upgrade that was interrupted is finished now", generated=place)]
    raise PatchkitError(
        finding(
            "PK546",
            "an upgrade was interrupted while it wrote: generated/ is new, pins.yaml may be old",
            generated=place,
            help="Run `afd-patchkit regen` (or the same upgrade with --write again): it ends what was begun.",
        )
    )
