"""Mutations of a manifest: which deltas and entries it has, and its text without one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Position
from afd_patchkit.manifest.load import parse_manifest
from afd_patchkit.manifest.nested import takes_of
from afd_patchkit.model import Delta, GroupEntry, Manifest


@dataclass(frozen=True)
class Mutation:
    """One delta, or one entry, that is left out.

    Attributes:
        module: the generated module: a path below the generated root.
        entry: `module.py::name`.
        delta: name of the delta; empty when the whole entry is left out.
        where: place of its mapping in the manifest.
        key: the key that goes with it, because it is the only item there; empty when there are others.
        inner: names of the deltas inside of it.
    """

    module: str
    entry: str
    delta: str
    where: Position
    key: str = ""
    inner: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`module.py::entry/delta`, without the folder of the set; for a whole entry without the delta."""
        module, _, entry = self.entry.partition("::")
        return f"{module.rpartition('/')[2]}::{entry}" + (f"/{self.delta}" if self.delta else "")


class CannotDrop(Exception):
    """The item does not stand on lines of its own."""


def mutations(data: bytes, file: str, *, entries: bool = False) -> list[Mutation]:
    """All deltas of a manifest, outer ones before those inside them; with `entries`, its entries instead.

    Raises:
        ManifestError: it is no manifest.
    """
    manifest = parse_manifest(data, file)
    return list(_entries(manifest) if entries else _deltas(manifest))


def upstream_scopes(data: bytes, file: str) -> tuple[str, set[str]]:
    """The module of a manifest, and which of its functions and classes are upstream's text.

    Raises:
        ManifestError: it is no manifest.
    """
    manifest = parse_manifest(data, file)
    entries = manifest.all_entries()
    labels = {manifest.ref(entry, group) for entry, group in entries if entry.kind in ("copy", "backport")}
    return manifest.module, {label.partition("::")[2] for label in labels}


def own_code(data: bytes, file: str, parts: Path) -> tuple[str, str]:
    """The module of a manifest, and a digest of its code that is no upstream text; empty when there is none.

    The rest of the manifest, and what the engine makes of it, decide nothing.

    Args:
        data: the manifest.
        file: its path, for messages.
        parts: the folder that paths of parts are relative to.
    """
    manifest = parse_manifest(data, file)
    found = []
    for entry, group in manifest.all_entries():
        text = (parts / entry.part).read_text(encoding="utf-8") if entry.part else entry.body and entry.body.text
        if text and entry.kind not in ("copy", "backport"):
            found.append(f"{manifest.ref(entry, group)}\n{text}")
    return manifest.module, hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:10] if found else ""


def _deltas(manifest: Manifest) -> Iterator[Mutation]:
    for entry, group in manifest.all_entries():
        label = manifest.ref(entry, group)
        for delta, siblings in _nested(entry.deltas):
            inner = tuple(d.name for items in _inside(delta) for d, _ in _nested(items))
            yield Mutation(manifest.module, label, delta.name, delta.where, "" if siblings > 1 else "deltas", inner)


def _entries(manifest: Manifest) -> Iterator[Mutation]:
    """Every entry; a class of one member goes with it."""
    for item in manifest.entries:
        if not isinstance(item, GroupEntry):
            yield Mutation(manifest.module, manifest.ref(item), "", item.where)
            continue
        members = item.class_.members
        for member in members:
            label = manifest.ref(member, item.class_)
            yield Mutation(manifest.module, label, "", member.where if len(members) > 1 else item.where)


def _inside(delta: Delta) -> Iterator[Sequence[Delta]]:
    """The lists of deltas inside a delta: of what it wraps, and of the texts that it takes."""
    yield delta.deltas
    for take in takes_of(delta):
        yield take.deltas


def _nested(deltas: Sequence[Delta]) -> Iterator[tuple[Delta, int]]:
    """All deltas, each with the number of items of its list."""
    for delta in deltas:
        yield delta, len(deltas)
        for items in _inside(delta):
            yield from _nested(items)


def without(data: bytes, file: str, mutation: Mutation) -> bytes:
    """The manifest without one item; every other line stays as it is.

    Raises:
        CannotDrop: the item does not stand on lines of its own, or more than it would go.
    """
    lines = data.decode("utf-8").splitlines(keepends=True)
    first, last = _lines(lines, mutation.where)
    if mutation.key:
        first = next(n for n in range(first - 1, -1, -1) if _says(lines[n]))
        if lines[first].strip() != f"{mutation.key}:":
            raise CannotDrop(f"{file}:{first + 1}: `{mutation.key}:` does not stand on a line of its own")
    text = "".join(lines[:first] + lines[last:]).encode()
    _proved(data, text, file, mutation)
    return text


def _lines(lines: Sequence[str], where: Position) -> tuple[int, int]:
    """First line of a list item, and the one behind its last."""
    first = where.line - 1
    head = lines[first][: where.column - 1]
    dash = head.find("-")
    if head.strip() != "-":
        raise CannotDrop(f"{where}: the item does not begin with `- ` on a line of its own")
    last = first + 1
    while last < len(lines) and not (lines[last].strip() and len(lines[last]) - len(lines[last].lstrip(" ")) <= dash):
        last += 1
    while not lines[last - 1].strip():  # blank lines part what stands around the item
        last -= 1
    return first, last


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _proved(old: bytes, new: bytes, file: str, mutation: Mutation) -> None:
    """Nothing but the item is gone, as far as the new text is a manifest; what makes it none is found by `regen`."""
    try:
        left = [m.name for entries in (False, True) for m in mutations(new, file, entries=entries)]
    except ManifestError:
        return
    gone = {mutation.delta, *mutation.inner}
    wanted = [
        m.name
        for entries in (False, True)
        for m in mutations(old, file, entries=entries)
        if m.entry != mutation.entry or (mutation.delta and m.delta not in gone)
    ]
    if left != wanted:
        raise CannotDrop(f"{mutation.where}: more than the item would go")
