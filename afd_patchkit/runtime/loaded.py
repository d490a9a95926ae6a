"""Modules and classes as they lie in memory, looked at without running anything: `__dict__` only, never an attribute."""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

MISSING: Any = object()
"""What stands where nothing is."""

CAPTURE = "_patchkit_original"
"""The function of a generated module that takes the original of a delegate."""

_CLASS_DICT = type.__dict__["__dict__"]
_CONTAINERS = (list, tuple, set, frozenset)


class NamePlace(NamedTuple):
    """Where a name is bound.

    Attributes:
        module: the module, as `sys.modules` calls it.
        path: classes of the module, outermost first, and the name.
        owner: the namespace of the module, or the class.
    """

    module: str
    path: tuple[str, ...]
    owner: Any

    def __str__(self) -> str:
        return ".".join((self.module, *self.path))

    def get(self) -> Any:
        """What is bound there; MISSING when nothing is. A class gives what it has itself, as it lies there."""
        return _items(self.owner).get(self.path[-1], MISSING)

    def set(self, value: Any) -> None:
        """Bind a value there, or nothing any more (MISSING); no metaclass and no module has a say in it.

        Raises:
            TypeError: the class cannot be changed.
        """
        name = self.path[-1]
        if type(self.owner) is dict:
            if value is MISSING:
                self.owner.pop(name, None)
            else:
                self.owner[name] = value
        elif value is MISSING:
            type.__delattr__(self.owner, name)
        else:
            type.__setattr__(self.owner, name, value)


class Holder(NamedTuple):
    """Somebody who holds an object.

    Attributes:
        place: the name that leads to it.
        held: the object.
        within: how it lies there when it is not bound to the name itself, such as `default of run`; nothing can rebind it there.
    """

    place: NamePlace
    held: Any
    within: str = ""

    def __str__(self) -> str:
        return f"{self.place} ({self.within})" if self.within else str(self.place)


def namespace(module: object) -> dict[str, Any] | None:
    """The namespace of what lies in `sys.modules`; a module that is loaded lazily stays unloaded."""
    try:
        found = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def is_lazy(module: object) -> bool:
    """Whether a module waits for its first use to be run (`importlib.util.LazyLoader`)."""
    kind = type(module)
    return kind.__module__ == "importlib.util" and kind is not ModuleType


def find(module: str, path: tuple[str, ...]) -> NamePlace | None:
    """The place of `module:path` in memory; None when the module or one of the classes on the way is not there."""
    owner: Any = namespace(sys.modules.get(module))
    for name in path[:-1]:
        owner = None if owner is None else _items(owner).get(name)
        if not is_class(owner):
            return None
    return None if owner is None else NamePlace(module, path, owner)


def is_class(value: object) -> bool:
    """Whether a value is a class, asked of its type: a proxy is not woken up."""
    return issubclass(type(value), type)


def _items(owner: Any) -> Mapping[str, Any]:
    return owner if type(owner) is dict else _CLASS_DICT.__get__(owner)


def function_of(value: Any) -> Any:
    """The function of a static or class method; the value itself otherwise."""
    return value.__func__ if type(value) in (staticmethod, classmethod) else value


def holders(wanted: Collection[int], left_alone: Collection[str]) -> Iterator[Holder]:
    """Who holds one of the objects with these identities, in all loaded modules and their classes.

    Args:
        wanted: `id` of each object.
        left_alone: names of packages whose modules are not looked at.
    """
    seen: set[int] = set()
    for name, module in list(sys.modules.items()):
        if any(name == package or name.startswith(f"{package}.") for package in left_alone):
            continue
        items = namespace(module)
        if items is not None and id(items) not in seen:
            seen.add(id(items))
            yield from _of(wanted, NamePlace(name, (), items), seen)


def _of(wanted: Collection[int], outer: NamePlace, seen: set[int]) -> Iterator[Holder]:
    captures = CAPTURE in _items(outer.owner)
    for name, value in list(_items(outer.owner).items()):
        if type(name) is not str or (captures and name.startswith("_original")):
            continue  # what a generated delegate calls
        place = NamePlace(outer.module, (*outer.path, name), outer.owner)
        kind = type(value)
        if id(value) in wanted:
            yield Holder(place, value)
        elif kind in (staticmethod, classmethod):
            if id(value.__func__) in wanted:
                yield Holder(place, value)
        elif issubclass(kind, type):
            if id(value) not in seen and _items(value).get("__module__") == outer.module:
                seen.add(id(value))
                yield from _of(wanted, NamePlace(outer.module, place.path, value), seen)
        else:
            for inner, how in _inside(value, kind):
                if id(inner) in wanted:
                    yield Holder(place, inner, how)


def _inside(value: Any, kind: type) -> Iterator[tuple[Any, str]]:
    """What a value holds, one step deep."""
    if kind is FunctionType:
        for default in value.__defaults__ or ():
            yield default, "the default of a parameter"
        for default in (value.__kwdefaults__ or {}).values():
            yield default, "the default of a parameter"
    elif kind is dict:
        for item in list(value.values()):
            yield item, "a value of a dict"
    elif kind in _CONTAINERS:
        for item in list(value):
            yield item, f"an item of a {kind.__name__}"
    elif kind is MethodType:
        yield value.__func__, "a bound method"
    elif kind is functools.partial:
        for item in (value.func, *value.args, *value.keywords.values()):
            yield item, "a partial"
