"""What the scalars of a manifest hold, and the base of all models."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema, core_schema

from afd_patchkit.findings.finding import Position


@dataclass(frozen=True, slots=True)
class Code:
    """A scalar that holds Python (a pattern or code), or any other text whose place matters.

    Attributes:
        text: the text as YAML gives it.
        position: where its first character stands in the manifest.
        indent: columns that block-scalar indentation takes away from every line (0 for quoted scalars).
        columns: for a quoted scalar with escapes, where each character (and the end) of `text` stands, counted in
            columns from `position`; empty when the text stands in the file as it is.
    """

    text: str
    position: Position
    indent: int = 0
    columns: tuple[int, ...] = ()

    def at(self, line: int, column: int) -> Position:
        """The place in the manifest of a 1-based line and column of `text`."""
        if self.columns:
            ends = [len(row) + 1 for row in self.text.split("\n")[: line - 1]]
            index = min(sum(ends) + column - 1, len(self.columns) - 1)
            return Position(self.position.file, self.position.line, self.position.column + self.columns[index])
        first = line == 1
        return Position(
            self.position.file,
            self.position.line + line - 1,
            (self.position.column if first else self.indent + 1) + column - 1,
        )

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept what the loader makes; in JSON Schema it is a string."""
        return core_schema.json_or_python_schema(
            python_schema=core_schema.is_instance_schema(cls),
            json_schema=core_schema.str_schema(),
        )


What = Literal[
    "symbol", "symbol or module", "name", "base", "imports", "pattern", "expression pattern", "any pattern", "statements", "with", "expression", "element",
    "targets", "clause", "head", "parameter", "member",
    "prose", "python name", "dotted name", "delta name", "part", "module", "pin name", "distribution", "version",
]  # fmt: skip


class Reading(Protocol):
    """What a document is held to beyond its types: the `context` in which pydantic validates it."""

    def text(self, value: object, what: What, noun: str) -> object:
        """The value of a field that holds `what`, as its type wants it."""

    def model(self, cls: type[Model], value: object, make: Callable[[Any], Any]) -> Any:
        """A model from its mapping, where `make` is pydantic's own step."""


@dataclass(frozen=True, slots=True)
class Holds:
    """What the text of a field is, as `Annotated` metadata; `manifest.texts` says what that means.

    Attributes:
        what: what the text is. `with` is decided by the delta's operation.
        noun: what is named, for the message about a wrong name.
    """

    what: What
    noun: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Ask the context first: what Python builds without one has no place to report."""

        def held(value: object, info: ValidationInfo) -> object:
            reading: Reading | None = info.context
            return value if reading is None else reading.text(value, self.what, self.noun)

        return core_schema.with_info_before_validator_function(held, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Leave a mark in the JSON Schema for `manifest.schema` to spell out."""
        return {**handler(schema), "holds": self.what}


Prose = Annotated[str, Holds("prose")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$"), Holds("prose")]
ParameterName = Annotated[str, Holds("python name", "the parameter")]
MemberName = Annotated[str, Holds("python name", "the member")]
Argument = Union[Annotated[str, Holds("python name", "the argument")], Annotated[int, Field(ge=0)]]
"""Of a call: a keyword, or a position from 0."""
SymbolCode = Annotated[Code, Holds("symbol")]
PlaceCode = Annotated[Code, Holds("symbol or module")]
NameCode = Annotated[Code, Holds("name")]
BaseCode = Annotated[Code, Holds("base")]
ImportsCode = Annotated[Code, Holds("imports")]
PatternCode = Annotated[Code, Holds("pattern")]
"""A pattern of statements."""
ExpressionPatternCode = Annotated[Code, Holds("expression pattern")]
AnyPatternCode = Annotated[Code, Holds("any pattern")]
"""A pattern of an expression or of statements."""
StatementsCode = Annotated[Code, Holds("statements")]
WithCode = Annotated[Code, Holds("with")]
ExpressionCode = Annotated[Code, Holds("expression")]
ElementCode = Annotated[Code, Holds("element")]
"""An expression, which may be starred."""
TargetsCode = Annotated[Code, Holds("targets")]
ClauseCode = Annotated[Code, Holds("clause")]
HeadCode = Annotated[Code, Holds("head")]
ParameterCode = Annotated[Code, Holds("parameter")]
MemberCode = Annotated[Code, Holds("member")]

SYMBOL = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""The shape of `package.module:Qual.name`."""

WHERE = "(where)"
"""The key under which the loader hands a model its place: no key that a person writes."""


class Model(BaseModel):
    """Base of all manifest models: frozen, no unknown keys, no coercion."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        arbitrary_types_allowed=True,
        validate_by_name=True,
        validate_by_alias=True,
    )
    where: SkipJsonSchema[Position] = Field(
        default=Position("<memory>"), validation_alias=WHERE, exclude=True, repr=False
    )

    @classmethod
    def key_names(cls) -> list[str]:
        """Its keys as a person writes them."""
        return [info.alias or name for name, info in cls.model_fields.items() if name != "where"]

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, value: Any, make: Callable[[Any], Any], info: ValidationInfo) -> Any:
        reading: Reading | None = info.context
        return make(value) if reading is None else reading.model(cls, value, make)
