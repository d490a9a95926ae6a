"""Nodes as the values that pydantic validates: what YAML reads, with the place of every text and every mapping."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Union

from afd_patchkit.findings.finding import Position
from afd_patchkit.manifest.nodes import Mapping, Node, Scalar, Sequence

Path = tuple[Union[str, int], ...]
"""The keys and indices that lead to a node."""


class TextScalar(str):
    """A scalar that is text to every YAML reader.

    Attributes:
        scalar: where and how it is written.
        path: what leads to it.
    """

    scalar: Scalar
    path: Path


class Table(dict[Any, Any]):
    """A mapping.

    Attributes:
        node: where it is written, and all its keys: also those whose value was refused and is not here.
        path: what leads to it.
    """

    node: Mapping
    path: Path

    @property
    def written(self) -> dict[str, Position]:
        """All keys, with their places."""
        return self.node.keys

    def at(self, key: str) -> Position:
        """Where the value of `key` stands; the mapping itself when it has none."""
        value = self.node.get(key)
        return value.position if value is not None else self.node.position


class Misread:
    """A plain scalar that YAML readers take for something else than text, and that is no value of ours."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def value_of(node: Node, holes: Collection[Path] = (), path: Path = ()) -> Any:
    """The value of a node; what lies at `holes` is left out."""
    if isinstance(node, Scalar):
        return _scalar(node, path)
    if isinstance(node, Sequence):
        return tuple(
            value_of(item, holes, (*path, n)) for n, item in enumerate(node.items) if item and (*path, n) not in holes
        )
    table = Table()
    table.node, table.path = node, path
    for key, value in node.pairs:
        below = (*path, key.text)
        if value is not None and below not in holes:
            name = _scalar(key, below)
            table[Misread(key.text) if name is True or name is False else name] = value_of(value, holes, below)
    return table


def child(node: Node | None, step: str | int) -> Node | None:
    """The item or the value of a key of `node`; None when there is none."""
    if isinstance(node, Sequence):
        return node.items[step] if isinstance(step, int) and 0 <= step < len(node.items) else None
    return node.get(str(step)) if isinstance(node, Mapping) else None


def locate(root: Node, loc: tuple[str | int, ...], holes: Collection[Path]) -> tuple[Path, Node]:
    """The node that pydantic's `loc` speaks of. Parts of it that are no key are names of a union's branches."""
    path: Path = ()
    node = root
    for part in loc:
        step = str(part) if isinstance(node, Mapping) else part
        if isinstance(node, Sequence) and isinstance(part, int):
            step = [n for n, item in enumerate(node.items) if item and (*path, n) not in holes][part]
        below = child(node, step)
        if below is not None:
            path, node = (*path, step), below
    return path, node


def whole(text: str) -> int | None:
    """The number that every YAML reader takes `text` for: decimal, without leading zeros."""
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,17}", text) else None


def _scalar(node: Scalar, path: Path) -> TextScalar | int | Misread:
    reading = node.reading
    if reading == "text":
        text = TextScalar(node.text)
        text.scalar, text.path = node, path
        return text
    if reading == "true or false" and node.text.lower() in ("true", "false"):
        return node.text.lower() == "true"
    number = whole(node.text) if reading == "a number" else None
    return Misread(node.text) if number is None else number


def shortened(text: str) -> str:
    """`text` on one line, for messages."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
