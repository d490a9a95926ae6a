"""What a manifest can say: frozen pydantic models, one class per thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from afd_patchkit.review.finding import Position


@dataclass(frozen=True, slots=True)
class Code:
    """A scalar that holds Python (a pattern or code), or any other text whose place matters.

    Attributes:
        text: the text as YAML gives it.
        position: where its first character stands in the manifest.
        indent: columns that block-scalar indentation takes away from every line (0 for quoted scalars).
    """

    text: str
    position: Position
    indent: int = 0

    def at(self, line: int, column: int) -> Position:
        """The place in the manifest of a 1-based line and column of `text`."""
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


class Model(BaseModel):
    """Base of all manifest models: frozen, no unknown keys, no coercion."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True, populate_by_name=True
    )
    where: Position = Field(default=Position("<memory>"), exclude=True, repr=False, json_schema_extra={"internal": True})


# ---- operations -----------------------------------------------------------------------------------------------


class Range(Model):
    """A run of sibling statements, from the one that matches `from` to the one that matches `to`."""

    from_: Code = Field(alias="from")
    to: Code


Pattern = Union[Code, Range]


class Take(Model):
    """Text of another pin's symbol, used as inserted code (tracked, not pasted)."""

    pin: str
    symbol: Code
    from_: Code | None = Field(default=None, alias="from", description="first statement; the body's first when absent")
    to: Code | None = Field(default=None, description="last statement; `from`'s own statement when absent")
    rename: dict[str, Code] = Field(default_factory=dict, description="names in the taken text that mean something else here")
    deltas: tuple["Delta", ...] = Field(default=(), description="changes inside the taken text")


class TakeBody(Model):
    """`with:` or `insert:` given as `take:`."""

    take: Take


Body = Union[Code, TakeBody]


class ClauseOf(Model):
    """One clause of a compound statement, to narrow a search: `{of: P, clause: "else"}`."""

    of: Code
    clause: Code


Within = Union[Code, ClauseOf]


class CallChange(Model):
    """What `call:` changes; everything it does not name stays upstream's."""

    match: Code = Field(description="a call expression, or a statement whose value is the call")
    callee: Code | None = None
    set: dict[Union[str, int], Code] = Field(default_factory=dict, description="keyword or position: new value")
    drop: tuple[Union[str, int], ...] = ()
    targets: Code | None = Field(default=None, description="new assignment targets of the statement")


class ClauseChange(Model):
    """Add, put first, replace or remove one clause of `of`. A head is `elif c`, `else`, `except E`, `finally`, `case p`."""

    of: Code
    add: Code | None = None
    first: Code | None = None
    replace: Code | None = Field(default=None, description="head of the clause to replace; `with` is the new clause")
    remove: Code | None = Field(default=None, description="head of the clause to remove")


class ParameterChange(Model):
    """One declared change of the parameter list."""

    add: Code | None = Field(default=None, description='a parameter as in a `def`: "rank: int = 0"')
    replace: str | None = None
    remove: str | None = None
    before: str | None = None
    after: str | None = None
    kind: Literal["keyword-only"] | None = Field(default=None, description="with `add`: behind `*`, which is added if missing")


class DecoratorChange(Model):
    """One declared change of the decorators; patterns are decorator expressions without the `@`."""

    add: Code | None = None
    replace: Code | None = None
    remove: Code | None = None
    before: Code | None = None
    after: Code | None = None


class MemberChange(Model):
    """One declared change of a class: methods and nested classes for `member`, fields for `field`."""

    add: Code | None = None
    replace: str | None = None
    remove: str | None = None
    before: str | None = None
    after: str | None = None


OPERATIONS = (
    "insert", "replace", "remove", "expr", "call", "clause", "parameter", "returns", "decorator", "member", "field", "rebind",
)  # fmt: skip


class Delta(Model):
    """One named change: exactly one operation and what that operation takes."""

    name: str
    reason: str | None = None
    frozen: str | None = Field(default=None, description="why it is right that this delta repeats upstream text")

    insert: Body | None = None
    replace: Pattern | None = None
    remove: Pattern | None = None
    expr: Code | None = None
    call: CallChange | None = None
    clause: ClauseChange | None = None
    parameter: ParameterChange | None = None
    returns: Code | None = Field(default=None, description="new return annotation; `none` removes it")
    decorator: DecoratorChange | None = None
    member: MemberChange | None = None
    field: MemberChange | None = None
    rebind: dict[str, Code] | None = None

    with_: Body | None = Field(default=None, alias="with")
    before: Code | None = None
    after: Code | None = None
    at: Literal["start", "end"] | None = None
    parts: dict[str, Code] = Field(default_factory=dict)
    within: Within | None = None
    next_to: Code | None = None
    nth: int | None = Field(default=None, ge=1, description="1-based: which of several matches")
    count: int = Field(default=1, ge=1, description="how many matches there must be; each is changed")
    deltas: tuple["Delta", ...] = ()

    @property
    def operation(self) -> str:
        """The name of its one operation."""
        return next(op for op in OPERATIONS if getattr(self, op) is not None)


# ---- probes ---------------------------------------------------------------------------------------------------


class InPattern(Model):
    """A pattern inside a symbol."""

    in_: Code = Field(alias="in")
    pattern: Code


class Probe(Model):
    """One static test on the target, exactly one key."""

    defines: Code | None = None
    missing: Code | None = None
    contains: InPattern | None = None
    absent: InPattern | None = None
    any: tuple["Probe", ...] | None = None
    all: tuple["Probe", ...] | None = None


# ---- entries --------------------------------------------------------------------------------------------------

Kind = Literal["copy", "backport", "delegate", "owned"]


class Entry(Model):
    """One symbol in a manifest."""

    symbol: Code | None = None
    name: str | None = Field(default=None, description="name in the generated module; the symbol's last part by default")
    kind: Kind = "copy"
    pin: str | None = None
    branch: Union[int, str, None] = Field(default=None, description="which definition, when there are several")
    reason: str
    functionality: str | None = None
    forwarded: str | None = None
    remove_when: tuple[Probe, ...] = Field(default=(), description="any of these holds on the target: retire")
    removal: str | None = Field(default=None, description="prose beside the probes")
    late: Union[bool, tuple[str, ...]] = Field(default=False, description="look these names up at call time (true: all)")
    depends_on: tuple[str, ...] = ()
    deltas: tuple[Delta, ...] = ()
    # delegate
    body: Code | None = None
    via: Literal["super", "original"] | None = None
    # owned
    part: str | None = Field(default=None, description="a .py file below the manifest's folder")
    watch: tuple[Code, ...] = ()


class ClassGroup(Model):
    """A generated class that collects entries as its members."""

    name: str
    bases: tuple[Code, ...] = ()
    doc: str | None = None
    decorators: tuple[Code, ...] = ()
    members: tuple[Entry, ...]


class GroupEntry(Model):
    """`class:` item of `entries`."""

    class_: ClassGroup = Field(alias="class")


class Manifest(Model):
    """One generated module."""

    schema_: Literal[1] = Field(alias="schema")
    module: str = Field(description="path below the generated package root, for instance acme_backport/runner.py")
    summary: str
    pin: str | None = None
    imports: tuple[Code, ...] = Field(default=(), description="import statements that deltas need")
    remove_when: tuple[Probe, ...] = Field(default=(), description="for entries without their own")
    entries: tuple[Union[Entry, GroupEntry], ...]

    @property
    def path(self) -> str:
        """The manifest file, as the user would type it."""
        return self.where.file


class Git(Model):
    """A git repository at one commit."""

    url: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    subdirectory: str | None = None


class Pin(Model):
    """One upstream distribution at one exact identity."""

    distribution: str
    version: str
    role: Literal["target", "donor"] = "target"
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    git: Git | None = None
    packages: tuple[str, ...] = Field(default=(), description="import packages it provides; from the name when empty")


class Pins(Model):
    """`pins.yaml`."""

    schema_: Literal[1] = Field(alias="schema")
    pins: dict[str, Pin]


for _model in (Take, TakeBody, Delta, Probe, Entry, ClassGroup, GroupEntry, Manifest):
    _model.model_rebuild()
