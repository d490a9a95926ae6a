"""What a name or an attribute can lead to."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.source.text import SourceFile

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
How = Literal["plain", "static", "class", "property"]


@dataclass(frozen=True)
class Module:
    """A module of the trees."""

    name: str

    @property
    def reference(self) -> str:
        """Its dotted name."""
        return self.name


@dataclass(frozen=True)
class Class:
    """A class of the trees.

    Attributes:
        module: dotted name of the module that defines it.
        qualname: its path in the module.
        file: that module's source.
        node: its statement.
    """

    module: str
    qualname: str
    file: SourceFile
    node: ast.ClassDef

    @property
    def reference(self) -> str:
        """`package.module:Qual.name`."""
        return f"{self.module}:{self.qualname}"

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.node.name


@dataclass(frozen=True)
class Function:
    """A function or method of the trees.

    Attributes:
        module: dotted name of the module that defines it.
        qualname: its path in the module.
        file: that module's source.
        nodes: its statements: overloads with their implementation, a property with its accessors.
        owner: the class that it is a member of.
        how: what its decorators make of it.
        bound: whether the first parameter is given already (read from an instance, or a class method).
    """

    module: str
    qualname: str
    file: SourceFile
    nodes: tuple[FunctionNode, ...]
    owner: Class | None = None
    how: How = "plain"
    bound: bool = False

    @property
    def node(self) -> FunctionNode:
        """The statement that counts: the implementation, the getter."""
        return self.nodes[0] if self.how == "property" else self.nodes[-1]

    @property
    def reference(self) -> str:
        """`package.module:Qual.name`."""
        return f"{self.module}:{self.qualname}"


@dataclass(frozen=True)
class Value:
    """A constant, a field, an attribute that methods set, a member of an enumeration.

    Attributes:
        module: dotted name of the module that defines it.
        qualname: its path in the module.
        file: that module's source.
        nodes: the statements that give it.
        owner: the class that it belongs to.
        annotation: its annotation; None when it has none.
        values: the expressions that it is given, where they are plain, each with the method that it stands in.
        what: `constant`, `attribute`, `field` or `member` (of an enumeration).
    """

    module: str
    qualname: str
    file: SourceFile
    nodes: tuple[ast.AST, ...]
    owner: Class | None = None
    annotation: ast.expr | None = None
    values: tuple[tuple[ast.expr, FunctionNode | None], ...] = ()
    what: Literal["constant", "attribute", "field", "member"] = "constant"

    @property
    def reference(self) -> str:
        """`package.module:Qual.name`."""
        return f"{self.module}:{self.qualname}"


@dataclass(frozen=True)
class Instance:
    """Some object of a class.

    Attributes:
        of: the class.
        narrowed: the code around asks for more (`isinstance`): it may be of a subclass, which has and takes what that says.
    """

    of: Class
    narrowed: bool = False


@dataclass(frozen=True)
class Super:
    """`super()` in a class: what stands behind it in the order of its bases."""

    of: Class
    instance: bool


@dataclass(frozen=True)
class Several:
    """A name that branches define differently; one of these is meant."""

    things: tuple[Found, ...]

    @property
    def reference(self) -> str:
        """That of the first one."""
        return self.things[0].reference


@dataclass(frozen=True)
class Outside:
    """Something of a package that no pin provides; it is not judged."""

    name: str


@dataclass(frozen=True)
class Unknown:
    """A value that nothing is known of."""


@dataclass(frozen=True)
class Missing:
    """Something that the trees would have if it existed, and that they lack.

    Attributes:
        where: what was searched: a module or a class, as a reference.
        name: what it lacks.
        near: what it has instead, best first.
    """

    where: str
    name: str
    near: tuple[str, ...] = ()


Found = Module | Class | Function | Value
Thing = Found | Instance | Super | Several | Outside | Unknown | Missing

UNKNOWN = Unknown()
