"""Which modules hold a symbol by name: they keep the old object when only the symbol's own module is patched."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, Position
from afd_patchkit.names.held import Keeps, held
from afd_patchkit.source.syntax import blocks, typing_block
from afd_patchkit.source.text import parse_quietly
from afd_patchkit.upstream.base import Upstream, module_table
from afd_patchkit.upstream.cache import Store

Kind = Literal["name", "star", "local", "typing", "assigned", "wrapped", "value", "default", "argument"]

MEANINGS: dict[Kind, str] = {
    "name": "holds the object from import on",
    "star": "holds what the star brings: see `__all__` there",
    "local": "imports it at each call: sees a patched module",
    "typing": "for type checkers only",
    "assigned": "a name or attribute that was given the object at import",
    "wrapped": "made of the object at import: staticmethod, partial and the like",
    "value": "holds the object in a dict, list or tuple from import on",
    "default": "the default of a parameter",
    "argument": "given to a call at import",
}
_LATE = frozenset({"local", "typing"})

_FORMAT = "3"
_PASSED_ON = frozenset({"name", "star", "assigned"})
"""Kinds under whose name a module has the object itself, so that another may import it from there."""
_STAR = re.compile(rb"\bimport[\s\\]*\*")


@dataclass(frozen=True, slots=True)
class Alias:
    """One place that holds a symbol's object.

    Attributes:
        module: the module that the place is in.
        name: the name that it has there; `Class.name` in the body of a class, `TABLE` of a container, `function(parameter)` of a
            default, `callee(...)` of an argument.
        kind: how it is held, one of `MEANINGS`.
        source: the module that it is taken from: the symbol's own, or one that passes it on.
        place: where the import or the expression stands.
        pin: the pin whose distribution has the module.
    """

    module: str
    name: str
    kind: Kind
    source: str
    place: Position
    pin: str

    @property
    def static(self) -> bool:
        """Whether the module keeps the object that it found when it was imported."""
        return self.kind not in _LATE

    @property
    def bound(self) -> bool:
        """Whether it is a name that has the object itself, so that it can be bound to another."""
        return self.kind in _PASSED_ON


@dataclass(frozen=True)
class Aliases:
    """Who holds one symbol by name.

    Attributes:
        symbol: `package.module:name`, of a member its class, since that is what is imported.
        found: every import of it and everything else that keeps it, in order of module and line.
        known: whether a distribution that was searched has the symbol's module.
        unreadable: files that may hold it, but that this Python cannot parse.
        problems: why a distribution could not be searched.
    """

    symbol: str
    found: tuple[Alias, ...]
    known: bool
    unreadable: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()

    def left_out(self, rebound: Collection[str]) -> list[Alias]:
        """The aliases that keep the old object although the modules in `rebound` are given the new one."""
        return [alias for alias in self.found if alias.static and alias.module not in rebound]

    def stale(self, rebound: Collection[str]) -> list[str]:
        """The modules in `rebound` that do not hold the symbol: what is set there is never read."""
        holders = {self.symbol.partition(":")[0], *(alias.module for alias in self.found if alias.static)}
        return [module for module in dict.fromkeys(rebound) if module not in holders]


class Scanner:
    """Several distributions, searched as one: what one of them passes on, another may import.

    Nothing is read when the store has the answer; a file is parsed once, and only when it may matter.

    Args:
        distributions: upstreams, each with its import packages; files outside of those are not searched. Of two
            files with the same path the first counts.
        store: keeps answers by the identities of what was searched.
    """

    def __init__(self, distributions: Iterable[tuple[Upstream, Collection[str]]], store: Store | None = None) -> None:
        self._distributions = tuple(distributions)
        self._store = store

    def aliases(self, module: str, name: str) -> Aliases:
        """Everything that holds `module:name`, also through modules that pass it on; of `Class.method` what holds the class."""
        symbol = f"{module}:{name.partition('.')[0]}"
        key = self._key(symbol)
        kept = self._store.document(*key) if key and self._store is not None else None
        if kept is not None:
            return self._restored(symbol, kept)
        found = self._files.aliases(symbol)
        if key and self._store is not None and not found.problems:
            self._store.put_document(self._plain(found), *key)
        return found

    @cached_property
    def _files(self) -> _Files:
        return _Files(self._distributions)

    # ---- answers that are kept ----------------------------------------------------------------------------------

    def _key(self, symbol: str) -> tuple[str, ...]:
        """Where the store keeps the answer; nowhere if what is searched may change under its name."""
        parts = [_identity(upstream) for upstream, _ in self._distributions]
        if not all(parts):
            return ()
        packages = [",".join(sorted(packages)) for _, packages in self._distributions]
        # what can be parsed depends on the Python
        python = ".".join(map(str, sys.version_info[:2]))
        return "aliases", _FORMAT, python, "\n".join((*parts, *packages)), symbol

    def _plain(self, answer: Aliases) -> dict[str, Any]:
        pins = [upstream.pin for upstream, _ in self._distributions]
        rows = [
            [a.module, a.name, a.kind, a.source, a.place.file, a.place.line, pins.index(a.pin)] for a in answer.found
        ]
        return {"found": rows, "known": answer.known, "unreadable": answer.unreadable}

    def _restored(self, symbol: str, kept: dict[str, Any]) -> Aliases:
        found = (
            Alias(module, name, kind, source, Position(file, line), self._distributions[pin][0].pin)
            for module, name, kind, source, file, line, pin in kept["found"]
        )
        return Aliases(symbol, tuple(found), kept["known"], tuple(kept["unreadable"]))


def _identity(upstream: Upstream) -> str:
    return upstream.artifact.identity or ""


@dataclass(frozen=True, slots=True)
class _File:
    """What one file has to say.

    Attributes:
        imports: its imports by name.
        held: what it keeps, by what that is called there.
        modules: what names of it stand for modules, as dotted names of those.
    """

    imports: tuple[_Import, ...] = ()
    held: tuple[Keeps, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)

    def meaning(self, module: str, named: str) -> tuple[str, str]:
        """The module and the name in it that an expression stands for, as far as imports say."""
        head, _, rest = named.partition(".")
        if not rest:
            return module, named
        source, _, name = f"{self.modules.get(head, '')}.{rest}".rpartition(".")
        return source, name


@dataclass(frozen=True, slots=True)
class _Import:
    source: str
    original: str
    alias: Alias


class _Files:
    """The Python files of the distributions."""

    def __init__(self, distributions: Sequence[tuple[Upstream, Collection[str]]]) -> None:
        self.problems: list[Finding] = []
        self.unreadable: set[str] = set()
        self._data: dict[str, tuple[bytes, str]] = {}
        for upstream, packages in distributions:
            folders = tuple(f"{package.replace('.', '/')}{end}" for package in packages for end in ("/", ".py"))
            try:
                for path, data in upstream.package_files():
                    if path.startswith(folders):
                        self._data.setdefault(path, (data, upstream.pin))
            except PatchkitError as error:
                self.problems += error.findings
        self._modules = module_table(self._data)
        self._stars = {path for path in self._modules.values() if _STAR.search(self._data[path][0])}
        self._parsed: dict[str, _File] = {}

    def aliases(self, symbol: str) -> Aliases:
        module, _, name = symbol.partition(":")
        result: dict[Alias, None] = {}
        read: set[str] = set()
        holders = new = {(module, name)}
        while new:
            paths = self._mentioning({wanted for _, wanted in new})
            read |= paths
            for path in sorted(paths):
                file = self._file(path)
                for item in file.imports:
                    for source, wanted in sorted(new):
                        if item.source == source and item.original in {wanted, "*"}:
                            star = item.original == "*"
                            alias = replace(item.alias, name=wanted) if star else item.alias
                            if (alias.module, alias.name) != (module, name):
                                result[alias] = None
                for alias in self._kept(path, file, new):
                    if (alias.module, alias.name) != (module, name):
                        result[alias] = None
            new = {(a.module, a.name) for a in result if a.kind in _PASSED_ON and "." not in a.name} - holders
            holders = holders | new
        found = sorted(result, key=lambda a: (a.module, a.place.line, a.name, a.source))
        unreadable = tuple(sorted(read & self.unreadable))
        return Aliases(symbol, tuple(found), module in self._modules, unreadable, tuple(self.problems))

    def _mentioning(self, names: Collection[str]) -> set[str]:
        """The files that hold one of the names, or a star import."""
        words = [name.encode() for name in sorted(names)]
        shape = re.compile(rb"\b(?:" + b"|".join(map(re.escape, words)) + rb")\b")
        found = set(self._stars)
        for path in self._modules.values():
            data = self._data[path][0]
            if any(word in data for word in words) and shape.search(data):  # the first test is much the faster one
                found.add(path)
        return found

    def _kept(self, path: str, file: _File, wanted: Collection[tuple[str, str]]) -> Iterator[Alias]:
        """What a file keeps of the wanted objects, imports aside."""
        module = _module(path)
        for item in file.held:
            source, name = file.meaning(module, item.named)
            if (source, name) in wanted:
                yield Alias(module, item.name, item.how, source, Position(path, item.line), self._data[path][1])

    def _file(self, path: str) -> _File:
        if path not in self._parsed:
            try:
                tree = parse_quietly(self._data[path][0])
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self.unreadable.add(path)
                self._parsed[path] = _File()
            else:
                imports = tuple(self._imported(path, tree))
                self._parsed[path] = _File(imports, tuple(held(tree.body)), self._names_of_modules(imports, tree))
        return self._parsed[path]

    def _names_of_modules(self, imports: Iterable[_Import], tree: ast.Module) -> dict[str, str]:
        """The names of a file that stand for modules."""
        found = {
            item.alias.name: whole
            for item in imports
            if item.alias.static and (whole := f"{item.source}.{item.original}") in self._modules
        }
        for node in _plain_imports(tree.body):
            for name in node.names:
                top = name.name.partition(".")[0]
                found[name.asname or top] = name.name if name.asname else top
        return found

    def _imported(self, path: str, tree: ast.Module) -> Iterator[_Import]:
        pin = self._data[path][1]
        module = _module(path)
        package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
        for node, kind, scope in _statements(tree.body, "name", ""):
            source = _absolute(node, package)
            for item in node.names:
                star = item.name == "*"
                name = f"{scope}{item.asname or item.name}"
                held: Kind = "star" if star and kind == "name" else kind
                yield _Import(source, item.name, Alias(module, name, held, source, Position(path, item.lineno), pin))


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _plain_imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import]:
    """The `import` statements that run at import."""
    for node in body:
        if isinstance(node, ast.Import):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _plain_imports(node.body)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for block in blocks(node):
                yield from _plain_imports(block.body)


def _statements(body: Iterable[ast.stmt], kind: Kind, scope: str) -> Iterator[tuple[ast.ImportFrom, Kind, str]]:
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node, kind, scope
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _statements(node.body, "local", "")
        elif isinstance(node, ast.ClassDef):
            yield from _statements(node.body, kind, f"{scope}{node.name}." if kind != "local" else "")
        elif isinstance(node, ast.If):
            hidden = typing_block(node.test)
            for block in blocks(node):
                yield from _statements(block.body, "typing" if block.name == hidden else kind, scope)
        else:
            for block in blocks(node):
                yield from _statements(block.body, kind, scope)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that a `from` statement names; one that climbs too far names none."""
    own = node.module or ""
    if not node.level:
        return own
    parts = package.split(".") if package else []
    keep = len(parts) - node.level + 1
    return ".".join([*parts[:keep], *([own] if own else [])]) if keep > 0 else ""
