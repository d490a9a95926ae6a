"""What the manifests say about one entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from afd_patchkit.assemble.comments import describe_probes
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.manifest.nested import inside
from afd_patchkit.project import Project
from afd_patchkit.refs import names_of

if TYPE_CHECKING:
    from afd_patchkit.model import ClassGroup, Delta, Entry, Manifest, Pins


def entry_facts(project: Project, topic: str) -> dict[str, Any]:
    """The facts of the entry `module.py::name`, as plain data.

    Any part of the name that is unique will do: `step`, `Runner.step`, `runner.py::Runner.step`.

    Raises:
        ManifestError: there is no such entry, or several (PK093).
    """
    loaded = load_manifests(project)
    labels = entries_by_label(loaded.manifests)
    label = pick_entry(labels, topic)
    return _facts(label, *labels[label], loaded.pins)


def entries_by_label(manifests: Iterable[Manifest]) -> dict[str, tuple[Manifest, Entry, ClassGroup | None]]:
    """Every entry by its `module.py::name`."""
    return {
        manifest.ref(entry, group): (manifest, entry, group)
        for manifest in manifests
        for entry, group in manifest.all_entries()
    }


def pick_entry(labels: Collection[str], topic: str) -> str:
    """The one label that `topic` means: as findings print it, or its end where that is enough.

    Raises:
        ManifestError: there is none, or there are several (PK093).
    """
    found = [topic] if topic in labels else [label for label in labels if topic in names_of(label)]
    if not found:
        names = {name: label for label in labels for name in names_of(label)}
        near = dict.fromkeys(names[name] for name in nearest(topic, names))
        raise _unclear(f"there is no entry {topic!r}", near)
    if len(found) > 1:
        raise _unclear(f"{topic!r} names several entries", found)
    return found[0]


def _unclear(message: str, names: Iterable[str]) -> ManifestError:
    near = ", ".join(names)
    return ManifestError(
        finding("PK093", message, help=f"Write one of: {near}." if near else "Write `module.py::name`.")
    )


def _facts(label: str, manifest: Manifest, entry: Entry, group: ClassGroup | None, pins: Pins) -> dict[str, Any]:
    name = entry.pin or manifest.pin
    pin = pins.pins.get(name) if name else None
    where = entry.where
    return {
        "entry": label,
        "manifest": {"file": where.file, "line": where.line or None, "column": where.column or None},
        "kind": entry.kind,
        "symbol": entry.symbol and entry.symbol.text.strip(),
        "class": group and group.name,
        "pin": pin and {"name": name, "distribution": pin.distribution, "version": pin.version, "role": pin.role},
        "reason": entry.reason,
        "functionality": entry.functionality,
        "forwarded": entry.forwarded,
        "part": entry.part,
        "via": entry.via,
        "watch": [code.text.strip() for code in entry.watch],
        "depends_on": list(entry.depends_on),
        "late": entry.late if isinstance(entry.late, bool) else list(entry.late),
        "remove_when": [describe_probes([probe]) for probe in entry.remove_when or manifest.remove_when],
        "removal": entry.removal,
        "deltas": [_delta(delta) for delta in entry.deltas],
    }


def _delta(delta: Delta) -> dict[str, Any]:
    return {
        "name": delta.name,
        "operation": delta.operation,
        "line": delta.where.line or None,
        "reason": delta.reason,
        "frozen": delta.frozen,
        "deltas": [_delta(inner) for inner in inside(delta)],
    }
