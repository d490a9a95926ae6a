"""What a delta can do, as one table: the key rules, the JSON Schema, the application and the upgrade read it.

A new operation is a row here, its field in `model.Delta`, its function in `delta/`, and its row in docs/manifests.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Alternative:
    """What goes with one operation (or one kind of entry).

    Attributes:
        needs: keys that must stand beside it.
        may: keys that may stand beside it.
        one_of: exactly one of these stands beside it.
        some_of: at least one of these stands beside it.
        at_most: at most one of these stands beside it.
        clashes: pairs of keys that do not go together.
        requires: pairs of keys of which the first needs the second.
        with_if: `with` stands beside it exactly when the operation's own mapping has this key.
        instead: keys that may stand in place of one in `needs`.
        help: what to write, for a key that is missing.
    """

    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    some_of: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()
    clashes: tuple[tuple[str, str], ...] = ()
    requires: tuple[tuple[str, str], ...] = ()
    with_if: str | None = None
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    help: str | None = None

    @property
    def companions(self) -> frozenset[str]:
        """All keys that may stand beside it."""
        with_ = ("with",) if self.with_if else ()
        return frozenset((*self.needs, *self.may, *self.one_of, *self.some_of, *self.at_most, *with_))


@dataclass(frozen=True, slots=True)
class Operation:
    """What the parts of the engine need to know of one operation.

    Attributes:
        keys: what goes with it.
        new: what `with` holds.
        anchors: keys of the patterns that say where it goes; `call.match` is `match` in the mapping of `call`.
        takes: whether it brings statements of its own, which `take` may give from another pin.
        keeps: whether `__upstream__` in its code stands for what it replaces.
        beside: whether it stands beside its anchor and leaves that as it is.
        drops: whether whole statements of upstream's go.
        header: whether it changes the header and not the body: what reads no locals, and what a delegate may do.
        call: whether its anchor is a call, whose arguments an upgrade watches.
        edits: whether it edits the text; else the names that are written in it do.
        repeats: the code of it that could repeat what it replaces: `with`, or each expression that it puts in.
    """

    keys: Alternative
    new: Literal["statements", "expression", "clause", "parameter", "member"] = "statements"
    anchors: tuple[str, ...] = ()
    takes: bool = False
    keeps: bool = False
    beside: bool = False
    drops: bool = False
    header: bool = False
    call: bool = False
    edits: bool = True
    repeats: Literal["with", "expressions"] | None = None


_SEARCH = ("within", "next_to", "nth", "count")
_CLASHES = (("nth", "count"),)
_CHANGE = Alternative(may=("comments",), with_if="replace")
_HEADER = Alternative(may=("comments", "accessor", "within"), clashes=(("accessor", "within"),), with_if="replace")

OPERATIONS: Mapping[str, Operation] = {
    "insert": Operation(
        Alternative(
            one_of=("before", "after", "at"),
            may=(*_SEARCH, "accessor"),
            clashes=(*_CLASHES, ("at", "next_to"), ("at", "nth"), ("at", "count")),
        ),
        anchors=("before", "after"),
        takes=True,
        beside=True,
    ),
    "replace": Operation(
        Alternative(
            needs=("with",),
            may=(*_SEARCH, "parts", "deltas", "comments"),
            clashes=_CLASHES,
            help="Give the new code in `with`; to drop statements, use `remove`.",
        ),
        anchors=("replace",),
        takes=True,
        keeps=True,
        drops=True,
        repeats="with",
    ),
    "remove": Operation(Alternative(may=(*_SEARCH, "comments"), clashes=_CLASHES), anchors=("remove",), drops=True),
    "expr": Operation(
        Alternative(needs=("with",), may=_SEARCH, clashes=_CLASHES, help="Give the new expression in `with`."),
        new="expression",
        anchors=("expr",),
        keeps=True,
        repeats="expressions",
    ),
    "call": Operation(
        Alternative(may=(*_SEARCH, "comments"), clashes=_CLASHES),
        anchors=("call.match",),
        call=True,
        repeats="expressions",
    ),
    "elements": Operation(
        Alternative(may=(*_SEARCH, "comments"), clashes=_CLASHES, with_if="replace"),
        new="expression",
        anchors=("elements.of",),
        keeps=True,
        repeats="expressions",
    ),
    "clause": Operation(
        Alternative(may=(*_SEARCH, "comments"), clashes=_CLASHES, with_if="replace"),
        new="clause",
        anchors=("clause.of",),
        keeps=True,
        repeats="with",
    ),
    "parameter": Operation(_HEADER, new="parameter", header=True),
    "returns": Operation(Alternative(may=("accessor", "within"), clashes=(("accessor", "within"),)), header=True),
    "decorator": Operation(_HEADER, new="expression", header=True, repeats="with"),
    "member": Operation(_CHANGE, new="member", keeps=True, repeats="with"),
    "field": Operation(_CHANGE, new="member", keeps=True, repeats="with"),
    "rebind": Operation(Alternative(), header=True, edits=False),
}
