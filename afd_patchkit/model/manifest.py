"""What a manifest can say: removal conditions, entries, the module that they make."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from afd_patchkit.model.deltas import Accessor, Delta
from afd_patchkit.model.scalars import (
    SYMBOL,
    AnyPatternCode,
    BaseCode,
    Code,
    ExpressionCode,
    Holds,
    ImportsCode,
    MemberCode,
    Model,
    PlaceCode,
    Prose,
    StatementsCode,
    SymbolCode,
)

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
    alias: SymbolCode | None = Field(
        default=None, description="instead of `symbol`: a name that its module imports; its definition is meant"
    )
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
        default=False,
        description="the same symbol is generated in several classes or modules; every entry of it must say so",
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
        """One entry for each of its `symbols`; itself, with the symbol that its alias names, without them."""
        for symbol in self.symbols:
            yield self.model_copy(update={"symbol": symbol, "symbols": ()})
        if not self.symbols:
            named = self.symbol is None and self.alias is not None
            yield self.model_copy(update={"symbol": self.alias}) if named else self

    @property
    def generated_name(self) -> str | None:
        """Its name in the generated module; None for an owned part that is taken whole."""
        if self.name is not None or self.symbol is None:
            return self.name
        return self.symbol.text.rpartition(":")[2].rpartition(".")[2]


class ClassGroup(Model):
    """A generated class that collects entries as its members."""

    name: Annotated[str, Holds("python name", "the class name")] = Field(description="name of the class")
    bases: tuple[BaseCode, ...] = Field(default=(), description="base classes")
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


_SYMBOLS = frozenset({"symbol", "symbols", "alias", "part"})
"""Keys that only an entry has: with one of them, `class` is a slip."""


def _item(value: Any) -> str | None:
    """Which of the two an item of `entries` is; a mapping of the loader knows also the keys that it left out."""
    if isinstance(value, Mapping):
        keys = getattr(value, "written", value)
        return "GroupEntry" if "class" in keys and not _SYMBOLS.intersection(keys) else "Entry"
    return type(value).__name__


Item = Annotated[
    Union[Annotated[Entry, Tag("Entry")], Annotated[GroupEntry, Tag("GroupEntry")]],
    Discriminator(_item, custom_error_type="a mapping", custom_error_message="an item of `entries` must be a mapping"),
]


Mode = Literal["process", "scope", "subclass"]


class Install(Model):
    """An attribute of upstream's that is replaced where the generated package is installed."""

    symbol: SymbolCode = Field(
        description="upstream's package.module:Qual.name: a function, a member of a class, a class, or a name that the "
        "module imports"
    )
    with_: Annotated[str, Holds("dotted name", "what replaces it")] | None = Field(
        default=None,
        alias="with",
        description="a name of the generated module, or Class.member; that of the symbol's entry by default",
    )
    mode: Mode = Field(
        default="process",
        description="process (bound once), scope (bound for a while), subclass (nothing is bound: a generated class overrides it)",
    )
    aliases: Union[Literal["all"], tuple[Annotated[str, Holds("dotted name", "the module")], ...]] | None = Field(
        default=None,
        description="modules whose own names of it are bound, too; `all` by default, none for a name that its module imports",
    )
    native: tuple[Annotated[str, Holds("dotted name", "the module")], ...] = Field(
        default=(), description="modules that keep upstream's"
    )


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
    installs: tuple[Install, ...] = Field(
        default=(), description="what of it replaces upstream's, where it is installed"
    )

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
        self._import_bases()
        return self

    def _import_bases(self) -> None:
        """Give each base that is written as a symbol its import, and the name that it is imported by."""
        own = {group.name if group else entry.generated_name for entry, group in self.all_entries()}
        imports: dict[str, Code] = {}
        for item in self.entries:
            group = item.class_ if isinstance(item, GroupEntry) else None
            if group is not None:
                bases = tuple(_imported(base, own, imports) for base in group.bases)
                object.__setattr__(item, "class_", group.model_copy(update={"bases": bases}))
        known = {code.text.strip() for code in self.imports}
        more = tuple(code for text, code in imports.items() if text not in known)
        object.__setattr__(self, "imports", (*self.imports, *more))

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

    def standing_for(self, symbol: str) -> list[str]:
        """What its entries of an upstream symbol are called in the generated module, `Class.name` in a class."""
        return [
            f"{group.name}.{entry.generated_name}" if group else str(entry.generated_name)
            for entry, group in self.all_entries()
            if entry.symbol is not None and entry.symbol.text.strip() == symbol
        ]

    def by_ref(self) -> dict[str, Entry]:
        """Every entry by its reference, in order."""
        return {self.ref(entry, group): entry for entry, group in self.all_entries()}


def _imported(base: Code, own: Collection[str | None], imports: dict[str, Code]) -> Code:
    """A base as the module's text has it; the import that it needs goes into `imports`, statement to place."""
    text = base.text.strip()
    if not SYMBOL.fullmatch(text):
        return base
    module, _, path = text.partition(":")
    first = path.partition(".")[0]
    # a class of ours must not hide a base of the same name
    taken = first in own
    statement, name = (f"import {module}", f"{module}.{path}") if taken else (f"from {module} import {first}", path)
    imports.setdefault(statement, Code(statement, base.position))
    return Code(name, base.position if taken else base.at(1, len(module) + 2))


for _model in (Probe, Entry, ClassGroup, GroupEntry, Install, Manifest):
    _model.model_rebuild()
