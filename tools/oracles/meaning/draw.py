"""Random own code for random copies: it calls, reads, derives from and catches what is around in the release."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tools.oracles.meaning.judge import Own, Runner, Snippet, info_of
from tools.oracles.meaning.sources import ROOT, Listing, Sources
from tools.oracles.meaning.standins import last_name
from tools.oracles.meaning.values import Held, InconsistentError
from tools.oracles.meaning.world import Stub, World

Place = Literal["insert", "delegate", "part", "group", "parameter", "patch set"]
_PLACES: tuple[Place, ...] = ("insert", "insert", "insert", "insert", "delegate", "part", "group", "parameter")
_SNIPPETS = 6
_TRIES = 60
_LARGEST = 150_000
_SMALL = "vllm.utils.math_utils:cdiv"
_KNOWN = {
    "staticmethod", "classmethod", "property", "cached_property", "abstractmethod", "contextmanager", "no_grad", "inference_mode",
    "lru_cache", "cache", "override", "final", "setter",
}  # fmt: skip
"""Decorators that leave it clear what a function takes."""


@dataclass(frozen=True)
class Draft:
    """A project of one module.

    Attributes:
        place: where its own code stands.
        own: that code.
        manifest: text of the manifest.
        part: text of its part; empty without one.
        copied: text of what is copied.
    """

    place: Place
    own: Own
    manifest: str
    part: str
    copied: str


class NotThis(Exception):
    """What was drawn does not suit."""


class Drawer:
    """Draws projects.

    Args:
        sources: the release.
        draw: where luck comes from.
    """

    def __init__(self, sources: Sources, draw: random.Random) -> None:
        self.sources, self.draw = sources, draw
        self.modules = sorted(
            m
            for m in sources.paths
            if m.startswith(ROOT + ".") and ".third_party" not in m and "vllm_flash_attn" not in m
        )
        self.world = World(sources)

    def project(self) -> Draft:
        """One project."""
        while True:
            try:
                return self._project()
            except (NotThis, InconsistentError):
                continue

    def _project(self) -> Draft:
        self.world = World(self.sources)
        place = self.draw.choice(_PLACES)
        listing = self._listing()
        if place == "part":
            return self._part(listing)
        node, owner = self._symbol(listing, place)
        simple = owner is None or place in {"insert", "group"}
        if not simple or any(
            last_name(d) not in _KNOWN - {"setter", "property", "cached_property"} for d in node.decorator_list
        ):
            raise NotThis
        words = {last_name(d) for d in node.decorator_list}
        if words & {"staticmethod", "classmethod"} or node.name.startswith("__"):
            raise NotThis
        arguments = [*node.args.posonlyargs, *node.args.args][1 if owner is not None else 0 :]
        annotated = {
            a.arg: ast.unparse(a.annotation) for a in [*arguments, *node.args.kwonlyargs] if a.annotation is not None
        }
        taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        annotated = {k: v for k, v in annotated.items() if k not in taken}
        qualname = f"{owner.name}.{node.name}" if owner is not None else node.name
        if place == "parameter":
            annotated = {}
        own = Own(
            (), listing.module, f"{listing.module}:{owner.name}" if owner is not None else "", node.name, annotated
        )
        own = self._filled(own, place, one=place == "parameter")
        return Draft(place, own, _manifest(place, listing, qualname, own, owner), "", ast.unparse(node))

    def _listing(self) -> Listing:
        module = self.draw.choice(self.modules)
        if len(self.sources.read(module)) > _LARGEST:
            raise NotThis
        return self.sources.listing(module)

    def _symbol(self, listing: Listing, place: Place) -> tuple[Any, ast.ClassDef | None]:
        """A function, or a method with its class."""
        functions: list[tuple[Any, ast.ClassDef | None]] = []
        for node in listing.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and place != "group":
                functions.append((node, None))
            elif isinstance(node, ast.ClassDef) and place in {"insert", "group"} and len(listing.names[node.name]) == 1:
                functions += [(n, node) for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        functions = [(n, c) for n, c in functions if not isinstance(n, ast.AsyncFunctionDef) and not _yields(n)]
        names = [n.name for n, c in functions if c is None]
        functions = [
            (n, c) for n, c in functions if c is not None or names.count(n.name) == 1 == len(listing.names[n.name])
        ]
        members = [c and (c.name, n.name) for n, c in functions]
        functions = [(n, c) for n, c in functions if c is None or members.count((c.name, n.name)) == 1]
        if not functions:
            raise NotThis
        return self.draw.choice(functions)

    def _part(self, listing: Listing) -> Draft:
        own = self._filled(Own((), ""), "part")
        lines = sorted({i for s in own.snippets for i in s.imports})
        body = textwrap.indent("\n".join(s.ours for s in own.snippets), "    ")
        part = '"""Ours."""\n\n' + "\n".join(lines) + f"\n\n\ndef probe():\n{body}\n"
        # the packages of a pin are judged when an entry comes from it
        manifest = f"{_HEAD}entries:\n  - part: parts/one.py\n    kind: owned\n    reason: a test\n  - symbol: {_SMALL}\n    reason: a test\n"
        return Draft("part", own, manifest, part, "")

    # ---- snippets -----------------------------------------------------------------------------------------------

    def _filled(self, own: Own, place: Place, *, one: bool = False) -> Own:
        runner = Runner(self.world, own)
        runner.prepare()
        found: list[Snippet] = []
        for _ in range(_TRIES):
            if len(found) == (1 if one else _SNIPPETS):
                break
            try:
                snippet = self._snippet(own, runner, len(found) + 1, place)
                runner.run(snippet)
            except (NotThis, InconsistentError):
                continue
            except Exception:
                continue
            found.append(snippet)
        if not found:
            raise NotThis
        return dataclasses.replace(own, snippets=tuple(found))

    def _snippet(self, own: Own, runner: Runner, number: int, place: Place) -> Snippet:
        starts: list[Callable[[Own, int], tuple[str, str, tuple[str, ...]]]] = [self._imported, self._module]
        if place not in {"parameter", "part"}:
            starts.append(self._local)
        if own.home:
            starts += [self._free, self._free]
        if own.owner:
            starts += [self._self] * 4
        if own.parameters and place != "parameter":
            starts += [self._parameter] * 2
        start = self.draw.choice(starts)
        kind, expression, lines = start(own, number)
        imports = tuple(line for line in lines if not line.startswith("  "))
        inner = "".join(line.strip() + "\n" for line in lines if line.startswith("  "))
        for line in (*imports, *inner.split("\n")):
            exec(compile(line, "<ours>", "exec", dont_inherit=True), runner.space)
        expression, kind, form = self._used(runner, expression, kind)
        judged = f"probe_{number} = {expression}"
        ours = judged.replace(
            "super(__home__, self)",
            "super()" if self.draw.random() < 0.7 else f"super({own.owner.rpartition(':')[2]}, self)",
        )
        ours = ours.replace("__home__", own.owner.rpartition(":")[2])
        if form == "isinstance":
            ours = judged = f"probe_{number} = isinstance(None, {expression})"
            judged = f"{judged}\nprobe_{number} = {expression}"
        elif form == "except":
            ours = f"try:\n    probe_{number} = {number}\nexcept {expression}:\n    raise"
            judged = f"try:\n    raise KeyboardInterrupt\nexcept {expression}:\n    pass\nexcept KeyboardInterrupt:\n    pass\nprobe_{number} = {expression}"
        elif form == "raise":
            ours = (
                f"if probe_{number - 1 or 1}_asked():\n    raise {expression}"
                if False
                else f"if 0 > {number}:\n    raise {expression}"
            )
            judged = f"probe_{number} = {expression}\nif not isinstance(probe_{number}, BaseException): raise TypeError"
        if place == "parameter" and form is not None:
            raise NotThis
        return Snippet(kind, number, inner + ours, inner + judged, imports)

    def _free(self, own: Own, _: int) -> tuple[str, str, tuple[str, ...]]:
        listing = self.sources.listing(own.home)
        name = self.draw.choice(sorted(listing.names))
        if not self._clear(listing, name) or name in (own.method, "logger"):
            raise NotThis
        return "free", name, ()

    def _clear(self, listing: Listing, name: str, depth: int = 0) -> bool:
        """Whether a name is bound once, and leads into the release on a straight way."""
        sites = listing.names[name]
        if len(sites) != 1 or not sites[0].plain or name.startswith("__"):
            return False
        node = sites[0].node
        if isinstance(node, ast.ImportFrom):
            module = listing.absolute(node)
            original = next(a.name for a in node.names if (a.asname or a.name) == name)
            if not self.sources.has(module) or depth > 8:
                return False
            there = self.sources.listing(module)
            return original in there.names and not there.stars and self._clear(there, original, depth + 1)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return all(last_name(d) in _KNOWN for d in node.decorator_list)
        return isinstance(node, ast.ClassDef) or (
            isinstance(node, (ast.Assign, ast.AnnAssign)) and self.draw.random() < 0.4
        )

    def _elsewhere(self) -> tuple[Listing, str]:
        listing = self._listing()
        names = [n for n in sorted(listing.names) if self._clear(listing, n)]
        if not names:
            raise NotThis
        return listing, self.draw.choice(names)

    def _imported(self, own: Own, number: int) -> tuple[str, str, tuple[str, ...]]:
        listing, name = self._elsewhere()
        bound = f"probed_{number}"
        return "imported", bound, (f"from {listing.module} import {name} as {bound}",)

    def _module(self, own: Own, number: int) -> tuple[str, str, tuple[str, ...]]:
        listing, name = self._elsewhere()
        if listing.package:
            raise NotThis
        bound = f"probed_{number}"
        return "module", f"{bound}.{name}", (f"import {listing.module} as {bound}",)

    def _local(self, own: Own, number: int) -> tuple[str, str, tuple[str, ...]]:
        listing, name = self._elsewhere()
        bound = f"probed_{number}"
        return "local", bound, (f"  from {listing.module} import {name} as {bound}",)

    def _self(self, own: Own, _: int) -> tuple[str, str, tuple[str, ...]]:
        module, qualname = own.owner.split(":")
        cls = getattr(self.world.module(module), qualname)
        name = self._member(cls, own.method)
        forms = ["self.{0}", "self.{0}", "self.{0}", "type(self).{0}", "super(__home__, self).{0}", "__home__.{0}"]
        return "self", self.draw.choice(forms).format(name), ()

    def _member(self, cls: type, but: str = "") -> str:
        names: dict[str, None] = {}
        for one in cls.__mro__:
            info = one.__dict__.get("__info__")
            if info is None:
                continue
            for name in (*(k for k in one.__dict__ if k not in {"__info__"}), *info.sets):
                names[name] = None
            for node in info.node.body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
                    last_name(d) not in _KNOWN for d in node.decorator_list
                ):
                    names.pop(node.name, None)
        found = sorted(
            n
            for n in names
            if not n.startswith("__")
            and n != but
            and not n.startswith("_" + cls.__name__.lstrip("_") + "__")
            and "__" not in n
        )
        if not found:
            raise NotThis
        return self.draw.choice(found)

    def _parameter(self, own: Own, _: int) -> tuple[str, str, tuple[str, ...]]:
        name = self.draw.choice(sorted(own.parameters))
        cls = self.world.annotated(
            ast.parse(own.parameters[name], mode="eval").body, self.sources.listing(own.home), None
        )
        if cls is None:
            raise NotThis
        return "parameter", f"{name}.{self._member(cls)}", ()

    # ---- uses -----------------------------------------------------------------------------------------------------

    def _used(self, runner: Runner, expression: str, kind: str, depth: int = 0) -> tuple[str, str, str | None]:
        """The expression with a use at its end, its kind, and what it stands in."""
        value = eval(expression, runner.space)
        luck = self.draw.random()
        if isinstance(value, Stub):
            raise NotThis
        if isinstance(value, type):
            if "__info__" not in value.__dict__:
                raise NotThis
            return self._class_used(runner, expression, kind, value, luck, depth)
        info = info_of(value)
        if info is not None:
            if luck < 0.15:
                return expression, f"{kind} read", None
            called = expression + self._arguments(value)
            result = eval(called, runner.space)
            if (
                isinstance(result, Held)
                and result.class_of() is not None
                and depth < 2
                and self.draw.random() < 0.3
                and info.kind == "function"
            ):
                return self._used(runner, f"{called}.{self._member(result.class_of())}", f"{kind} result", depth + 1)  # type: ignore[arg-type]
            return called, f"{kind} call", None
        cls = (
            value.class_of() if isinstance(value, Held) else type(value) if "__info__" in type(value).__dict__ else None
        )
        if isinstance(value, enum.Enum):
            return expression, f"{kind} member", None
        if cls is not None and depth < 2 and luck < 0.6 and not issubclass(cls, enum.Enum):
            return self._used(runner, f"{expression}.{self._member(cls)}", f"{kind} attribute", depth + 1)
        if isinstance(value, Held):
            return expression, f"{kind} value", None
        raise NotThis

    def _class_used(
        self, runner: Runner, expression: str, kind: str, cls: type, luck: float, depth: int
    ) -> tuple[str, str, str | None]:
        if issubclass(cls, BaseException):
            if luck < 0.4:
                return expression, f"{kind} caught", "except"
            if luck < 0.7 and any(b.__dict__.get("__info__") and "__init__" in b.__dict__ for b in cls.__mro__):
                return expression + self._arguments(cls), f"{kind} raised", "raise"
        if luck < 0.2:
            return expression, f"{kind} isinstance", "isinstance"
        if issubclass(cls, enum.Enum):
            members = sorted(cls.__members__)
            if not members:
                raise NotThis
            return f"{expression}.{self.draw.choice(members)}", f"{kind} member", None
        if luck < 0.35:
            return self._used(runner, f"{expression}.{self._member(cls)}", f"{kind} class attribute", depth + 1)
        if not _constructible(cls):
            raise NotThis
        made = expression + self._arguments(cls)
        if luck < 0.6 and depth < 2 and not issubclass(cls, BaseException):
            return self._used(runner, f"{made}.{self._member(cls)}", f"{kind} made", depth + 1)
        return made, f"{kind} constructed", None

    def _arguments(self, value: Any) -> str:
        signature = inspect.signature(value)
        parameters = list(signature.parameters.values())
        plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        given = [p for p in plain if p.default is p.empty or self.draw.random() < 0.3]
        count = self.draw.randint(0, len(given))
        words: list[str] = []
        number = 100
        position = True
        for n, p in enumerate(plain):
            if p not in given:
                position = False
                continue
            number += 1
            if (n < count and position) or p.kind == p.POSITIONAL_ONLY:
                if not position:
                    raise NotThis
                words.append(str(number))
            else:
                position = False
                words.append(f"{p.name}={number}")
        for p in parameters:
            if p.kind == p.KEYWORD_ONLY and (p.default is p.empty or self.draw.random() < 0.3):
                number += 1
                words.append(f"{p.name}={number}")
        return f"({', '.join(words)})"


def _constructible(cls: type) -> bool:
    for one in cls.__mro__:
        if one is object:
            return True
        info = one.__dict__.get("__info__")
        if info is None:
            return False
        if info.node.keywords or any(not _is_record(d) for d in info.node.decorator_list):
            return False
        if "__init__" in one.__dict__:
            return "__new__" not in one.__dict__
        if "__new__" in one.__dict__:
            return False
    return False


def _is_record(decorator: ast.expr) -> bool:
    return last_name(decorator) in {"dataclass", "config"}


def _yields(node: Any) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node))


# ---- manifests ----------------------------------------------------------------------------------------------------

_HEAD = "schema: 1\nmodule: set/one.py\nsummary: Own code.\npin: vllm\n"


def _manifest(place: Place, listing: Listing, qualname: str, own: Own, owner: ast.ClassDef | None) -> str:
    lines = sorted({i for s in own.snippets for i in s.imports})
    code = "\n".join(s.ours for s in own.snippets)
    if place == "group":
        assert owner is not None
        lines.append(f"from {listing.module} import {owner.name}")
    imports = "imports:\n" + "".join(f"  - {line}\n" for line in lines) if lines else ""
    entry = f"- symbol: {listing.module}:{qualname}\n  reason: a test\n"
    if place == "delegate":
        entry += f"  kind: delegate\n  via: original\n  body: |\n{textwrap.indent(code, '    ')}\n    return __original__(...)\n"
    elif place == "parameter":
        value = own.snippets[0].ours.partition(" = ")[2]
        entry += f"  deltas:\n    - name: probe\n      parameter:\n        kind: keyword-only\n        add: |\n          probe_1={value}\n"
    else:
        entry += (
            f"  deltas:\n    - name: probe\n      at: start\n      insert: |\n{textwrap.indent(code, '        ')}\n"
        )
    if place == "group":
        assert owner is not None
        members = textwrap.indent(entry, " " * 8)
        entry = (
            f"- class:\n    name: Probed\n    bases: [{owner.name}]\n    members:\n{textwrap.indent(entry, ' ' * 6)}"
        )
        del members
    return f"{_HEAD}{imports}entries:\n{textwrap.indent(entry, '  ')}"
