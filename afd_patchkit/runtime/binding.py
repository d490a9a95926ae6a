"""Names that are bound to something else, all of them or none, and that can be given back."""

# Standard library only: generated packages carry this module, and do not need the engine.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from afd_patchkit.runtime.gate import Gate
from afd_patchkit.runtime.loaded import MISSING, NamePlace, function_of, is_class
from afd_patchkit.runtime.proof import Pinned, described


class Target(NamedTuple):
    """An upstream attribute, and what replaces it.

    Attributes:
        module: the module that has it.
        path: its qualified name there, in parts.
        replacement: `package.module:Qual.name` of what is generated.
        mode: `process`, `scope` or `subclass`.
        pinned: the original.
        gate: the release that it is bound on.
        aliases: the modules in which its other names are bound, too; None for all that hold it.
        native: modules whose names of it stay upstream's.
        sites: the other names that upstream gives it, module and qualified name.
    """

    module: str
    path: tuple[str, ...]
    replacement: str
    mode: str
    pinned: Pinned
    gate: Gate
    aliases: tuple[str, ...] | None = None
    native: tuple[str, ...] = ()
    sites: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.module}:{'.'.join(self.path)}"

    def reaches(self, module: str) -> bool:
        """Whether a name of it in this module is bound, too."""
        return module not in self.native and (self.aliases is None or module in self.aliases)


class Rebinding(NamedTuple):
    """One name: what it is bound to before and after."""

    place: NamePlace
    before: Any
    after: Any


class Bound:
    """A target that is installed.

    Attributes:
        target: what.
        original: what was in place.
        value: what is.
        changes: every name that was bound, by its owner and name.
        early: names that held the replacement before, since they took it from the generated package.
        beyond: who holds the original so that nothing can rebind it.
        again: it is bound again, after something was imported again.
        stale: what it was bound to the first time; MISSING before.
    """

    def __init__(self, target: Target, original: Any, value: Any) -> None:
        self.target, self.original, self.value = target, original, value
        self.changes: dict[tuple[int, str], Rebinding] = {}
        self.early: set[str] = set()
        self.beyond: list[str] = []
        self.again = False
        self.stale: Any = MISSING

    def like(self, held: Any, *, original: bool) -> Any:
        """The original, or the replacement, in the form in which the other one is held."""
        whole = self.original if original else self.value
        if type(held) in (staticmethod, classmethod) and type(whole) is not type(held):
            return type(held)(function_of(whole))
        return whole if type(held) is type(whole) else function_of(whole)


_FAMILIES = (staticmethod, classmethod, property, cached_property)


def _family(value: Any) -> type | None:
    return next((family for family in _FAMILIES if issubclass(type(value), family)), None)


def fitted(original: Any, replacement: Any, place: NamePlace) -> Any:
    """The replacement as the kind of attribute that the original is.

    Raises:
        TypeError: it is another kind.
    """
    wanted, given = _family(original), _family(replacement)
    if is_class(original) != is_class(replacement):
        raise TypeError(f"{described(replacement)} cannot stand for {described(original)}")
    if wanted is given:
        return replacement
    if given is not None or not callable(replacement):
        names = [family.__name__ if family else "function" for family in (wanted, given)]
        raise TypeError(f"it is a {names[0]}, and its replacement a {names[1]}")
    if wanted is property:
        return property(replacement, original.fset, original.fdel, original.__doc__)
    assert wanted is not None
    made = wanted(replacement)
    if wanted is cached_property:
        made.__set_name__(place.owner, place.path[-1])
    return made


def bind(changes: Sequence[Rebinding]) -> None:
    """Make all changes, or none.

    Raises:
        BindError: one could not be made; the others were taken back.
    """
    for count, change in enumerate(changes):
        try:
            change.place.set(change.after)
        except Exception as error:
            problems = [f"{change.place} cannot be bound: {error}"]
            problems += give_back(changes[:count])
            raise BindError(problems) from error


def give_back(changes: Iterable[Rebinding]) -> list[str]:
    """Take changes back, the last first, all that can be; what stands in the way is returned.

    What somebody else has bound there meanwhile stays.
    """
    problems = []
    for place, before, after in reversed(list(changes)):
        found = place.get()
        if found is before:
            continue
        if found is not after:
            what = "nothing" if found is MISSING else described(found)
            problems.append(f"{place} is not given back: {what} was bound there meanwhile")
            continue
        try:
            place.set(before)
        except Exception as error:  # the rest is given back all the same
            problems.append(f"{place} is not given back: {error}")
    return problems


class BindError(Exception):
    """Names could not be bound; `problems` says which."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
