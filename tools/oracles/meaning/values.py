"""What a name of the world can be, beside functions and classes."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field
from typing import Any, Protocol

from tools.oracles.meaning.sources import Listing


class InconsistentError(Exception):
    """The release itself does not work there: a name that its own text needs is gone."""


@dataclass(eq=False)
class Info:
    """What one definition is.

    Attributes:
        listing: the module that it stands in.
        qualname: its path there.
        node: its statement.
        kind: `function`, `async`, `generator`, `property`; `class`.
        gives: its return annotation, in normal form.
        owner: of a method, the class statement that it stands in.
        sets: of a class, attributes that its methods set: name to annotation and values.
        structural: of a class, its values are objects of other classes.
    """

    listing: Listing
    qualname: str
    node: Any
    kind: str
    gives: str = ""
    owner: Any = None
    sets: dict[str, list[tuple[ast.expr | None, ast.expr | None]]] = field(default_factory=dict)
    structural: bool = False

    @property
    def origin(self) -> str:
        """`module:qualname`."""
        return f"{self.listing.module}:{self.qualname}"

    @functools.cached_property
    def text(self) -> str:
        """Its text in normal form, its own name left out."""
        name, self.node.name = self.node.name, "_"
        try:
            return ast.unparse(self.node)
        finally:
            self.node.name = name


@dataclass(frozen=True)
class Default:
    """A default value: equal when it is written alike."""

    text: str


class Outside:
    """Something that is no part of the release."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Outside:
        if name.startswith("__"):
            raise AttributeError(name)
        return Outside(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> Outside:
        return Outside(f"{self._name}()")

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (_outside_class(self._name),)


@functools.cache
def _outside_class(name: str) -> type:
    return type(name.replace(".", "_"), (), {"__outside__": True})


class Maker(Protocol):
    """What says of which class a value is, and makes instances: a `World`."""

    def make(self, cls: type, depth: int = 0) -> Any:
        """An instance of a class of the release."""

    def annotated(self, node: ast.expr, listing: Listing, owner: Any) -> type | None:
        """The class that an annotation names."""

    def made_by(self, node: ast.expr | None, listing: Listing) -> type | None:
        """The class that an expression makes an instance of."""


class Held:
    """A value that is only known by its annotation, or by what it is assigned."""

    def __init__(
        self, world: Maker, listing: Listing, where: str, what: str, given: list[Any], owner: Any = None
    ) -> None:
        self._world, self._listing, self._where, self._what, self._given, self._owner = (
            world,
            listing,
            where,
            what,
            given,
            owner,
        )

    def class_of(self) -> type | None:
        """The class of the release that it is an instance of."""
        annotation = next((a for a, _ in self._given if a is not None), None)
        if annotation is not None:
            return self._world.annotated(annotation, self._listing, self._owner)
        found = {
            self._world.made_by(e, self._listing)
            for _, e in self._given
            if not (isinstance(e, ast.Constant) and e.value is None)
        }
        return found.pop() if len(found) == 1 else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cls = self.class_of()
        return Outside("?") if cls is None else getattr(self._world.make(cls), name)

    def __call__(self, *_: object, **__: object) -> Outside:
        return Outside("?")
