"""What a manifest can say: frozen pydantic models, one class per thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, Union

from packaging.utils import canonicalize_name
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema, core_schema

from afd_patchkit.findings.finding import Position
from afd_patchkit.operations import OPERATIONS, Operation


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
    "symbol", "symbol or module", "name", "imports", "pattern", "expression pattern", "any pattern", "statements", "with", "expression", "element",
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


# ---- operations -----------------------------------------------------------------------------------------------


class Range(Model):
    """A run of sibling statements, from the one that matches `from` to the one that matches `to`."""

    from_: PatternCode = Field(alias="from", description="pattern of the first statement")
    to: PatternCode = Field(description="pattern of the last statement, a sibling of the first")


Pattern = Union[PatternCode, Range]


class Take(Model):
    """Text of another pin's symbol, used as inserted code (tracked, not pasted)."""

    pin: Prose = Field(description="the pin to take from")
    symbol: SymbolCode = Field(description="package.module:Qual.name")
    from_: PatternCode | None = Field(
        default=None, alias="from", description="first statement; the body's first when absent"
    )
    to: PatternCode | None = Field(default=None, description="last statement; `from`'s own statement when absent")
    rename: dict[Annotated[str, Holds("python name", "the renamed name")], ExpressionCode] = Field(
        default_factory=dict, description="names in the taken text that mean something else here"
    )
    deltas: tuple[Delta, ...] = Field(default=(), description="changes inside the taken text")


class TakeBody(Model):
    """`with:` or `insert:` given as `take:`."""

    take: Take = Field(description="use text of another pin's symbol")


Body = Union[StatementsCode, TakeBody]
With = Union[WithCode, TakeBody]


class ClauseOf(Model):
    """One clause of a compound statement, to narrow a search: `{of: P, clause: "else"}`."""

    of: PatternCode = Field(description="pattern of the compound statement")
    clause: HeadCode = Field(description="head of its clause: `elif c`, `else`, `except E`, `finally`, `case p`")


Within = Union[PatternCode, ClauseOf]


class CallChange(Model):
    """What `call:` changes; everything it does not name stays upstream's."""

    match: AnyPatternCode = Field(description="a call expression, or a statement whose value is the call")
    callee: NameCode | None = Field(default=None, description="what is called instead")
    set: dict[Argument, ExpressionCode] = Field(
        default_factory=dict, description="keyword or position (from 0): new value"
    )
    drop: tuple[Argument, ...] = Field(default=(), description="keywords and positions (from 0) to leave out")
    append: tuple[ElementCode, ...] = Field(
        default=(), description="positional arguments to add behind those that upstream gives"
    )
    rename: dict[
        Annotated[str, Holds("python name", "the argument")], Annotated[str, Holds("python name", "the argument")]
    ] = Field(default_factory=dict, description="keyword: its new name; the value stays")
    targets: TargetsCode | None = Field(default=None, description="new assignment targets of the statement")


class ElementsChange(Model):
    """Add, replace or remove one element of a tuple, list or set that upstream writes out; all others stay."""

    of: AnyPatternCode = Field(
        description="the display itself, or a statement that returns, yields or assigns it, or unpacks into it"
    )
    add: ElementCode | None = Field(default=None, description="the new element; behind the others unless placed")
    replace: ExpressionPatternCode | None = Field(
        default=None, description="the element to replace; `with` is the new one"
    )
    remove: ExpressionPatternCode | None = Field(default=None, description="the element to remove")
    before: ExpressionPatternCode | None = Field(
        default=None, description="with `add`: the element that it goes before"
    )
    after: ExpressionPatternCode | None = Field(default=None, description="with `add`: the element that it goes behind")


class ClauseChange(Model):
    """Add, put first, replace or remove one clause of `of`. A head is `elif c`, `else`, `except E`, `finally`, `case p`."""

    of: PatternCode = Field(description="pattern of the compound statement")
    add: ClauseCode | None = Field(default=None, description="clause to add where its kind belongs")
    first: ClauseCode | None = Field(default=None, description="clause to put first; an upstream `if` becomes `elif`")
    replace: HeadCode | None = Field(
        default=None, description="head of the clause to replace; `with` is the new clause"
    )
    remove: HeadCode | None = Field(default=None, description="head of the clause to remove")


class ParameterChange(Model):
    """One declared change of the parameter list."""

    add: ParameterCode | None = Field(default=None, description='a parameter as in a `def`: "rank: int = 0"')
    replace: ParameterName | None = Field(
        default=None, description="name of the parameter to replace; `with` is the new one"
    )
    remove: ParameterName | None = Field(default=None, description="name of the parameter to remove")
    before: ParameterName | None = Field(default=None, description="with `add`: the parameter that it goes before")
    after: ParameterName | None = Field(default=None, description="with `add`: the parameter that it goes after")
    kind: Literal["keyword-only"] | None = Field(
        default=None, description="with `add`: behind `*`, which is added if missing"
    )


class DecoratorChange(Model):
    """One declared change of the decorators; patterns are decorator expressions without the `@`."""

    add: ExpressionCode | None = Field(default=None, description="the new decorator; outermost unless placed")
    replace: ExpressionPatternCode | None = Field(
        default=None, description="the decorator to replace; `with` is the new one"
    )
    remove: ExpressionPatternCode | None = Field(default=None, description="the decorator to remove")
    before: ExpressionPatternCode | None = Field(
        default=None, description="with `add`: the decorator that it goes above"
    )
    after: ExpressionPatternCode | None = Field(
        default=None, description="with `add`: the decorator that it goes below"
    )


class MemberChange(Model):
    """One declared change of a class: methods and nested classes for `member`, fields for `field`."""

    add: MemberCode | None = Field(default=None, description="the new member or field, as in a class body")
    replace: MemberName | None = Field(default=None, description="name of the member to replace; `with` is the new one")
    remove: MemberName | None = Field(default=None, description="name of the member to remove")
    before: MemberName | None = Field(default=None, description="with `add`: the member that it goes before")
    after: MemberName | None = Field(default=None, description="with `add`: the member that it goes after")


Accessor = Literal["getter", "setter", "deleter"]


class Delta(Model):
    """One named change: exactly one operation and what that operation takes."""

    name: Annotated[str, Holds("delta name")] = Field(
        description="unique in the entry; it stands in the fences of the generated code"
    )
    reason: Prose | None = Field(default=None, description="why, when the name does not say it")
    frozen: Prose | None = Field(default=None, description="why it is right that this delta repeats upstream text")

    insert: Body | None = Field(default=None, description="statements to add; with `before`, `after` or `at`")
    replace: Pattern | None = Field(default=None, description="statements to replace by `with`")
    remove: Pattern | None = Field(default=None, description="statements to drop")
    expr: ExpressionPatternCode | None = Field(default=None, description="expression to replace by `with`")
    call: CallChange | None = Field(default=None, description="change one call, keep its other arguments")
    elements: ElementsChange | None = Field(default=None, description="change one element of a tuple, list or set")
    clause: ClauseChange | None = Field(default=None, description="change the clauses of a compound statement")
    parameter: ParameterChange | None = Field(default=None, description="declared change of the parameters")
    returns: ExpressionCode | None = Field(default=None, description='new return annotation; "none" removes it')
    decorator: DecoratorChange | None = Field(default=None, description="declared change of the decorators")
    member: MemberChange | None = Field(default=None, description="declared change of a class's methods")
    field: MemberChange | None = Field(default=None, description="declared change of a class's fields")
    rebind: dict[Annotated[str, Holds("python name", "the rebound name")], ExpressionCode] | None = Field(
        default=None, min_length=1, description="free name of the body: what it means here"
    )

    with_: With | None = Field(
        default=None, alias="with", description="the new code; `__upstream__` stands for what it replaces"
    )
    before: PatternCode | None = Field(default=None, description="with `insert`: the statement that follows")
    after: PatternCode | None = Field(default=None, description="with `insert`: the statement that precedes")
    at: Literal["start", "end"] | None = Field(
        default=None, description="with `insert`: start (after the docstring) or end of the body"
    )
    accessor: Accessor | None = Field(
        default=None,
        description="which accessor of a property `at: start`, `parameter`, `returns` or `decorator` means",
    )
    parts: dict[Annotated[str, Holds("python name", "the part")], AnyPatternCode] = Field(
        default_factory=dict, description="with `replace`: pieces of the replaced text, for use as `__name__` in `with`"
    )
    within: Within | None = Field(default=None, description="search only inside this statement or clause")
    comments: Literal["keep"] | None = Field(
        default=None, description="keep: comments directly above what goes stay; by default they go along"
    )
    next_to: PatternCode | None = Field(default=None, description="only the match beside this statement")
    nth: int | None = Field(default=None, ge=1, description="1-based: which of several matches")
    count: int = Field(default=1, ge=1, description="how many matches there must be; each is changed")
    deltas: tuple[Delta, ...] = Field(
        default=(), description="with `replace` that keeps `__upstream__`: changes inside what it wraps"
    )

    @property
    def operation(self) -> str:
        """The name of its one operation."""
        return next(op for op in OPERATIONS if getattr(self, op) is not None)

    @property
    def does(self) -> Operation:
        """What is to be known of its operation."""
        return OPERATIONS[self.operation]


# ---- probes ---------------------------------------------------------------------------------------------------


class InPattern(Model):
    """A pattern inside a symbol or module."""

    in_: PlaceCode = Field(alias="in", description="a symbol, or a whole module")
    pattern: AnyPatternCode = Field(description="what is looked for in it")


class Probe(Model):
    """One static test on the target, exactly one key."""

    defines: PlaceCode | None = Field(default=None, description="the target has this symbol or module")
    missing: PlaceCode | None = Field(default=None, description="the target has no such symbol or module")
    contains: InPattern | None = Field(default=None, description="the symbol or module holds the pattern")
    absent: InPattern | None = Field(default=None, description="the symbol or module does not hold the pattern")
    any: tuple[Probe, ...] | None = Field(default=None, min_length=1, description="one of these holds")
    all: tuple[Probe, ...] | None = Field(default=None, min_length=1, description="each of these holds")


# ---- entries --------------------------------------------------------------------------------------------------

Kind = Literal["copy", "backport", "delegate", "owned"]


class Entry(Model):
    """What a manifest says of one symbol."""

    symbol: SymbolCode | None = Field(default=None, description="upstream's package.module:Qual.name")
    symbols: tuple[SymbolCode, ...] = Field(
        default=(), description="instead of `symbol`: several that the entry is the same for; each gets one of its own"
    )
    name: Annotated[str, Holds("python name", "the name")] | None = Field(
        default=None, description="name in the generated module; the symbol's last part by default"
    )
    kind: Kind = Field(
        default="copy",
        description="copy (from the target pin), backport (from a donor pin), delegate (upstream's signature, own "
        "body), owned (our code)",
    )
    pin: Prose | None = Field(default=None, description="the manifest's pin by default")
    branch: Union[int, Prose, None] = Field(
        default=None, description="which definition, when there are several: its number or a text of its condition"
    )
    accessor: Accessor | None = Field(
        default=None, description="which accessor of a property, when there are several: the deltas' or the delegate's"
    )
    reason: Prose = Field(default="", description="why the copy is needed; the manifest's by default")
    functionality: Prose | None = Field(default=None, description="what the patch does")
    forwarded: Prose | None = Field(default=None, description="where this went upstream, or not-needed")
    remove_when: tuple[Probe, ...] = Field(default=(), description="any of these holds on the target: retire")
    removal: Prose | None = Field(default=None, description="prose beside the probes")
    late: Union[bool, tuple[Annotated[str, Holds("python name", "the late name")], ...]] = Field(
        default=False, description="look these names up at call time (true: all)"
    )
    share: bool = Field(
        default=False, description="the same symbol is generated more than once; every entry of it must say so"
    )
    elsewhere: Prose | None = Field(
        default=None,
        description="why the copy needs nothing of what completes its definition elsewhere in upstream's module",
    )
    depends_on: tuple[Prose, ...] = Field(
        default=(), description="entries reviewed together with this one: name, or module.py::name"
    )
    deltas: tuple[Delta, ...] = Field(default=(), description="what is changed, in order")
    # delegate
    body: StatementsCode | None = Field(default=None, description="delegate: the body")
    via: Literal["super", "original"] | None = Field(
        default=None, description="delegate: how the body reaches upstream's function"
    )
    watch: tuple[SymbolCode, ...] = Field(
        default=(), description="upstream symbols that our code mirrors; a change there is a review"
    )
    # owned
    part: Annotated[str, Holds("part")] | None = Field(
        default=None, description="owned: a .py file below the manifest's folder"
    )

    def each(self) -> Iterator[Entry]:
        """One entry for each of its `symbols`; itself without them."""
        if not self.symbols:
            yield self
        for symbol in self.symbols:
            yield self.model_copy(update={"symbol": symbol, "symbols": ()})

    @property
    def generated_name(self) -> str | None:
        """Its name in the generated module; None for an owned part that is taken whole."""
        if self.name is not None or self.symbol is None:
            return self.name
        return self.symbol.text.rpartition(":")[2].rpartition(".")[2]


class ClassGroup(Model):
    """A generated class that collects entries as its members."""

    name: Annotated[str, Holds("python name", "the class name")] = Field(description="name of the class")
    bases: tuple[NameCode, ...] = Field(default=(), description="base classes")
    doc: Prose | None = Field(default=None, description="its docstring")
    decorators: tuple[ExpressionCode, ...] = Field(default=(), description="decorators, outermost first")
    fields: MemberCode | None = Field(default=None, description="fields of our own, above the members: assignments")
    members: tuple[Entry, ...] = Field(min_length=1, description="its methods and fields, from upstream")

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names that its own fields bind."""
        body = ast.parse(self.fields.text).body if self.fields is not None else []
        targets = [t for node in body for t in (node.targets if isinstance(node, ast.Assign) else [node.target])]  # type: ignore[attr-defined]
        return tuple(t.id for t in targets if isinstance(t, ast.Name))

    @field_validator("members", mode="after")
    @classmethod
    def _each(cls, members: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return tuple(each for member in members for each in member.each())


class GroupEntry(Model):
    """`class:` item of `entries`."""

    class_: ClassGroup = Field(alias="class", description="a generated class")


def _item(value: Any) -> str | None:
    """Which of the two an item of `entries` is; a mapping of the loader knows also the keys that it left out."""
    if isinstance(value, Mapping):
        return "GroupEntry" if "class" in getattr(value, "written", value) else "Entry"
    return type(value).__name__


Item = Annotated[
    Union[Annotated[Entry, Tag("Entry")], Annotated[GroupEntry, Tag("GroupEntry")]],
    Discriminator(_item, custom_error_type="a mapping", custom_error_message="an item of `entries` must be a mapping"),
]


class Manifest(Model):
    """What one manifest says: the description of one generated module."""

    schema_: Literal[1] = Field(alias="schema", description="version of the manifest format")
    module: Annotated[str, Holds("module")] = Field(
        description="path below the generated package root, for instance acme_backport/runner.py"
    )
    summary: Prose = Field(description="what the module is; its docstring")
    pin: Prose | None = Field(default=None, description="default pin of the entries")
    imports: tuple[ImportsCode, ...] = Field(default=(), description="import statements that deltas need")
    remove_when: tuple[Probe, ...] = Field(default=(), description="for entries without their own")
    reason: Prose | None = Field(default=None, description="for entries without their own")
    functionality: Prose | None = Field(default=None, description="for entries without their own")
    forwarded: Prose | None = Field(default=None, description="for entries without their own")
    entries: tuple[Item, ...] = Field(min_length=1, description="what the module holds, in order")

    @model_validator(mode="after")
    def _complete(self) -> Manifest:
        """Give each entry what the manifest says for all, and each of its symbols an entry of its own."""
        items: list[Item] = []
        for item in self.entries:
            if isinstance(item, Entry):
                items += [self._said(entry) for entry in item.each()]
            else:
                members = tuple(self._said(member) for member in item.class_.members)
                items.append(item.model_copy(update={"class_": item.class_.model_copy(update={"members": members})}))
        object.__setattr__(self, "entries", tuple(items))  # frozen for everybody else
        return self

    def _said(self, entry: Entry) -> Entry:
        missing = {
            key: value
            for key in ("reason", "functionality", "forwarded")
            if (value := getattr(self, key)) is not None and not getattr(entry, key)
        }
        return entry.model_copy(update=missing) if missing else entry

    @property
    def path(self) -> str:
        """The manifest file, as the user would type it."""
        return self.where.file

    def all_entries(self) -> Iterator[tuple[Entry, ClassGroup | None]]:
        """Every entry in order, members of class groups with their group."""
        for item in self.entries:
            if isinstance(item, GroupEntry):
                for member in item.class_.members:
                    yield member, item.class_
            else:
                yield item, None

    def ref(self, entry: Entry, group: ClassGroup | None = None) -> str:
        """What findings call an entry: `module.py::name`, and `module.py::Class.name` for a member of a class."""
        name = entry.generated_name or entry.part or "?"
        return f"{self.module}::{group.name + '.' if group else ''}{name}"

    def by_ref(self) -> dict[str, Entry]:
        """Every entry by its reference, in order."""
        return {self.ref(entry, group): entry for entry, group in self.all_entries()}


class Git(Model):
    """A git repository at one commit."""

    url: Prose = Field(description="what `git clone` takes")
    commit: Commit = Field(description="40 hex digits")
    subdirectory: Prose | None = Field(default=None, description="where the project is in the repository")


class Pin(Model):
    """One upstream distribution at one exact identity."""

    distribution: Annotated[str, Holds("distribution")] = Field(description="name on the package index")
    version: Annotated[str, Holds("version")] = Field(description="exact version, a quoted string")
    role: Literal["target", "donor"] = Field(
        default="target", description="target: the ABI to run on; donor: a release to take features from"
    )
    commit: Commit | None = Field(default=None, description="upstream's commit, 40 hex digits; evidence, not identity")
    git: Git | None = Field(default=None, description="the repository and commit it is read at; no index is asked")
    packages: tuple[Annotated[str, Holds("dotted name", "the package")], ...] = Field(
        default=(), description="import packages it provides, `google.cloud` as it is; from the name when empty"
    )

    @property
    def import_packages(self) -> tuple[str, ...]:
        """The import packages that the distribution provides: as declared, else its name as an identifier."""
        return self.packages or (canonicalize_name(self.distribution).replace("-", "_"),)

    def provides(self, module: str) -> bool:
        """Whether a module is one of the distribution's: it is an import package, or lies in one (`google.cloud`)."""
        return any(module == package or module.startswith(f"{package}.") for package in self.import_packages)

    @property
    def source_commit(self) -> str | None:
        """The commit that it is read at, when it is read from a repository."""
        return self.git.commit if self.git is not None else None

    @property
    def revision(self) -> str | None:
        """The commit of upstream's that it is, as far as `pins.yaml` says."""
        return self.commit or self.source_commit

    @property
    def identity(self) -> str:
        """What an upgrade moves: the commit that it is read at, else the version."""
        return self.source_commit or self.version

    def moved(self, to: str) -> Pin:
        """The pin at another identity: a commit of its repository, or a version from the index."""
        if to in (self.identity, self.version):
            return self
        if self.git is not None and re.fullmatch("[0-9a-f]{40}", to):
            return self.model_copy(update={"git": self.git.model_copy(update={"commit": to}), "commit": None})
        return self.model_copy(update={"version": to, "commit": None, "git": None})


class Pins(Model):
    """`pins.yaml`."""

    schema_: Literal[1] = Field(alias="schema", description="version of the format")
    pins: dict[Annotated[str, Holds("pin name")], Pin] = Field(description="name of the pin: its identity")


for _model in (Take, TakeBody, Delta, Probe, Entry, ClassGroup, GroupEntry, Manifest):
    _model.model_rebuild()
