"""Entries that an earlier run generated from the same inputs.

A manifest that changes in one place is generated again as a whole, yet its other entries come out as before. What makes an
entry is its own manifest text, what its module provides by itself, the artifacts of its pins, and the code of the engine;
where all of that is the same, the kept product is the one that would come out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from afd_patchkit.assemble.product import Product, from_json, to_json
from afd_patchkit.assemble.sources import engine_digest
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.digests import sha256
from afd_patchkit.manifest.nested import nested, takes_of
from afd_patchkit.model import Code, Entry, Model, Probe
from afd_patchkit.upstream.cache import Store
from afd_patchkit.version import ENGINE, __version__

FORMAT = 7
"""Of the kept JSON data; raised when `product.to_json` writes something else."""


@dataclass(frozen=True)
class Inputs:
    """What makes one entry, artifacts aside.

    Attributes:
        entry: the manifest's entry.
        pin: its pin; None for owned code.
        ref: `module.py::name`.
        module: dotted name of the generated module.
        marker: comment prefix of fences.
        group: name of the generated class that it is a member of, if any.
        above: names that this class binds above it.
        provided: names that the generated module binds by itself, and what they are.
        removal: the conditions that count for it.
        part: text of the owned file that it stands for.
    """

    entry: Entry
    pin: str | None
    ref: str
    module: str
    marker: str
    group: str | None
    above: frozenset[str]
    provided: Mapping[str, str]
    removal: tuple[Probe, ...]
    part: str | None


class Memo:
    """Products by their inputs, in the user's cache.

    Args:
        store: the cache.
        workspace: the upstreams of this run.
        fresh: find nothing, so that everything is generated and kept anew.
    """

    def __init__(self, store: Store, workspace: Workspace, *, fresh: bool = False) -> None:
        self._store, self._workspace, self._fresh = store, workspace, fresh

    def find(self, inputs: Inputs) -> Product | None:
        """The product of an earlier run; None when there is none."""
        key = self._key(inputs)
        kept = self._store.document("entries", key) if key is not None and not self._fresh else None
        return from_json(kept, inputs.entry.where, self._workspace.read) if kept is not None else None

    def keep(self, inputs: Inputs, product: Product) -> None:
        """Keep `product`, so that later runs find it."""
        key = self._key(inputs)
        if key is not None and all(f.manifest == inputs.entry.where and f.generated is None for f in product.findings):
            self._store.put_document(to_json(product), "entries", key)

    def _key(self, inputs: Inputs) -> str | None:
        """Digest of all inputs; None when an upstream is a tree, which may change at any time, or the engine cannot be read."""
        engine = engine_digest()
        if engine is None:
            return None
        artifacts = {}
        for name in sorted(self._pins(inputs)):
            artifact = self._workspace.upstream(name).artifact
            if artifact.identity is None:
                return None
            artifacts[name] = [artifact.identity, self._workspace.describe(name)]
        facts = {
            **vars(inputs),
            "above": sorted(inputs.above),
            "entry": plain(inputs.entry),
            "removal": plain(inputs.removal),
        }
        return sha256(json.dumps([FORMAT, ENGINE, __version__, engine, artifacts, facts], sort_keys=True).encode())

    def _pins(self, inputs: Inputs) -> set[str]:
        """The pins that the entry is made from: its own, that of the code it runs on, those it takes from or watches."""
        entry, pins = inputs.entry, self._workspace.pins.pins
        found = {take.pin for delta in nested(entry.deltas) for take in takes_of(delta)}
        if inputs.pin is not None:
            found.add(inputs.pin)
            found |= {name for name, pin in pins.items() if pin.distribution == pins[inputs.pin].distribution}
        watched = [code.text.strip().partition(":")[0] for code in entry.watch]
        return found | {name for name, pin in pins.items() if any(map(pin.provides, watched))}


def plain(value: Any) -> Any:
    """What a part of a manifest says, without its places in the file: JSON data."""
    if isinstance(value, Model):
        return {name: plain(getattr(value, name)) for name in sorted(value.model_fields_set) if name != "where"}
    if isinstance(value, Code):
        return value.text
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value
