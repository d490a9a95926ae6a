"""What a change does to our own code, found by running that code in the world of either release."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tools.oracles.meaning.sources import ROOT
from tools.oracles.meaning.standins import unquoted
from tools.oracles.meaning.values import Default, Held, InconsistentError, Info, Outside
from tools.oracles.meaning.world import World

Verdict = Literal["same", "different", "broken", "open"]
"""`broken`: it fails; `different`: it runs, and something else happens; `open`: a matter of taste (an attribute that became a class
attribute); `same` otherwise."""
_ORDER: tuple[Verdict, ...] = ("same", "open", "different", "broken")


@dataclass(frozen=True)
class Snippet:
    """A few statements of our own.

    Attributes:
        kind: how it refers to what it refers to.
        number: the name that it binds is `probe_NUMBER`.
        ours: as the manifest has it.
        judged: as the judge runs it; mostly the same.
        imports: imports of the manifest that it needs.
    """

    kind: str
    number: int
    ours: str
    judged: str
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Own:
    """Own code, and where it stands.

    Attributes:
        snippets: its statements.
        home: module whose names it sees.
        owner: class of `self`, as `module:Qual.name`; empty without one.
        method: name of the method that it stands in.
        parameters: parameters to the text of their annotations, in the home module.
    """

    snippets: tuple[Snippet, ...]
    home: str
    owner: str = ""
    method: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


class _Around(dict[str, Any]):
    """What our code sees: the names of its home, Python's, and imports that lead into the world."""

    def __init__(self, world: World, home: str) -> None:
        super().__init__()
        self.world, self.home = world, home
        self["__import__"] = self.imported

    def __missing__(self, name: str) -> Any:
        try:
            return self.world.find(self.world.module(self.home).__listing__, name) if self.home else self.python(name)
        except AttributeError:
            return self.python(name)

    @staticmethod
    def python(name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise KeyError(name)

    def imported(self, name: str, _: object = None, __: object = None, names: Any = (), level: int = 0) -> Any:
        top = name.partition(".")[0]
        if top != ROOT or level:
            raise InconsistentError(f"own code imports {name}")
        return self.world.module(name) if names or self.world.module(name) is None else self.world.module(top)


class Runner:
    """Own code in one world."""

    def __init__(self, world: World, own: Own) -> None:
        self.world, self.own = world, own
        self.space: dict[str, Any] = {"__builtins__": _Around(world, own.home), "__made__": world.make}

    def prepare(self) -> None:
        """`self` and the parameters, as far as their classes are known.

        Raises:
            Exception: the class of `self` is not there any more.
        """
        world, own = self.world, self.own
        if own.owner:
            module, _, qualname = own.owner.partition(":")
            value: Any = world.module(module)
            for name in qualname.split("."):
                value = getattr(value, name)
            self.space["self"] = world.make(value)
            self.space["__home__"] = value
        for name, text in own.parameters.items():
            cls = world.annotated(ast.parse(text, mode="eval").body, world.module(own.home).__listing__, None)
            self.space[name] = Outside("?") if cls is None else world.make(cls)

    def run(self, snippet: Snippet) -> Any:
        """What happens: the events, and what the name is bound to.

        Raises:
            Exception: whatever our code raises.
        """
        self.world.events = []
        for line in snippet.imports:
            exec(compile(line, "<ours>", "exec", dont_inherit=True), self.space)
        exec(compile(snippet.judged, "<ours>", "exec", dont_inherit=True), self.space)
        value = self.space.get(f"probe_{snippet.number}")
        self.look(value)
        return list(self.world.events), value

    def look(self, value: Any) -> None:
        """Say that a value was looked at, so that its definition may be changed."""
        if isinstance(value, Held):
            self.world.touched[value] = None
        elif isinstance(value, enum.Enum):
            self.world.touched[type(value).__dict__["__info__"]] = None
        elif isinstance(value, type) and "__info__" in value.__dict__:
            self.world.touched[value.__dict__["__info__"]] = None
        elif (found := info_of(value)) is not None:
            self.world.touched[found] = None
        elif (info := type(value).__dict__.get("__info__")) is not None:
            self.world.touched[info] = None


def info_of(value: Any) -> Info | None:
    """The definition behind a function or a bound method."""
    function = value.__func__ if isinstance(value, types.MethodType) else value
    if not isinstance(function, types.FunctionType) or "__world__" not in function.__globals__:
        return None
    token = next((c for c in function.__code__.co_consts if isinstance(c, int)), None)
    found = function.__globals__["__world__"].builder.infos[token] if token is not None else None
    return found if isinstance(found, Info) else None


# ---- comparison ---------------------------------------------------------------------------------------------------


def verdict(before: tuple[list[Any], Any], after: tuple[list[Any], Any]) -> tuple[Verdict, str]:
    """What is different between two runs of one snippet."""
    old, new = before[0], after[0]
    if len(old) != len(new):
        return "different", f"{len(new)} calls, were {len(old)}"
    said = [_call(a, b) for a, b in zip(old, new, strict=True)]
    said.append(_value(before[1], after[1]))
    return max(said, key=lambda s: _ORDER.index(s[0]))


def _call(old: Any, new: Any) -> tuple[Verdict, str]:
    if old[0] != new[0]:
        return "different", "another kind of call"
    if old[0] == "record":
        return _record(old[1], new[1])
    _, kind, given, info = old
    _, now, gets, there = new
    if (info.node.name == "__init__") != (there.node.name == "__init__"):
        return "different", "a class became a function, or the other way round"
    if kind != now:
        return "different", f"{kind} became {now}"
    if info.gives and there.gives and info.gives != there.gives:
        return "different", f"it gives {there.gives}, was {info.gives}"
    if (other := _other(info, there)) is not None:
        return other
    more = {a.arg for a in (there.node.args.vararg, there.node.args.kwarg) if a is not None}
    if any(gets[name] and not given.get(name, gets[name]) for name in more):
        return "different", "more arguments are left over"
    for name, value in given.items():
        if isinstance(value, Default):
            if isinstance(gets.get(name), Default) and gets[name] != value:
                return "different", f"default of {name}"
        elif value not in ((), {}) and gets.get(name) != value:
            return "different", f"{name} does not get {value!r} any more"
    return "same", ""


def _other(old: Info, new: Info) -> tuple[Verdict, str] | None:
    """Another definition: elsewhere, and not the same text."""
    if old.origin != new.origin and old.text != new.text:
        return "different", f"it is {new.origin}, was {old.origin}"
    return None


def _value(old: Any, new: Any) -> tuple[Verdict, str]:
    if isinstance(old, Held):
        return _held(old, new)
    if isinstance(old, type) and "__info__" in old.__dict__:
        if not isinstance(new, type):
            return "different", "it is no class any more"
        if "__info__" not in new.__dict__:
            return "different", "it is no class of the release any more"
        if (other := _other(old.__dict__["__info__"], new.__dict__["__info__"])) is not None:
            return other
        return ("open", "another kind of class") if _sort(old) != _sort(new) else ("same", "")
    if isinstance(old, enum.Enum):
        return ("same", "") if isinstance(new, enum.Enum) and old.name == new.name else ("different", "another member")
    one, other_info = info_of(old), info_of(new)
    if one is not None:
        if other_info is None:
            return "different", "it is no function any more"
        if one.kind != other_info.kind:
            return "different", f"{one.kind} became {other_info.kind}"
        if one.gives and other_info.gives and one.gives != other_info.gives:
            return "different", f"it gives {other_info.gives}"
        return _other(one, other_info) or _callable(old, new)
    if "__info__" in type(old).__dict__ and "__info__" not in type(new).__dict__:
        return "different", "it is no instance of a class of the release any more"
    if dataclasses.is_dataclass(old):
        return _record(old, new)
    return "same", ""


def _sort(cls: type) -> tuple[bool, bool]:
    return issubclass(cls, enum.Enum), dataclasses.is_dataclass(cls)


def _held(old: Held, new: Any) -> tuple[Verdict, str]:
    if isinstance(new, Outside):
        return "open", "nothing is known of it any more"
    if not isinstance(new, Held):
        return "different", "it is no value any more"

    def note(held: Held) -> str:
        return next((ast.unparse(unquoted(a)) for a, _ in held._given if a is not None), "")

    def literals(held: Held) -> set[str]:
        return {_literal(e) for _, e in held._given if e is not None}

    one, other = note(old), note(new)
    if one and other and one != other:
        return "different", f"it is {other}, was {one}"
    if not one and not other:
        before, after = literals(old), literals(new)
        if len(before) == len(after) == 1 and "?" not in before | after and before != after:
            return "different", f"it holds {after}, was {before}"
    elif one != other:
        return "open", "annotated or not"
    return ("same", "") if old._what == new._what else ("open", f"{old._what} became {new._what}")


def _literal(node: ast.expr) -> str:
    """What an expression surely is; `?` where it does not say."""
    if isinstance(node, ast.Constant):
        return "?" if node.value is None else type(node.value).__name__
    return type(node).__name__ if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.Tuple)) else "?"


def _record(old: Any, new: Any) -> tuple[Verdict, str]:
    if (other := _other(type(old).__dict__["__info__"], type(new).__dict__["__info__"])) is not None:
        return other
    now = vars_of(new)
    for name, value in vars_of(old).items():
        if isinstance(value, Default):
            if name in now and now[name] != value:
                return "different", f"default of {name}"
        elif not isinstance(value, Held) and now.get(name) != value:
            return "different", f"{name} is not {value!r} any more"
    return "same", ""


def vars_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass's instance."""
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init and hasattr(value, f.name)}


def _callable(old: Any, new: Any) -> tuple[Verdict, str]:
    """Whether every plain way to call one of them works with the other, and reaches the same parameters."""
    before, after = inspect.signature(old), inspect.signature(new)
    for positional, keywords in _ways(before):
        was = before.bind(*positional, **keywords).arguments
        try:
            now = after.bind(*positional, **keywords).arguments
        except TypeError as error:
            return "different", f"whoever gets it may call it so: {error}"
        if any(now.get(k) != v for k, v in was.items()):
            return "different", "whoever gets it may give arguments that reach other parameters"
    names = {p.name: p.default for p in after.parameters.values()}
    if any(p.name in names and p.default != names[p.name] for p in before.parameters.values()):
        return "open", "a default, of a function that is only passed on"
    return "same", ""


def _ways(signature: inspect.Signature) -> list[tuple[list[int], dict[str, int]]]:
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    only = [p for p in parameters if p.kind == p.KEYWORD_ONLY]
    ways = []
    for count in range(len(positional) + 1):
        rest = positional[count:]
        if any(p.kind == p.POSITIONAL_ONLY and p.default is p.empty for p in rest):
            continue
        rest = [p for p in rest if p.kind == p.POSITIONAL_OR_KEYWORD]
        for every in (True, False):
            named = [p for p in (*rest, *only) if every or p.default is p.empty]
            ways.append((list(range(count)), {p.name: 100 + n for n, p in enumerate(named)}))
    return ways
