"""Nodes to models: every value by the type its field declares, every error at its place."""

from __future__ import annotations

import re
import types
import unicodedata
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Map
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError

from afd_patchkit import model
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.manifest import rules
from afd_patchkit.manifest.nodes import Document, Mapping, Node, Scalar, Sequence
from afd_patchkit.model import Code, Holds, Model
from afd_patchkit.source.locate import parse_reference

M = TypeVar("M", bound=Model)
PLAIN = frozenset({"symbol", "name", "imports"})
"""What a plain scalar may hold: text that YAML cannot misread."""


class _Failed:
    """A value that could not be built; its reason was reported."""


FAILED = _Failed()

_SUITABLE = {
    "pattern": "a pattern",
    "expression pattern": "a pattern",
    "any pattern": "a pattern",
    "statements": "code",
    "with": "code",
    "expression": "an expression",
    "name": "an expression that is more than a dotted name",
    "targets": "an assignment target",
    "clause": "code",
    "head": "the head of a clause",
    "parameter": "a parameter",
    "member": "code",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a field takes.

    Attributes:
        models: models that a mapping may be.
        code: what a scalar holds, when it becomes `Code`.
        types: the plain Python types that a scalar may be.
        choices: the values of a `Literal`.
        item: the shape of the items of a list.
        keys: types of the keys of a dict; its values have the shape `value`.
    """

    models: tuple[type[Model], ...] = ()
    code: str | None = None
    types: frozenset[type] = frozenset()
    choices: tuple[str | int, ...] = ()
    item: Shape | None = None
    keys: frozenset[type] = frozenset()
    value: Shape | None = None
    quoted: bool = False

    @property
    def wanted(self) -> str:
        """What it takes, for messages."""
        names = []
        if self.code or str in self.types:
            names.append("text")
        names += ["a whole number"] if int in self.types else []
        names += ["true or false"] if bool in self.types else []
        names += [f"`{choice}`" for choice in self.choices]
        names += ["a list"] if self.item else []
        names += ["a mapping"] if self.models or self.value else []
        return " or ".join(names)


@dataclass(frozen=True, slots=True)
class FieldOf:
    """One key of a model."""

    name: str
    shape: Shape
    required: bool


@cache
def fields_of(cls: type[Model]) -> dict[str, FieldOf]:
    """The keys of a model as the user writes them."""
    return {
        info.alias or name: FieldOf(name, _shape(info.annotation, tuple(info.metadata)), info.is_required())
        for name, info in cls.model_fields.items()
        if name != "where"
    }


def _shape(annotation: Any, metadata: tuple[Any, ...] = ()) -> Shape:
    origin, arguments = get_origin(annotation), get_args(annotation)
    holds = next((m.what for m in metadata if isinstance(m, Holds)), None)
    if origin is Annotated:
        return _shape(arguments[0], (*metadata, *arguments[1:]))
    if origin in (Union, types.UnionType):
        return _join([_shape(a) for a in arguments if a is not type(None)])
    if origin is tuple:
        return Shape(item=_shape(arguments[0]))
    if origin is dict:
        return Shape(keys=frozenset(get_args(arguments[0]) or {arguments[0]}), value=_shape(arguments[1]))
    if origin is Literal:
        return Shape(choices=arguments)
    if annotation is Code:
        return Shape(code=holds or "statements")
    if issubclass(annotation, Model):
        return Shape(models=(annotation,))
    return Shape(types=frozenset({annotation}), quoted=holds == "version")


def _join(shapes: list[Shape]) -> Shape:
    def first(name: str) -> Any:
        return next((v for s in shapes if (v := getattr(s, name))), getattr(Shape(), name))

    return Shape(
        models=tuple(m for s in shapes for m in s.models),
        types=frozenset(t for s in shapes for t in s.types),
        **{name: first(name) for name in ("code", "choices", "item", "keys", "value")},
    )


Check = Callable[["Builder", Model, Mapping], None]


class Builder:
    """Builds the model of one document.

    Attributes:
        document: where the nodes come from.
        problems: what is wrong so far.
        broken: whether something below could not be built and is missing from the model.
    """

    def __init__(self, document: Document, on_code: Callable[[Builder, Code, str], None], check: Check) -> None:
        self.document = document
        self.problems: list[Finding] = list(document.problems)
        self.broken = bool(document.problems)
        self._on_code = on_code
        self._check = check
        self._module = document.file
        self._entry: str | None = None
        self._delta: str | None = None

    def build(self, cls: type[M]) -> M | None:
        """The document as a `cls`; None when that cannot be."""
        if self.document.root is None:
            return None
        made = self._value(Shape(models=(cls,)), self.document.root, "the file")
        return made if isinstance(made, cls) else None

    def report(
        self,
        code: str,
        message: str,
        where: Position,
        help: str | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        """Record a problem of the entry and delta that are being built."""
        self.problems.append(
            finding(code, message, entry=self._entry, delta=self._delta, manifest=where, help=help, details=details)
        )

    # ---- values ----

    def _value(self, shape: Shape, node: Node | None, name: str) -> Any:
        made: Any = FAILED
        if isinstance(node, Scalar):
            made = self._scalar(shape, node, name)
        elif isinstance(node, Sequence):
            made = self._list(shape, node, name)
        elif isinstance(node, Mapping):
            made = self._mapping(shape, node, name)
        if made is FAILED:
            self.broken = True
        return made

    def _wrong(self, shape: Shape, node: Node, name: str, given: str) -> Any:
        help_ = None
        if shape.item and not isinstance(node, Sequence):
            help_ = "Write one item per line, each behind `- `."
        self.report("PK004", f"{name} must be {shape.wanted}, not {given}", node.position, help_)
        return FAILED

    def _list(self, shape: Shape, node: Sequence, name: str) -> Any:
        if shape.item is None:
            return self._wrong(shape, node, name, "a list")
        made = [self._value(shape.item, item, f"item {n} of {name}") for n, item in enumerate(node.items, 1)]
        return tuple(item for item in made if item is not FAILED)

    def _mapping(self, shape: Shape, node: Mapping, name: str) -> Any:
        if shape.models:
            return self._model(_choose(shape.models, node), node)
        if shape.value is None:
            return self._wrong(shape, node, name, "a mapping")
        made: dict[str | int, Any] = {}
        for key, value in node.pairs:
            built = self._value(shape.value, value, f"`{_shortened(key.text)}` of {name}")
            name_ = self._key(shape, key, name)
            if built is not FAILED and name_ is not None:
                made[name_] = built
        return made

    def _key(self, shape: Shape, key: Scalar, name: str) -> str | int | None:
        if key.reading == "text":
            return key.text
        number = _whole(key.text)
        if int in shape.keys and number is not None:
            return number
        self.broken = True
        self._unquoted(f"the key `{_shortened(key.text)}` of {name}", key)
        return None

    def _unquoted(self, name: str, node: Scalar, why: str | None = None) -> Any:
        why = why or f"YAML reads {_shortened(node.text)} as {node.reading}, this must be text"
        self.report("PK005", f"{name} must be quoted: {why}", node.position, f'Write "{_shortened(node.text)}".')
        return FAILED

    def _scalar(self, shape: Shape, node: Scalar, name: str) -> Any:
        reading = node.reading
        if reading == "nothing":
            help_ = "Give a value, or leave the key out."
            self.report("PK004", f"{name} has no value", node.position, help_)
            return FAILED
        if shape.choices:
            return self._choice(shape, node, name)
        if reading == "a number" and int in shape.types:
            number = _whole(node.text)
            return number if number is not None else self._wrong(shape, node, name, f"`{_shortened(node.text)}`")
        if reading == "true or false" and bool in shape.types:
            if node.text.lower() in ("true", "false"):
                return node.text.lower() == "true"
            self.report("PK004", f"{name} must be true or false, not `{node.text}`", node.position)
            return FAILED
        if shape.code:
            return self._code(shape.code, node, name)
        if str not in shape.types:
            return self._wrong(shape, node, name, f"`{_shortened(node.text)}`" if not node.style else "text")
        if shape.quoted and not node.style:
            return self._unquoted(name, node, "YAML would read 0.10 as the number 0.1")
        return self._unquoted(name, node) if reading != "text" else self._text(node, name)

    def _choice(self, shape: Shape, node: Scalar, name: str) -> Any:
        for choice in shape.choices:
            quoted = bool(node.style)
            if str(choice) == node.text and (isinstance(choice, str) or not quoted):
                return choice
        known = [str(c) for c in shape.choices]
        near = get_close_matches(node.text, known, n=1)
        help_ = f"Did you mean `{near[0]}`?" if near else None
        self.report("PK004", f"{name} must be {shape.wanted}, not `{_shortened(node.text)}`", node.position, help_)
        return FAILED

    def _text(self, node: Scalar, name: str) -> Any:
        if not node.text.strip():
            self.report("PK004", f"{name} is empty", node.position, "Give a text, or leave the key out.")
            return FAILED
        for char in node.text:
            if char not in "\n\t" and unicodedata.category(char)[0] == "C":
                message = f"{name} holds the control character U+{ord(char):04X}"
                self.report(
                    "PK004", message, node.position, "Remove it: the text stands in comments of generated code."
                )
                return FAILED
        return node.text

    def _code(self, what: str, node: Scalar, name: str) -> Any:
        code = self.document.code(node)
        if not node.text.strip():
            self.report("PK004", f"{name} is empty", node.position, "Give it, or leave the key out.")
            return FAILED
        one_line = node.last_line == node.position.line
        if node.style == ">" and what not in PLAIN:
            return self._style(name, node, "a folded scalar (`>`) joins its lines")
        if node.style == "" and (what not in PLAIN or (what == "name" and not _is_dotted(node.text))):
            return self._style(name, node, f"{_SUITABLE[what]} in a plain scalar loses quotes, `#` and `: `")
        if node.style != "|" and not one_line:
            return self._style(name, node, "text over several lines is joined to one")
        if what in PLAIN and what != "imports":
            code = Code(node.text.rstrip("\n"), code.position, code.indent, code.columns)
        if what != "symbol":
            before = len(self.problems)
            self._on_code(self, code, what)
            return code if len(self.problems) == before else FAILED
        try:
            parse_reference(code.text, code.position)
        except ManifestError as error:
            self.problems.extend(f.at(entry=self._entry, delta=self._delta) for f in error.findings)
            return FAILED
        return code

    def _style(self, name: str, node: Scalar, why: str) -> Any:
        help_ = "Write it as a block scalar (`|` and the text on the next lines), or quote it."
        self.report("PK007", f"{name} is not a block scalar or quoted on one line: {why}", node.position, help_)
        return FAILED

    # ---- models ----

    def _model(self, cls: type[Model], node: Mapping) -> Any:
        with self._inside(cls, node):
            return self._fill(cls, node)

    def _fill(self, cls: type[Model], node: Mapping) -> Any:
        fields = fields_of(cls)
        values: dict[str, Any] = {"where": node.position}
        whole = True
        known: dict[str, Position] = {}
        for key, child in node.pairs:
            found = fields.get(key.text)
            if found is None:
                self._unknown(cls, key, fields)
                continue
            known[key.text] = key.position
            made = self._value(found.shape, child, f"`{key.text}`")
            if made is FAILED:
                whole = whole and not found.required
            else:
                values[found.name] = made
        for alias, found in fields.items():
            if found.required and alias not in known:
                whole = False
                self.report("PK009", f"{_noun(cls)} needs `{alias}`", node.position, _description(cls, found.name))
        self._keys(cls, node, known)
        made = self._validated(cls, values, node) if whole else FAILED
        if isinstance(made, Model):
            self._check(self, made, node)
        return made

    def _unknown(self, cls: type[Model], key: Scalar, fields: Map[str, FieldOf]) -> None:
        near = get_close_matches(key.text, fields, n=1)
        help_ = f"Did you mean `{near[0]}`?" if near else f"{_noun(cls)} takes {', '.join(fields)}."
        self.report("PK002", f"{_noun(cls)} has no key `{_shortened(key.text)}`", key.position, help_)

    def _keys(self, cls: type[Model], node: Mapping, known: Map[str, Position]) -> None:
        rule = rules.RULES.get(cls)
        if rule is None:
            return
        operation = next((node.get(k) for k in known if k in rule.alternatives), None)
        inner = frozenset(operation.keys) if isinstance(operation, Mapping) else None
        chosen = node.text(rule.selector) if rule.selector else None
        for breach in rules.breaches(rule, known, chosen, inner):
            self.report(rule.code, breach.message, known.get(breach.key, node.position), breach.help)

    def _validated(self, cls: type[Model], values: dict[str, Any], node: Mapping) -> Any:
        try:
            return cls(**values)
        except ValidationError as error:
            for problem in error.errors():
                name = str(problem["loc"][0]) if problem["loc"] else ""
                alias = next((a for a, f in fields_of(cls).items() if name in (a, f.name)), name)
                child = node.get(alias)
                message = f"{problem['msg'][:1].lower()}{problem['msg'][1:]}"
                if problem["type"] == "too_short":
                    if (isinstance(child, Sequence) and child.items) or (isinstance(child, Mapping) and child.pairs):
                        continue  # its items were wrong, and reported
                    message = "give at least one item"
                self.report("PK004", f"`{alias}`: {message}", child.position if child is not None else node.position)
            self.broken = True
            return FAILED

    @contextmanager
    def _inside(self, cls: type[Model], node: Mapping) -> Iterator[None]:
        """Findings in here name the entry and delta that `node` is."""
        outer = self._entry, self._delta
        entry = self._entry or f"{self._module}::"
        if cls is model.Manifest:
            self._module = node.text("module") or self.document.file
        elif cls is model.Entry:
            symbol = (node.text("symbol") or "").strip()
            name = node.text("name") or symbol.rpartition(":")[2].rpartition(".")[2] or node.text("part") or "?"
            self._entry = f"{entry}{'' if entry.endswith('::') else '.'}{_shortened(name)}"
        elif cls is model.ClassGroup:
            self._entry = f"{entry}{_shortened(node.text('name') or '?')}"
        elif cls is model.Delta and self._delta is None:
            name_ = node.text("name")
            self._delta = _shortened(name_) if name_ else None
        try:
            yield
        finally:
            self._entry, self._delta = outer


def _choose(models: tuple[type[Model], ...], node: Mapping) -> type[Model]:
    """The model that shares most keys with the mapping; the first on a tie."""
    return max(models, key=lambda cls: len(fields_of(cls).keys() & node.keys.keys()))


def _whole(text: str) -> int | None:
    """The number that every YAML reader takes `text` for: decimal, without leading zeros."""
    return int(text) if re.fullmatch("0|-?[1-9][0-9]{0,17}", text) else None


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def _noun(cls: type[Model]) -> str:
    words = {
        "TakeBody": "`take`", "Take": "`take`", "Range": "a range", "ClauseOf": "a clause (`of`, `clause`)", "CallChange": "`call`",
        "ClauseChange": "`clause`", "ParameterChange": "`parameter`", "DecoratorChange": "`decorator`",
        "MemberChange": "`member` or `field`", "Delta": "a delta", "InPattern": "`contains` or `absent`", "Probe": "a probe",
        "Entry": "an entry", "ClassGroup": "a class", "GroupEntry": "a class item", "Manifest": "a manifest", "Git": "`git`",
        "Pin": "a pin", "Pins": "pins.yaml",
    }  # fmt: skip
    return words.get(cls.__name__, cls.__name__)


def _description(cls: type[Model], name: str) -> str | None:
    text = cls.model_fields[name].description
    return text and f"It says: {text}."
