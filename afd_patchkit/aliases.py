"""Which modules hold a symbol by name: they keep the old object when only the symbol's own module is patched."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.review.finding import Position
from afd_patchkit.upstream.base import module_table

Kind = Literal["name", "star", "local", "typing"]

MEANINGS: dict[Kind, str] = {
    "name": "holds the object from import on",
    "star": "holds what the star brings: see `__all__` there",
    "local": "imports it at each call: sees a patched module",
    "typing": "for type checkers only",
}


@dataclass(frozen=True, slots=True)
class Alias:
    """One import of a symbol by name.

    Attributes:
        module: the importing module.
        name: the name that it has there.
        kind: how it is held, one of `MEANINGS`.
        source: the module that is imported from: the symbol's own, or one that passes it on.
        place: where the import stands.
    """

    module: str
    name: str
    kind: Kind
    source: str
    place: Position

    @property
    def static(self) -> bool:
        """Whether the module keeps the object that it found when it was imported."""
        return self.kind in {"name", "star"}


class Release:
    """All Python files of one or several distributions; parsed when they may matter, and once.

    Attributes:
        unreadable: files that this Python cannot parse.
    """

    def __init__(self, files: Iterable[tuple[str, bytes]]) -> None:
        self.files: Mapping[str, bytes] = {path: data for path, data in files if path.endswith(".py")}
        self.modules: Collection[str] = module_table(self.files).keys()
        self.unreadable: list[str] = []
        self._paths = {path: module for module, path in module_table(self.files).items()}
        self._imports: dict[str, tuple[_Import, ...]] = {}

    def aliases(self, module: str, name: str) -> list[Alias]:
        """Every import of `module:name` by name, also through modules that pass it on, in order of module and line.

        Args:
            module: the symbol's own module.
            name: its name there; of `Class.method` the class, since that is what is imported.
        """
        name = name.partition(".")[0]
        holders = {(module, name)}
        result: dict[Alias, None] = {}
        while True:
            before = len(holders)
            for found in self._mentioning({wanted for _, wanted in holders}):
                for source, wanted in sorted(holders):
                    if found.source == source and found.original in {wanted, "*"}:
                        star = found.original == "*"
                        held = wanted if star else found.name
                        if (found.module, held) != (module, name):
                            kind: Kind = "star" if star and found.kind == "name" else found.kind
                            result[Alias(found.module, held, kind, source, found.place)] = None
            holders |= {(alias.module, alias.name) for alias in result if alias.static}
            if len(holders) == before:
                return sorted(result, key=lambda a: (a.module, a.place.line, a.name, a.source))

    def _mentioning(self, names: Collection[str]) -> Iterator[_Import]:
        """The imports of all files that hold one of the names, or a star import."""
        word = re.compile(rb"\bimport\s*\*|\b(?:" + b"|".join(re.escape(n.encode()) for n in sorted(names)) + rb")\b")
        for path, module in sorted(self._paths.items()):
            if word.search(self.files[path]):
                if path not in self._imports:
                    self._imports[path] = tuple(self._parsed(path, module))
                yield from self._imports[path]

    def _parsed(self, path: str, module: str) -> Iterator[_Import]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.files[path])
        except (SyntaxError, ValueError, RecursionError):
            self.unreadable.append(path)
            return
        package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        for node, kind in _statements(tree.body, "name"):
            source = _absolute(node, package)
            for item in node.names:
                # `from package import module` gives a module, not a symbol
                if f"{source}.{item.name}" not in self.modules:
                    yield _Import(module, source, item.name, item.asname or item.name, kind, Position(path, item.lineno))


@dataclass(frozen=True, slots=True)
class _Import:
    module: str
    source: str
    original: str
    name: str
    kind: Kind
    place: Position


def _statements(body: Iterable[ast.stmt], kind: Kind) -> Iterator[tuple[ast.ImportFrom, Kind]]:
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node, kind
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _statements(node.body, "local")
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _statements(node.body, "typing")
            yield from _statements(node.orelse, kind)
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, ()), kind)
            for clause in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _statements(clause.body, kind)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that a `from` statement names; one that climbs too far names none."""
    own = node.module or ""
    if not node.level:
        return own
    parts = package.split(".") if package else []
    keep = len(parts) - node.level + 1
    return ".".join([*parts[:keep], *([own] if own else [])]) if keep > 0 else ""
