"""What pydantic refuses, said as findings: the place from `loc`, the words from what stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, field

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.findings.nearest import did_you_mean, nearest
from afd_patchkit.manifest.nodes import Document, Mapping, Node, Scalar, Sequence
from afd_patchkit.manifest.texts import class_help
from afd_patchkit.manifest.values import Path, child, locate, shortened
from afd_patchkit.model import ClassGroup, Entry, GroupEntry, Model

_WANTED = {
    "string_type": "text",
    "is_instance_of": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "a mapping": "a mapping",
}
"""pydantic's errors of type, and what was wanted."""

NOUNS = {
    "TakeBody": "`take`", "Take": "`take`", "Range": "a range", "ClauseOf": "a clause (`of`, `clause`)", "CallChange": "`call`",
    "ClauseChange": "`clause`", "ParameterChange": "`parameter`", "DecoratorChange": "`decorator`",
    "MemberChange": "`member` or `field`", "Delta": "a delta", "InPattern": "`contains` or `absent`", "Probe": "a probe",
    "Entry": "an entry", "ClassGroup": "a class", "GroupEntry": "a class item", "Manifest": "a manifest", "Git": "`git`",
    "Pin": "a pin", "Pins": "pins.yaml",
}  # fmt: skip


@dataclass
class _Place:
    """What is wrong at one node, or at one key."""

    node: Node
    key: Scalar | None = None
    wanted: list[str] = field(default_factory=list)


class Refusals:
    """The errors of one validation.

    Attributes:
        holes: what is to be left out for what remains to be valid.
        lacking: what cannot be, because what it needs is missing; to be left out when all about its parts is said.
    """

    def __init__(self, document: Document, root: Node, holes: set[Path], models: Map[Path, type[Model]]) -> None:
        self.holes: set[Path] = set()
        self.lacking: set[Path] = set()
        self._document, self._root, self._known, self._models = document, root, holes, models

    def findings(self, error: ValidationError) -> Iterator[Finding]:
        """The findings of the errors, and `holes` with them."""
        places: dict[tuple[Path, bool], _Place] = {}
        other: set[Path] = set()
        for item in error.errors(include_url=False):
            loc = item["loc"][:-1] if item["type"] == "missing" else item["loc"]
            path, node = locate(self._root, loc, self._known)
            wanted = _wanted(item)
            if wanted:
                is_key = "[key]" in item["loc"]
                place = places.setdefault((path, is_key), _Place(node, _key(self._root, path) if is_key else None))
                place.wanted += [word for word in wanted if word not in place.wanted]
                continue
            other.add(path)
            made = self._other(item, path, node)
            if made is not None:
                yield labelled(made, self._document, path)
        for (path, _), place in places.items():
            below = (p[: len(path)] == path for p in (*other, *(p for p, _ in places if p != path)))
            if not any(below):  # else another branch of a union fits, but for what was said of it
                self.holes.add(path)
                yield labelled(self._misfit(place, name_of(path, self._models)), self._document, path)

    def _other(self, error: ErrorDetails, path: Path, node: Node) -> Finding | None:
        kind, context = error["type"], error.get("ctx", {})
        if kind == "finding":
            said = context["finding"]
            assert isinstance(said, Finding)
            self.holes |= {path} if context["unusable"] else set()
            return said
        if kind == "too_short" and (below := _below(node, path)):
            self.lacking |= {path} if self._known.issuperset(below) else set()
            return None  # its items were wrong, and said to be
        if kind == "missing":
            self.lacking.add(path)
            return self._missing(str(error["loc"][-1]), path, node)
        self.holes.add(path)
        if kind in ("extra_forbidden", "invalid_key"):
            return self._unknown(path)
        message = "give at least one item" if kind == "too_short" else f"{error['msg'][:1].lower()}{error['msg'][1:]}"
        return finding("PK004", f"{name_of(path, self._models)}: {message}", manifest=node.position)

    def _unknown(self, path: Path) -> Finding:
        cls, key = self._models[path[:-1]], _key(self._root, path)
        assert key is not None
        known = cls.key_names()
        if (help_ := self._class_help(cls, key, path)) is not None:
            return finding(
                "PK002", f"{_noun(cls)} has no key `{shortened(key.text)}`", manifest=key.position, help=help_
            )
        help_ = did_you_mean(key.text, known, f"{_noun(cls)} takes {', '.join(known)}.")
        return finding("PK002", f"{_noun(cls)} has no key `{shortened(key.text)}`", manifest=key.position, help=help_)

    def _class_help(self, cls: type[Model], key: Scalar, path: Path) -> str | None:
        """What to do where an entry is given a class, or a class what its members have; None for other slips."""
        if cls is Entry and key.text == "class":
            node = child(self._node(path[:-1]), "class")
            name = node.text if isinstance(node, Scalar) else node.text("name") if isinstance(node, Mapping) else None
            return class_help(shortened(name or "..."))
        if cls in (GroupEntry, ClassGroup) and key.text in Entry.key_names():
            return "The entries of a class say that, one by one: `members: [{symbol: ..., ...}]`."
        return None

    def _node(self, path: Path) -> Node | None:
        node: Node | None = self._root
        for step in path:
            node = child(node, step)
        return node

    def _missing(self, key: str, path: Path, node: Node) -> Finding | None:
        if isinstance(node, Mapping) and key in node.keys:
            return None  # its value was wrong, and said to be
        cls = self._models[path]
        text = next(info.description for name, info in cls.model_fields.items() if key in (name, info.alias))
        help_ = f"It says: {text}." if text else None
        return finding("PK009", f"{_noun(cls)} needs `{key}`", manifest=node.position, help=help_)

    def _misfit(self, place: _Place, name: str) -> Finding:
        """A value (or a key) of the wrong type."""
        node, wanted = place.key or place.node, place.wanted
        if place.key is not None:
            name = f"the key {name}"
        if isinstance(node, Scalar):
            if node.reading == "nothing" and place.key is None:
                return finding(
                    "PK004", f"{name} has no value", manifest=node.position, help="Give a value, or leave the key out."
                )
            number = node.reading == "a number" and "a whole number" in wanted
            switch = node.reading == "true or false" and "true or false" in wanted
            if node.reading != "text" and "text" in wanted and not number and not switch:
                text = shortened(node.text)
                message = f"{name} must be quoted: YAML reads {text} as {node.reading}, this must be text"
                return finding("PK005", message, manifest=node.position, help=f'Write "{text}".')
        given = "a list" if isinstance(node, Sequence) else "a mapping"
        help_ = None
        if isinstance(node, Scalar):
            given = f"`{shortened(node.text)}`" if not node.style else f'"{shortened(node.text)}"'
            near = nearest(f"`{node.text}`", [word for word in wanted if word[0] == "`"])
            help_ = f"Did you mean {near[0]}?" if near and not node.style else None
        if "a list" in wanted and not isinstance(node, Sequence):
            help_ = "Write one item per line, each behind `- `."
        return finding(
            "PK004", f"{name} must be {' or '.join(wanted)}, not {given}", manifest=node.position, help=help_
        )


def name_of(path: Path, models: Map[Path, type[Model]]) -> str:
    """What lies at `path`, for messages."""
    if not path:
        return "the file"
    *above, last = path
    outer = tuple(above)
    if isinstance(last, int):
        return f"item {last + 1} of {name_of(outer, models)}"
    name = f"`{shortened(last)}`"
    return name if outer in models else f"{name} of {name_of(outer, models)}"


def labelled(item: Finding, document: Document, path: Path) -> Finding:
    """A finding with the names of the entry and the outermost delta that lie on `path`."""
    entry = delta = None
    node, module = document.root, document.file
    if isinstance(node, Mapping):
        module = node.text("module") or module
    for n, step in enumerate(path):
        node = child(node, step)
        if not isinstance(node, Mapping):
            continue
        if path[:1] == ("entries",) and n == 1 and "class" in node.keys:
            entry = None
        elif path[:1] == ("entries",) and step == "class" and n == 2:
            entry = f"{module}::{shortened(node.text('name') or '?')}"
        elif path[:1] == ("entries",) and (n == 1 or (n == 4 and path[3] == "members")):
            entry = f"{entry}." if entry else f"{module}::"
            symbol = (node.text("symbol") or "").strip()
            name = node.text("name") or symbol.rpartition(":")[2].rpartition(".")[2] or node.text("part") or "?"
            entry += shortened(name)
        elif isinstance(step, int) and path[n - 1] == "deltas" and delta is None:
            delta = shortened(node.text("name") or "") or None
    return item.at(entry=entry, delta=delta)


def _below(node: Node, path: Path) -> list[Path]:
    if isinstance(node, Sequence):
        return [(*path, n) for n, _ in enumerate(node.items)]
    return [(*path, key.text) for key, _ in node.pairs] if isinstance(node, Mapping) else []


def _wanted(error: ErrorDetails) -> list[str]:
    if error["type"] == "literal_error":
        return [f"`{a or b}`" for a, b in re.findall(r"'([^']*)'|(\d+)", str(error.get("ctx", {}).get("expected")))]
    word = _WANTED.get(error["type"])
    return [word] if word else []


def _key(root: Node, path: Path) -> Scalar | None:
    """The key at the end of `path`."""
    node: Node | None = root
    for step in path[:-1]:
        node = child(node, step)
    return next((key for key, _ in node.pairs if key.text == path[-1]), None) if isinstance(node, Mapping) else None


def _noun(cls: type[Model]) -> str:
    return NOUNS.get(cls.__name__, cls.__name__)
