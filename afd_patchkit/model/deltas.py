"""What a delta can say: its operation, and what goes with each."""

from __future__ import annotations

from typing import Annotated, Literal, Union

from pydantic import Field

from afd_patchkit.model.scalars import (
    AnyPatternCode,
    Argument,
    ClauseCode,
    ElementCode,
    ExpressionCode,
    ExpressionPatternCode,
    HeadCode,
    Holds,
    MemberCode,
    MemberName,
    Model,
    NameCode,
    ParameterCode,
    ParameterName,
    PatternCode,
    Prose,
    StatementsCode,
    SymbolCode,
    TargetsCode,
    WithCode,
)
from afd_patchkit.operations import OPERATIONS, Operation


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


for _model in (Take, TakeBody, Delta):
    _model.model_rebuild()
