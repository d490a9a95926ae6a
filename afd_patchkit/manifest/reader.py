"""Documents to models: pydantic validates, and what it refuses becomes findings at their places in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.manifest import checks, rules, syntax
from afd_patchkit.manifest.nodes import Document, Node
from afd_patchkit.manifest.refusals import Refusals, labelled, name_of
from afd_patchkit.manifest.texts import HELD, control_character
from afd_patchkit.manifest.values import Path, Table, TextScalar, value_of
from afd_patchkit.model import SYMBOL, WHERE, Code, Model, What

M = TypeVar("M", bound=Model)
PLAIN = frozenset({"symbol", "symbol or module", "name", "base", "imports"})
"""What a plain scalar may hold: code that YAML cannot misread."""


def read(cls: type[M], document: Document) -> tuple[M | None, list[Finding]]:
    """The document as a `cls`, and all that is wrong with it.

    What pydantic refuses is left out, and the rest is validated again, until nothing is wrong that was not said: so one run
    shows all errors, and checks between files see what could be read.
    """
    reader = Reader(document)
    made = None
    if document.root is not None:
        while (made := reader.attempt(cls, document.root)) is None and reader.progress:
            pass
    return made, [*document.problems, *reader.said]


class Reader:
    """The context of the validation of one document.

    Attributes:
        said: what is wrong so far; it is not refused again.
        holes: what could not be read and is left out.
        progress: whether the last attempt found something new.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.said: dict[Finding, None] = {}
        self.holes: set[Path] = set()
        self.progress = True
        self.models: dict[Path, type[Model]] = {}

    def attempt(self, cls: type[M], root: Node) -> M | None:
        """Validate what is left of the document; None, with more said and left out, when that fails."""
        value = value_of(root, self.holes)
        try:
            return cls.model_validate(value, context=self, by_alias=True, by_name=False)
        except ValidationError as error:
            refusals = Refusals(self.document, root, self.holes, self.models)
            before = self._known
            self.said.update(dict.fromkeys(refusals.findings(error)))
            self.holes |= refusals.holes
            if self._known == before:
                self.holes |= refusals.lacking
            self.progress = () not in self.holes and self._known > before
            return None

    @property
    def _known(self) -> int:
        return len(self.said) + len(self.holes)

    @property
    def broken(self) -> bool:
        """Whether something is missing from what is validated."""
        return bool(self.holes or self.document.problems)

    # ---- what pydantic asks -----------------------------------------------------------------------------------------

    def model(self, cls: type[Model], value: object, make: Callable[[Any], Any]) -> Any:
        """A model: its keys go together, pydantic makes it, and its values fit."""
        if not isinstance(value, Table):
            return make(value)
        self.models[value.path] = cls
        self._refuse(value, rules.problems(cls, value))
        made = make({**value, WHERE: value.node.position})
        self._refuse(value, checks.problems(made, value, self.document.root, broken=self.broken))
        return made

    def text(self, value: object, what: What, noun: str) -> object:
        """A text, held to what it must be; code becomes `Code`."""
        if not isinstance(value, TextScalar):
            return value
        self._refuse(value, self._written(value, what), unusable=True)
        check = HELD[what].check
        if what not in syntax.CODE:
            self._refuse(value, check(value, noun) if check else ())
            return value
        code = self.document.code(value.scalar)
        if what in PLAIN and what != "imports":
            code = Code(code.text.rstrip("\n"), code.position, code.indent, code.columns)
        self._refuse(value, syntax.problems(code, what))
        return code

    def _written(self, value: TextScalar, what: What) -> Iterator[Finding]:
        """What is wrong with the way a text is written."""
        name, scalar = name_of(value.path, self.models), value.scalar
        if not value.strip():
            yield finding("PK004", f"{name} is empty", help="Give it, or leave the key out.")
        elif what not in syntax.CODE:
            char = control_character(value)
            if char is not None:
                help_ = "Remove it: the text stands in comments of generated code."
                yield finding("PK004", f"{name} holds the control character U+{ord(char):04X}", help=help_)
        else:
            why = None
            if scalar.style == ">" and what not in PLAIN:
                why = "a folded scalar (`>`) joins its lines"
            elif not scalar.style and (what not in PLAIN or (what in ("name", "base") and not _is_dotted(value, what))):
                why = f"{HELD[what].python} in a plain scalar loses quotes, `#` and `: `"
            elif scalar.style != "|" and scalar.last_line != scalar.position.line:
                why = "text over several lines is joined to one"
            if why:
                help_ = "Write it as a block scalar (`|` and the text on the next lines), or quote it."
                yield finding("PK007", f"{name} is not a block scalar or quoted on one line: {why}", help=help_)

    def _refuse(self, value: TextScalar | Table, found: Iterable[Finding], *, unusable: bool = False) -> None:
        """Raise what is wrong with a value, unless it was said; an `unusable` one is then left out."""
        at = value.scalar.position if isinstance(value, TextScalar) else value.node.position
        placed = dict.fromkeys(labelled(item.at(manifest=at), self.document, value.path) for item in found)
        new = [item for item in placed if item not in self.said]
        if new:
            raise ValidationError.from_exception_data("manifest", [_carried(item, unusable) for item in new])


def _carried(item: Finding, unusable: bool) -> InitErrorDetails:
    """A finding as pydantic carries it."""
    error = PydanticCustomError("finding", "{finding}", {"finding": item, "unusable": unusable})
    return InitErrorDetails(type=error, input=None)


def _is_dotted(text: str, what: What) -> bool:
    if what == "base" and SYMBOL.fullmatch(text):
        return True
    return all(part.isidentifier() for part in text.split("."))
