"""A world in which the definitions of a release can be used: their signatures are real, their bodies are recorders.

Nothing of the release is executed but what says what a name, a class or a call is: imports, `def` headers, class statements. A
statement runs when its name is first asked for, in a module of its own, with Python's own machinery: classes are classes, dataclasses
get their constructors from `dataclasses`, members are looked up along the real order of bases, calls bind as calls do.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import functools
import importlib
import types
import typing
from typing import Any

from tools.oracles.meaning.sources import ROOT, Listing, Site, Sources
from tools.oracles.meaning.standins import (
    FUNCTION,
    Builder,
    annotation_of,
    dotted_names,
    field_of,
    last_name,
    record,
    unquoted,
)
from tools.oracles.meaning.values import Default, Held, InconsistentError, Info, Outside

_REAL = {"enum", "dataclasses", "typing", "typing_extensions", "functools", "collections", "builtins", "abc", "types"}
"""Standard modules whose names are what they are; all others are stand-ins."""


class Stub(types.ModuleType):
    """A module: its names come to be when they are asked for."""

    def __init__(self, world: World, listing: Listing) -> None:
        super().__init__(listing.module)
        self.__dict__.update(
            __world__=world,
            __listing__=listing,
            __builtins__=_Names(self),
            __called__=world.called,
            __default__=Default,
            __annotation__=functools.partial(annotation_of),
            __field__=field_of,
            __held__=functools.partial(_held, world, listing),
            __attached__=functools.partial(_attached, world, listing),
            __property__=property,
            __record__=record,
        )

    def __getattr__(self, name: str) -> Any:
        return self.__world__.find(self.__listing__, name)


class _Names(dict[str, Any]):
    """What a module knows beside what it has bound: its own other names, and Python's."""

    def __init__(self, stub: Stub) -> None:
        super().__init__()
        self.stub = stub

    def __missing__(self, name: str) -> Any:
        try:
            return self.stub.__world__.find(self.stub.__listing__, name)
        except AttributeError:
            if hasattr(builtins, name):
                return getattr(builtins, name)
            raise KeyError(name) from None


class World:
    """All modules of one release, as far as they were asked for.

    Attributes:
        events: what recorders were told, in order.
        touched: definitions and sites that were looked at, in order.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.builder = Builder()
        self.stubs: dict[str, Stub] = {}
        self.events: list[Any] = []
        self.touched: dict[Any, None] = {}
        self._chain: dict[tuple[str, str], list[Any]] = {}
        self._busy: list[tuple[str, str]] = []

    # ---- names ------------------------------------------------------------------------------------------------

    def module(self, name: str) -> Stub:
        """A module.

        Raises:
            ModuleNotFoundError: there is none.
        """
        if name not in self.stubs:
            if not self.sources.has(name):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            self.stubs[name] = Stub(self, self.sources.listing(name))
        return self.stubs[name]

    def imported(self, module: str, name: str) -> Any:
        """What `from module import name` gives.

        Raises:
            ImportError: it is not there.
        """
        top = module.partition(".")[0]
        if top != ROOT:
            if top in _REAL:
                with contextlib.suppress(ImportError, AttributeError):
                    return getattr(importlib.import_module(module), name)
            return Outside(f"{module}.{name}")
        try:
            return self.find(self.module(module).__listing__, name)
        except AttributeError:
            raise ImportError(f"cannot import name {name!r} from {module!r}") from None

    def find(self, listing: Listing, name: str, *, typing: bool = False) -> Any:
        """What a name of a module is.

        Raises:
            AttributeError: the module has no such name.
        """
        key = (listing.module, name)
        if key in self._busy or (name.startswith("__") and name not in listing.names):
            raise AttributeError(name)
        space = self.module(listing.module).__dict__
        if name not in space:
            self._busy.append(key)
            try:
                value = self._bind(listing, name, typing)
            finally:
                self._busy.pop()
            if typing and not any(not s.typing for s in listing.names.get(name, ())):
                return value  # it is not there when the code runs
            space[name] = value
        for item in self._chain.get(key, ()):
            self.touched[item] = None
        return space[name]

    def _bind(self, listing: Listing, name: str, typing: bool) -> Any:
        sites = [s for s in listing.names.get(name, ()) if typing or not s.typing]
        if not sites:
            for star in reversed(listing.stars):
                if not name.startswith("_") and self.sources.has(star):
                    with contextlib.suppress(AttributeError):
                        return self.find(self.module(star).__listing__, name)
            if self.sources.has(f"{listing.module}.{name}"):
                return self.module(f"{listing.module}.{name}")
            raise AttributeError(f"module {listing.module!r} has no attribute {name!r}")
        site = sites[-1]
        depth = len(self._busy)
        try:
            value = self._run(listing, name, site)
        except InconsistentError:
            raise
        except (ImportError, NameError, AttributeError, TypeError, ValueError) as error:
            if depth > 1 and isinstance(error, AttributeError):
                raise InconsistentError(f"{listing.module}: {error}") from error
            raise InconsistentError(f"{listing.module}: {type(error).__name__}: {error}") from error
        self._chain[listing.module, name] = [(listing.module, name, site), *self._through(listing, name, site)]
        return value

    def _through(self, listing: Listing, name: str, site: Site) -> list[Any]:
        if isinstance(site.node, ast.ImportFrom):
            alias = next(a for a in site.node.names if (a.asname or a.name) == name)
            return self._chain.get((listing.absolute(site.node), alias.name), [])
        return []

    def _run(self, listing: Listing, name: str, site: Site) -> Any:
        node = site.node
        if isinstance(node, ast.ImportFrom):
            alias = next(a for a in node.names if (a.asname or a.name) == name)
            module = listing.absolute(node)
            if module == listing.module and self.sources.has(f"{module}.{alias.name}"):
                return self.module(f"{module}.{alias.name}")
            return self.imported(module, alias.name)
        if isinstance(node, ast.Import):
            alias = next(a for a in node.names if (a.asname or a.name.partition(".")[0]) == name)
            target = alias.name if alias.asname else name
            top = target.partition(".")[0]
            if top != ROOT:
                return importlib.import_module(target) if top in _REAL else Outside(target)
            return self.module(target)
        if isinstance(node, FUNCTION):
            return self._execute(listing, self.builder.function(listing, node, name, None), name)
        if isinstance(node, ast.ClassDef):
            return self._execute(
                listing, self.builder.class_(listing, node, name, self.module(listing.module).__dict__), name
            )
        if (
            isinstance(node, ast.Assign)
            and dotted_names(node.value)
            and all(isinstance(t, ast.Name) for t in node.targets)
        ):
            return eval(compile(ast.Expression(node.value), "<release>", "eval"), self.module(listing.module).__dict__)
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        return Held(self, listing, name, "constant", [(annotation, value)])

    def _execute(self, listing: Listing, node: ast.stmt, name: str) -> Any:
        space = self.module(listing.module).__dict__
        local: dict[str, Any] = {}
        tree = ast.fix_missing_locations(ast.Module([node], []))
        code = compile(tree, "<release>", "exec", dont_inherit=True)
        told = len(self.events)
        exec(code, space, local)
        del self.events[told:]  # `__init_subclass__`: the release called it, not our code
        return local[name]

    # ---- objects ------------------------------------------------------------------------------------------------

    def make(self, cls: type, depth: int = 0) -> Any:
        """An instance, without its constructor: it has what the methods of the class and its bases set.

        Raises:
            TypeError: it cannot be made.
        """
        made: Any
        try:
            made = object.__new__(cls)
        except TypeError:
            made = cls.__new__(cls)  # type: ignore[call-overload]
        self.fill(made)
        return made

    def fill(self, made: Any) -> None:
        """Give an instance the attributes that methods set; setters of properties that this calls are none of our code's calls."""
        told = len(self.events)
        for one in reversed(type(made).__mro__):
            info: Any = one.__dict__.get("__info__")
            for name, given in info.sets.items() if info is not None else ():
                held = Held(self, info.listing, f"{info.qualname}.{name}", "attribute", given, one)
                with contextlib.suppress(AttributeError, TypeError):
                    object.__setattr__(made, name, held)
        del self.events[told:]

    def called(self, token: int, given: dict[str, Any]) -> Any:
        """What every recorder tells: a function was called, and which parameter got what."""
        info: Info = self.builder.infos[token]
        self.touched[info] = None
        first = info.node.args.posonlyargs + info.node.args.args
        static = any(last_name(d) == "staticmethod" for d in info.node.decorator_list)
        bound = first[0].arg if info.owner is not None and first and not static else None
        if info.node.name == "__init__" and bound:
            self.fill(given[bound])
        if bound and not isinstance(given[bound], int):  # our code gives numbers; all else is the object, or its class
            given = {k: v for k, v in given.items() if k != bound}
        self.events.append(("call", info.kind, given, info))
        return Held(self, info.listing, info.qualname, "result", [(info.node.returns, None)], info.owner)

    def annotated(self, node: ast.expr, listing: Listing, owner: Any) -> type | None:
        """The class of the release that an annotation names; None when it says anything else."""
        node = unquoted(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [s for s in (node.left, node.right) if not (isinstance(s, ast.Constant) and s.value is None)]
            return self.annotated(sides[0], listing, owner) if len(sides) == 1 else None
        if isinstance(node, ast.Subscript):
            if last_name(node.value) in {"Optional", "Final", "ClassVar"}:
                return self.annotated(node.slice, listing, owner)
            return None
        chain = dotted_names(node)
        if not chain:
            return None
        try:
            value = self.find(listing, chain[0], typing=True)
            for name in chain[1:]:
                value = getattr(value, name)
        except AttributeError as error:
            if hasattr(builtins, chain[0]) or owner is not None or chain[0] == "Self":
                return None  # a name of the class body, perhaps
            raise InconsistentError(f"{listing.module}: {error}") from error
        info = value.__dict__.get("__info__") if isinstance(value, type) else None
        if info is None or any(c.__dict__["__info__"].structural for c in value.__mro__ if "__info__" in c.__dict__):
            return None
        return typing.cast(type, value)

    def made_by(self, node: ast.expr | None, listing: Listing) -> type | None:
        """The class that an expression makes an instance of: `K(...)`."""
        if not isinstance(node, ast.Call):
            return None
        chain = dotted_names(node.func)
        return self.annotated(node.func, listing, None) if chain else None


def _held(world: World, listing: Listing, where: str, name: str, text: str, annotation: str) -> Held:
    value = ast.parse(text, mode="eval").body if text else None
    note = ast.parse(annotation, mode="eval").body if annotation else None
    return Held(world, listing, f"{where}.{name}", "class attribute", [(note, value)])


def _attached(world: World, _: Listing, token: int) -> Any:
    def attach(cls: Any) -> Any:
        info = world.builder.infos[token]
        type.__setattr__(cls, "__info__", info)
        own = any(isinstance(n, FUNCTION) and n.name == "__init__" for n in info.node.body)
        if dataclasses.is_dataclass(cls) and "__init__" in cls.__dict__ and not own:
            made = cls.__dict__["__init__"]

            @functools.wraps(made)
            def tell(self: Any, *given: Any, **named: Any) -> None:
                made(self, *given, **named)
                world.events.append(("record", self))

            type.__setattr__(cls, "__init__", tell)
        return cls

    return attach
