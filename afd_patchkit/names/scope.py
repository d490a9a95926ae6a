"""A scope of analysed code, and a use of a name in it: what `names.analysis` finds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

Context = Literal["load", "store", "del"]
Where = Literal["body", "header", "annotation"]


class Scope:
    """One scope of the analysed code; `outer` is the one that the statements stand in."""

    __slots__ = ("bound", "children", "globals", "kind", "name", "node", "nonlocals", "parent", "private")

    def __init__(self, kind: str, node: ast.AST | None, parent: Scope | None, name: str, private: str | None) -> None:
        self.kind = kind  # outer, function, lambda, comprehension, class, type_params
        self.node = node
        self.parent = parent
        self.name = name
        self.private = private
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.children: list[Scope] = []
        if parent is not None:
            parent.children.append(self)

    @property
    def is_function(self) -> bool:
        """Whether names bound here are visible to nested scopes."""
        return self.kind not in {"class", "outer"}

    def chain(self) -> Iterator[Scope]:
        """The scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def walk(self) -> Iterator[Scope]:
        """The scope and all scopes below it."""
        yield self
        for child in self.children:
            yield from child.walk()


class Use:
    """One occurrence of a name, before it is resolved.

    Attributes:
        name: the name as Python looks it up (mangled where the code itself stands in a class).
        node: the node that carries the name.
        kind: what `node` is to the name: `name`, `def`, `alias`, `except`, `capture`, `rest`, `global`, `param`, `type`.
        early: read in a class body before the class binds the name, so the module's meaning holds.
        quoted: the string constant that holds the annotation in which the name stands.
        fstring: the outermost f-string around it.
        own: bound by the analysed statements themselves (recursion, `@x.setter`).
    """

    __slots__ = ("ctx", "deferred", "early", "evaluated", "fstring", "kind", "name", "node", "own", "quoted", "scope", "where")  # fmt: skip

    def __init__(
        self, name: str, node: ast.AST, ctx: Context, kind: str, scope: Scope, state: State, early: bool
    ) -> None:
        self.name = name
        self.node = node
        self.ctx: Context = ctx
        self.kind = kind
        self.scope = scope
        self.early = early
        self.where: Where = state.where
        self.deferred = state.deferred
        self.evaluated = state.evaluated
        self.quoted = state.quoted
        self.fstring = state.fstring
        self.own = False

    @property
    def in_nested(self) -> bool:
        """Whether it stands in a scope of its own, which does not see the names of a class around the statements."""
        scope: Scope | None = self.scope
        while scope is not None and scope.kind == "type_params":
            scope = scope.parent
        return scope is not None and scope.kind != "outer"

    @property
    def class_node(self) -> ast.ClassDef | None:
        """The class, among the analysed code, that `super()` and `__class__` mean here."""
        inside_function = False
        for scope in self.scope.chain():
            if scope.kind == "class" and inside_function:
                assert isinstance(scope.node, ast.ClassDef)
                return scope.node
            inside_function = inside_function or scope.is_function
        return None

    def line(self) -> int:
        """1-based line of the analysed text."""
        node = self.quoted if self.quoted is not None else self.node
        return int(getattr(node, "lineno", 1))


class State:
    """What surrounds the node that is being visited; cheap to copy."""

    __slots__ = ("deferred", "evaluated", "fstring", "quoted", "where")

    def __init__(self) -> None:
        self.where: Where = "body"
        self.deferred = False
        self.evaluated = True
        self.quoted: ast.Constant | None = None
        self.fstring: ast.AST | None = None

    def copy(self) -> State:
        """The same, to be changed."""
        new = State.__new__(State)
        new.where, new.deferred, new.evaluated = self.where, self.deferred, self.evaluated
        new.quoted, new.fstring = self.quoted, self.fstring
        return new
