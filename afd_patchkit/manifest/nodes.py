"""YAML text to nodes with positions: a strict, small subset of YAML, read event by event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Union

import yaml

from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Code

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH = 100
_FORBIDDEN = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_NAMED = {"\r": "a carriage return without line feed", "\ufeff": "a byte order mark", "\x0c": "a form feed"}

# What YAML 1.1 or 1.2 readers make of a plain scalar; text that one of them reads as something else must be quoted.
_NUMBER = re.compile(
    r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-f_]+|[0-9][0-9_]*(:[0-5]?[0-9])*(\.[0-9_]*)?(e[-+]?[0-9]+)?"
    r"|\.[0-9_]+(e[-+]?[0-9]+)?|\.inf)|\.nan",
    re.IGNORECASE,
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?")
_SWITCH = re.compile("true|false|yes|no|on|off", re.IGNORECASE)
_NOTHING = re.compile("~|null|", re.IGNORECASE)

_SURROGATE = re.compile("[\ud800-\udfff]")

Reading = Literal["text", "nothing", "a number", "true or false", "a date"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text, and how it is written.

    Attributes:
        text: the value.
        style: the indicator character; empty for a plain scalar.
        position: its first character, or its indicator.
        last_line: line of its last character.
    """

    text: str
    style: str
    position: Position
    last_line: int

    @property
    def reading(self) -> Reading:
        """What YAML readers take a plain scalar for; quoted and block scalars are text."""
        if self.style:
            return "text"
        if _NOTHING.fullmatch(self.text):
            return "nothing"
        if _NUMBER.fullmatch(self.text):
            return "a number"
        if _SWITCH.fullmatch(self.text):
            return "true or false"
        return "a date" if _DATE.fullmatch(self.text) else "text"


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list; a hole (None) is an item that was reported already."""

    items: tuple[Node | None, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in order; a hole (None) is a value that was reported already."""

    pairs: tuple[tuple[Scalar, Node | None], ...]
    position: Position

    def get(self, key: str) -> Node | None:
        """The value that stands under `key`; None when there is none."""
        return next((value for name, value in self.pairs if name.text == key), None)

    def text(self, key: str) -> str | None:
        """The value of `key` when it is a scalar."""
        value = self.get(key)
        return value.text if isinstance(value, Scalar) else None

    @property
    def keys(self) -> dict[str, Position]:
        """Each key with its place."""
        return {name.text: name.position for name, _ in self.pairs}


Node = Union[Scalar, Sequence, Mapping]


class _TooDeep(Exception):
    def __init__(self, position: Position) -> None:
        self.position = position


# the pure Python reader lets the last two through, on escapes beyond Unicode
_ERRORS = (yaml.YAMLError, _TooDeep, ValueError, OverflowError)


class Document:
    """One YAML file.

    Attributes:
        file: its name in positions.
        root: its node; None when there is none to go on with.
        problems: what is wrong with it as YAML.
    """

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self.problems: list[Finding] = []
        self.root: Node | None = None
        text = self._decode(data)
        self.lines = text.split("\n") if text is not None else []
        if text is not None and self._printable(text):
            self.root = self._read(text)

    def code(self, scalar: Scalar) -> Code:
        """The scalar as `Code`: the place of its first character and how its columns lie in the file."""
        at = scalar.position
        if scalar.style in ("|", ">"):
            indent = self._indent(scalar)
            return Code(scalar.text, Position(at.file, at.line + 1, indent + 1), indent)
        if not scalar.style:
            return Code(scalar.text, at)
        position = Position(at.file, at.line, at.column + 1)
        raw = self.lines[at.line - 1][at.column :]
        plain = "'" not in scalar.text if scalar.style == "'" else raw.startswith(scalar.text + '"')
        if plain or scalar.last_line != at.line:
            return Code(scalar.text, position)
        return Code(scalar.text, position, 0, _columns(raw, scalar.style))

    def _indent(self, scalar: Scalar) -> int:
        for number, text in enumerate(scalar.text.split("\n"), scalar.position.line):
            if text.strip():
                return len(self.lines[number]) - len(text)
        return 0

    def _add(self, code: str, message: str, line: int, column: int, help_: str) -> None:
        self.problems.append(finding(code, message, manifest=Position(self.file, line, column), help=help_))

    def _decode(self, data: bytes) -> str | None:
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line, start = before.count(b"\n") + 1, before.rfind(b"\n") + 1
            column = len(before[start:].decode("utf-8", "replace")) + 1
            self._add("PK001", f"byte 0x{data[error.start]:02x} is not UTF-8", line, column, "Save the file as UTF-8.")
            return None

    def _printable(self, text: str) -> bool:
        wrong = _FORBIDDEN.search(text)
        if wrong is None:
            return True
        before = text[: wrong.start()]
        name = _NAMED.get(wrong[0], f"the control character U+{ord(wrong[0]):04X}")
        column = len(before) - before.rfind("\n")
        help_ = 'Remove it; where it is meant, write an escape in a double-quoted string, such as "\\x0c".'
        self._add("PK001", f"{name} may not stand in a manifest", before.count("\n") + 1, column, help_)
        return False

    # ---- events -> nodes ----

    def _read(self, text: str) -> Node | None:
        try:
            return self._document(yaml.parse(text, Loader=_LOADER))
        except _ERRORS as error:
            first = error
        # once more with the pure Python reader: its word is the same on every machine, and mostly clearer
        self.problems.clear()
        try:
            self._document(yaml.parse(text, Loader=yaml.SafeLoader))
            if not self.problems:
                self._syntax(first)
        except _ERRORS as error:
            self._syntax(error)
        return None

    def _document(self, events: Iterator[yaml.Event]) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents == 2:
                    at = self._position(event)
                    self._add(
                        "PK001", "a second YAML document starts here", at.line, at.column, "One file, one document."
                    )
                    return None
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, events, 0)
        if documents == 0 or (isinstance(root, Scalar) and root.reading == "nothing"):
            self._add("PK001", "the file is empty", 0, 0, "Delete it, or see `afd-patchkit init` for a first manifest.")
            return None
        return root

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node | None:
        position = self._position(event)
        if isinstance(event, yaml.AliasEvent):
            self._refuse(f"alias `*{event.anchor}`", position)
            return None
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        if event.anchor is not None:
            self._refuse(f"anchor `&{event.anchor}`", position)
        if event.tag is not None:
            self._refuse(f"tag `{event.tag.replace('tag:yaml.org,2002:', '!!')}`", position)
        if depth > MAX_DEPTH:
            raise _TooDeep(position)
        if isinstance(event, yaml.SequenceStartEvent):
            return Sequence(tuple(self._items(events, depth)), position)
        if isinstance(event, yaml.MappingStartEvent):
            return Mapping(tuple(self._pairs(events, depth)), position)
        assert isinstance(event, yaml.ScalarEvent)
        if event.style == '"' and _SURROGATE.search(event.value):
            self._add(
                "PK001", "half a surrogate pair is no text", position.line, position.column, "Write the character."
            )
            return None
        assert event.end_mark is not None
        return Scalar(event.value, event.style or "", position, event.end_mark.line + 1)

    def _items(self, events: Iterator[yaml.Event], depth: int) -> Iterator[Node | None]:
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._node(event, events, depth + 1)

    def _pairs(self, events: Iterator[yaml.Event], depth: int) -> Iterator[tuple[Scalar, Node | None]]:
        seen: dict[str, Position] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            position = self._position(event)
            key = self._node(event, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            if not isinstance(key, Scalar):
                if key is not None:
                    self._add("PK004", "a key must be text", position.line, position.column, "Write `key: value`.")
            elif key.text == "<<" and not key.style:
                self._refuse("merge key `<<`", key.position)
            elif key.text in seen:
                first = seen[key.text]
                message = f"key `{key.text}` stands here twice"
                help_ = f"It is given in line {first.line} already; YAML readers would silently take the last."
                self._add("PK003", message, key.position.line, key.position.column, help_)
            else:
                seen[key.text] = key.position
                yield key, value

    def _position(self, event: yaml.Event) -> Position:
        mark = event.start_mark
        assert mark is not None  # only events made by hand have none
        return Position(self.file, mark.line + 1, mark.column + 1)

    def _refuse(self, what: str, position: Position) -> None:
        help_ = (
            "Write the value out: manifests are read from top to bottom, without anchors, aliases, merge keys or tags."
        )
        self._add("PK008", f"{what} may not stand in a manifest", position.line, position.column, help_)

    def _syntax(self, error: Exception) -> None:
        if isinstance(error, _TooDeep):
            at = error.position
            self._add("PK001", f"more than {MAX_DEPTH} levels of nesting", at.line, at.column, "Nest less.")
            return
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        context = getattr(error, "context", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        row = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        help_ = "Correct the YAML here or just above."
        if "\t" in row[: column + 1] or "\\t" in problem:
            help_ = "Indent with spaces: YAML does not take tabs."
        elif "mapping values are not allowed" in problem:
            help_ = "Text that holds `: ` must be quoted, or stand in a block scalar (`|`)."
        elif "cannot start any token" in problem or "undefined alias" in problem:
            help_ = "Quote the text, or put it in a block scalar (`|`)."
        self._add("PK001", f"not YAML: {problem}" + (f" ({context})" if context else ""), line, column, help_)


def _columns(raw: str, quote: str) -> tuple[int, ...]:
    """Where each character of a one-line quoted scalar stands in `raw`, the text behind its opening quote."""
    columns = []
    at = 0
    while at < len(raw):
        columns.append(at)
        if quote == "'":
            if raw.startswith("''", at):
                at += 2
                continue
            if raw[at] == "'":
                break
            at += 1
        elif raw[at] == '"':
            break
        elif raw[at] == "\\":
            at += 2 + {"x": 2, "u": 4, "U": 8}.get(raw[at + 1 : at + 2], 0)
        else:
            at += 1
    return tuple(columns)
