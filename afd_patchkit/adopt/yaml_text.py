"""A manifest as text, as a person would write it: code in block scalars, prose in quotes where YAML would read it otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from afd_patchkit.adopt.texts import CodeText

_PLAIN = re.compile(r"[A-Za-z_][\w ./()'-]*(?<! )$")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none"})
_SYMBOL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")


def manifest_text(data: Mapping[str, Any]) -> str:
    """The text of a manifest, or of any mapping of the same values."""
    return "".join(f"{row}\n" for row in _mapping(data, 0))


def entry_text(data: Any, indent: int) -> str:
    """The text of a list or mapping inside one, `indent` columns to the right."""
    rows = _sequence(data, indent) if isinstance(data, Sequence) else _mapping(data, indent)
    return "".join(f"{row}\n" for row in rows)


def _mapping(data: Mapping[Any, Any], indent: int) -> Iterator[str]:
    pad = " " * indent
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield f"{pad}{name}:"
            yield from _mapping(value, indent + 2)
        elif isinstance(value, (list, tuple)):
            yield f"{pad}{name}:"
            yield from _sequence(value, indent + 2)
        else:
            yield from _scalar(f"{pad}{name}:", value, indent + 2)


def _sequence(data: Sequence[Any], indent: int) -> Iterator[str]:
    pad = " " * indent
    for item in data:
        if isinstance(item, Mapping):
            rows = list(_mapping(item, indent + 2))
            yield f"{pad}- {rows[0].lstrip()}"
            yield from rows[1:]
        else:
            yield from _scalar(f"{pad}-", item, indent + 2)


def _scalar(head: str, value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, CodeText) and not _SYMBOL.match(value):
        text = value.strip("\n")
        # the indentation must be said where the first line has some of its own
        mark = f"{2}" if text[:1] in " \t" else ""
        yield f"{head} |{mark}"
        yield from ((" " * indent + row) if row.strip() else "" for row in text.split("\n"))
    elif isinstance(value, bool):
        yield f"{head} {'true' if value else 'false'}"
    elif isinstance(value, int):
        yield f"{head} {value}"
    else:
        text = str(value)
        plain = (_PLAIN.match(text) and text.lower() not in _WORDS) or _SYMBOL.match(text)
        yield f"{head} {text if plain else json.dumps(text, ensure_ascii=False)}"
