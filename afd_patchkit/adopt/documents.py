"""The manifests of adopted copies, as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from afd_patchkit.adopt.needs import import_text
from afd_patchkit.adopt.result import Adopted, Where
from afd_patchkit.adopt.texts import CodeText
from afd_patchkit.adopt.yaml_text import manifest_text
from afd_patchkit.copies.audit import Read
from afd_patchkit.copies.pairing import CopyPair
from afd_patchkit.model import Pin
from afd_patchkit.names.bindings import module_bindings


def pins_text(pins: Mapping[str, Pin]) -> str:
    """`pins.yaml` for these pins."""
    rows = {name: {"distribution": pin.distribution, "version": pin.version} for name, pin in pins.items()}
    return manifest_text({"schema": 1, "pins": rows})


def manifest_files(
    ready: Sequence[Adopted], own: tuple[CodeText, set[str]], read: Read, pins: Mapping[str, Pin], where: Where
) -> dict[str, str]:
    """The manifest of some copies of one file, and that of the helpers that they need: path, to text.

    Args:
        ready: the copies, each with its entry.
        own: text of the helpers, and the names that it defines.
        read: the file as it was read.
        pins: the upstreams.
        where: where the manifests go.
    """
    hand = ready[0].pair.hand.file
    imports = {t for c in ready for t in c.needs.imports.values()}
    helpers = sorted({n for c in ready for n in c.needs.own} & own[1])
    if helpers:
        imports.add(f"from {where.module}_own import {', '.join(helpers)}")
    entries: list[Any] = []
    groups: dict[str, dict[str, Any]] = {}
    for item in ready:
        pair = item.pair
        entry = dict(item.entry or {})
        if not pair.hand.classes:
            entries.append(entry)
            continue
        cls = pair.hand.classes[-1]
        if cls.name not in groups:
            bases = [ast.unparse(b) for b in cls.bases]
            groups[cls.name] = {"name": cls.name, **({"bases": bases} if bases else {}), "members": []}
            doc = ast.get_docstring(cls)
            if doc:
                groups[cls.name]["doc"] = " ".join(doc.split())
            entries.append({"class": groups[cls.name]})
            imports |= _base_imports(bases, pair)
        groups[cls.name]["members"].append(entry)
    data: dict[str, Any] = {
        "schema": 1,
        "module": f"{where.folder}/{where.stem}.py",
        "summary": f"What {hand.path.name} copied by hand.",
        "pin": next(iter(pins)),
    }
    if imports:
        data["imports"] = [CodeText(t) for t in sorted(imports)]
    data["entries"] = entries
    if installs := _installs(ready, read):
        data["installs"] = installs
    files = {f"{where.folder}/{where.stem}.yaml": manifest_text(data)}
    if helpers:
        files[f"{where.folder}/parts/{where.stem}_own.py"] = str(own[0])
        files[f"{where.folder}/{where.stem}_own.yaml"] = manifest_text(
            {
                "schema": 1,
                "module": f"{where.folder}/{where.stem}_own.py",
                "summary": f"Helpers of {hand.path.name}.",
                "pin": next(iter(pins)),
                "entries": [
                    {
                        "kind": "owned",
                        "part": f"parts/{where.stem}_own.py",
                        "reason": f"the entries that were adopted from {hand.path.name} call them.",
                        "forwarded": "not-needed",
                    }
                ],
            }
        )
    return files


def _installs(ready: Sequence[Adopted], read: Read) -> list[dict[str, Any]]:
    """What the file assigned to upstream's attributes, as far as it became an entry."""
    targets = {i.target for i in read.installs if not i.foreign}
    found: list[dict[str, Any]] = []
    for item in ready:
        reference = item.pair.symbol.reference
        if item.pair.hand.classes or reference.replace(":", ".") not in targets:
            continue
        name = (item.entry or {}).get("name")
        found.append({"symbol": reference, **({"with": name} if name else {})})
    return found


def _base_imports(bases: Sequence[str], pair: CopyPair) -> set[str]:
    found = set()
    for base in bases:
        binding = module_bindings(pair.hand.file.source).get(base.partition(".")[0])
        text = import_text(binding, pair.hand.file.source) if binding is not None else None
        if text:
            found.add(text)
    return found
