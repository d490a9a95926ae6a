"""The shape of the lock: which keys hold what. Cheap to import, and without a library for that reason.

A specification is a type, a tuple of alternatives, a list with the specification of its items, or a mapping: a key that ends
with `?` may be missing, `*` stands for every other key. A key that no specification names is left alone: a newer tool's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NUMBERS = [int]
_TEXTS = [str]
_NONE = type(None)

_CONTRACT = {
    "kind": str,
    **dict.fromkeys(("origin?", "body?", "gives?", "holds?"), str),
    **dict.fromkeys(
        ("takes?", "fields?", "members?", "bases?", "abstract?", "accessors?", "decorators?", "made?"), _TEXTS
    ),
    "parts?": [{"*": (str, _TEXTS)}],
    "*": (str, bool, _TEXTS, {"*": (str, _TEXTS)}),
}
_EDIT = {
    "operation": str,
    "span": _NUMBERS,
    "lines": _NUMBERS,
    "emitted": str,
    "touched": str,
    "headers": _TEXTS,
    "before": (str, _NONE),
    "after": (str, _NONE),
    "bindings": _TEXTS,
    "holder?": str,
    "arguments?": _TEXTS,
}
_SYMBOL = {
    **dict.fromkeys(("pin", "symbol", "file", "sha256", "line_digests"), str),
    "lines": [_NUMBERS],
    "body": (str, _NONE),  # a constant has none
}
_ENTRY = {
    "kind": str,
    "output": str,
    "part?": str,
    **{f"{key}?": spec for key, spec in _SYMBOL.items()},
    **dict.fromkeys(("parameters?", "shape?", "reads?", "decorators?"), _TEXTS),
    "signature?": str,
    **{key: {"*": str} for key in ("watch?", "taken?", "rebindings?")},
    "name_edits?": [_NUMBERS],
    "completed?": {"*": _TEXTS},
    "deltas?": {"*": [_EDIT]},
    "references?": {"*": {"contract": _CONTRACT, "uses": _TEXTS}},
}
_COUNTS = dict.fromkeys(("deltas", "entries", "files", "lines", "upstream_lines", "verbatim_lines"), int)
_MODULE = {
    "counts": _COUNTS,
    "entries": {"*": dict},
    "files": {"*": _TEXTS},
    "manifest": str,
    "parts": _TEXTS,
    "retired": {"*": str},
    "warnings": _TEXTS,
    "asks?": _TEXTS,
    "installs?": [
        {
            **dict.fromkeys(("symbol", "with", "mode", "pin", "original"), str),
            "class": bool,
            "parts": [[(int, str)]],
            "layers": int,
            "roots": _TEXTS,
            "aliases": (str, _TEXTS),
            "native": _TEXTS,
            "sites": [_TEXTS],
        }
    ],
    "excused?": {"*": str},
    "sha256?": str,
    "outline?": str,
}
_PIN = {
    "distribution": str,
    "version": str,
    "role": str,
    "packages": _TEXTS,
    "files": {"*": {"raw": str, "text": str}},
    "artifact": {"source": str, "file": str, "sha256": (str, _NONE)},
    "commit?": str,
    "git?": str,
    "set?": {"*": _TEXTS},
    "completed?": {"*": str},
    "licences?": {"*": str},
}
_LOCK = {
    "schema": int,
    "engine": int,
    "tool": str,
    "inputs": {"*": str},
    "pins": {"*": _PIN},
    "modules": {"*": _MODULE},
    "warnings": _TEXTS,
    "names?": _TEXTS,
    "overrides?": {"*": str},
}


def wrong_lock(lock: Mapping[str, Any]) -> str | None:
    """What is wrong with a lock, entries left out; None when nothing is."""
    found = _wrong(lock, _LOCK, "")
    if found is not None:
        return found
    for name, module in lock["modules"].items():
        if ("sha256" in module) != ("outline" in module):
            return f"`modules.{name}` has a module without its outline, or the other way round"
        for pin, paths in module["files"].items():
            missing = [path for path in paths if path not in lock["pins"].get(pin, {"files": ()})["files"]]
            if missing or pin not in lock["pins"]:
                return f"`modules.{name}.files.{pin}` names a file that `pins` does not"
    return None


def wrong_entries(lock: Mapping[str, Any]) -> str | None:
    """What is wrong with the records of entries; None when nothing is."""
    for name, module in lock["modules"].items():
        for entry, record in module["entries"].items():
            place = f"modules.{name}.entries.{entry}"
            found = _wrong(record, _ENTRY, place)
            if found is None and record["kind"] != "owned":
                found = _wrong(record, _SYMBOL, place)
            if found is not None:
                return found
            ranges = [*record.get("lines", ()), *record.get("name_edits", ())]
            ranges += [
                edit[key] for edits in record.get("deltas", {}).values() for edit in edits for key in ("span", "lines")
            ]
            if any(len(pair) != 2 for pair in ranges):
                return f"`{place}` has a range that is no pair"
    return None


def _wrong(value: object, spec: Any, place: str) -> str | None:
    if isinstance(spec, tuple):
        found = [_wrong(value, one, place) for one in spec]
        return None if None in found else found[0]
    if isinstance(spec, list):
        if not isinstance(value, list):
            return f"`{place}` is no list"
        if isinstance(spec[0], type) and all(type(item) is spec[0] for item in value):
            return None
        return next(
            (f for n, item in enumerate(value) if (f := _wrong(item, spec[0], f"{place}.{n}")) is not None), None
        )
    if isinstance(spec, dict):
        return _wrong_mapping(value, spec, place)
    return (
        None if type(value) is spec else f"`{place}` is {'no' if value is not None else 'null, and no'} {_NOUNS[spec]}"
    )


_NOUNS = {str: "text", int: "number", bool: "truth value", dict: "mapping", _NONE: "null"}


def _wrong_mapping(value: object, spec: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, dict):
        return f"`{place}` is no mapping" if place else "it is not a lock"
    for key, one in spec.items():
        name = key.removesuffix("?")
        if key == "*":
            continue
        if name not in value:
            if key == name:
                return f"`{place}.{name}` is missing".replace("`.", "`")
        elif (found := _wrong(value[name], one, f"{place}.{name}".removeprefix("."))) is not None:
            return found
    if "*" in spec:
        for key in value:
            if key not in spec and f"{key}?" not in spec:
                found = _wrong(value[key], spec["*"], f"{place}.{key}".removeprefix("."))
                if found is not None:
                    return found
    return None
