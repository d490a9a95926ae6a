"""What a module binds at its top level, how surely, and from where."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.names.analysis import mangle
from afd_patchkit.source.locate import is_overload
from afd_patchkit.source.syntax import (
    DEFINITION,
    FUNCTION,
    TRY,
    Block,
    blocks,
    bound_names,
    branches,
    target_names,
    typing_block,
)
from afd_patchkit.source.text import SourceFile

Kind = Literal["import", "from", "star", "def", "class", "assign", "other", "global"]
Guard = Literal["none", "type_checking", "try", "conditional"]


@dataclass(frozen=True, slots=True)
class Site:
    """One statement that binds a name at module level.

    Attributes:
        kind: how it binds.
        node: the statement.
        guard: what stands around it.
        top: the top-level statement of the module that contains it.
        module: absolute module of an import.
        attribute: what is imported from it; None for `import module`.
        asname: the name after `as`.
    """

    kind: Kind
    node: ast.AST
    guard: Guard
    top: ast.stmt
    module: str | None = None
    attribute: str | None = None
    asname: str | None = None

    @property
    def bound_module(self) -> str | None:
        """The module that `import module` binds: the one that `as` names, else its topmost package."""
        return self.module if self.module is None or self.asname else self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Binding:
    """What one name of a module is.

    Attributes:
        name: the name.
        kind: how its last site binds it; `global` when only functions do.
        module: absolute module that an import names.
        attribute: the name imported from it; None for `import module`.
        guard: `none` when some site is unguarded, else the guard that all sites share, else `conditional`.
        paths: greatest number of bindings on one execution path.
        always: some path may not bind it when this is False.
        declared_global: a function of the module declares it `global`.
        deleted: the module deletes it.
        sites: the binding statements, in order.
    """

    name: str
    kind: Kind
    module: str | None = None
    attribute: str | None = None
    guard: Guard = "none"
    paths: int = 1
    always: bool = True
    declared_global: bool = False
    deleted: bool = False
    sites: tuple[Site, ...] = ()

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The statements that bind the name."""
        return tuple(site.node for site in self.sites)

    @property
    def mutable(self) -> bool:
        """Whether its value may change while the program runs, so that it must be looked up in its module."""
        return self.declared_global or self.deleted or self.paths > 1


@dataclass(frozen=True, slots=True)
class Star:
    """An import of everything: `from module import *`."""

    module: str | None
    node: ast.ImportFrom
    guard: Guard


def module_bindings(file: SourceFile) -> Mapping[str, Binding]:
    """Every name that `file` binds at module level (star imports aside, see `stars`); computed once per file."""
    return _analysed(file)[0]


def class_sites(file: SourceFile, node: ast.ClassDef) -> Mapping[str, list[Site]]:
    """The statements that bind names in the body of a class of `file`; computed once per class."""
    cache: dict[int, dict[str, list[Site]]] = file.__dict__.setdefault("_class_sites", {})
    if id(node) not in cache:
        walker = _Walker(file)
        for statement in node.body:
            walker.top = statement
            walker.statement(statement, "none")
        cache[id(node)] = walker.sites
    return cache[id(node)]


def stars(file: SourceFile) -> Sequence[Star]:
    """The star imports of a file, in order."""
    return _analysed(file)[1]


def _analysed(file: SourceFile) -> tuple[Mapping[str, Binding], Sequence[Star]]:
    found: tuple[Mapping[str, Binding], Sequence[Star]] | None = file.__dict__.get("_module_bindings")
    if found is None:
        found = file.__dict__["_module_bindings"] = _analyse(file)
    return found


def _analyse(file: SourceFile) -> tuple[Mapping[str, Binding], Sequence[Star]]:
    walker = _Walker(file)
    for statement in file.tree.body:
        walker.top = statement
        walker.statement(statement, "none")
    counts, _ = _paths(file, file.tree.body)
    declared = _declared_global(file)
    result: dict[str, Binding] = {}
    for name, sites in walker.sites.items():
        guard = _guard(sites)
        # what only type checkers see is on no path
        low, high = counts.get(name, (1, 1) if guard == "type_checking" else (0, 1))
        last = sites[-1]
        result[name] = Binding(
            name,
            last.kind,
            last.module,
            last.attribute,
            guard,
            1 if _one_meaning(sites) else high,
            low > 0,
            name in declared,
            name in walker.deleted,
            tuple(sites),
        )
    for name in sorted(declared - result.keys()):
        result[name] = Binding(name, "global", paths=0, always=False, declared_global=True)
    return result, tuple(walker.stars)


def _guard(sites: Sequence[Site]) -> Guard:
    guards = {site.guard for site in sites}
    if "none" in guards:
        return "none"
    return guards.pop() if len(guards) == 1 else "conditional"


def _one_meaning(sites: Sequence[Site]) -> bool:
    """Several sites that cannot disagree: repeated imports of one thing, overloads with their implementation."""
    if len(sites) < 2:
        return False
    if all(site.kind in {"import", "from"} for site in sites):
        return len({_meaning(site) for site in sites}) == 1
    if all(site.kind == "def" for site in sites):
        return all(is_overload(site.node) for site in sites[:-1])
    return False


def _meaning(site: Site) -> tuple[str | None, str | None]:
    if site.kind == "import" and site.asname is None and site.module is not None:
        return site.module.partition(".")[0], None
    return site.module, site.attribute


def _declared_global(file: SourceFile) -> set[str]:
    if b"global" not in file.data:
        return set()
    found: set[str] = set()
    stack: list[tuple[ast.AST, str | None]] = [(file.tree, None)]
    while stack:
        node, private = stack.pop()
        if isinstance(node, ast.Global):
            found.update(mangle(name, private) for name in node.names)
        elif isinstance(node, ast.ClassDef):
            private = node.name
        stack.extend((child, private) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return found


def absolute_module(file: SourceFile, module: str | None, level: int) -> str | None:
    """The absolute name of the module an import statement of `file` names; None when it leaves the top package."""
    if not level:
        return module or ""
    parts = file.package.split(".") if file.package else []
    if level > len(parts):
        return None
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, module] if module else base)


class _Walker:
    """Collects the sites of every name; the rules are those of the language, loops and branches included."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.sites: dict[str, list[Site]] = {}
        self.stars: list[Star] = []
        self.deleted: set[str] = set()
        self.top: ast.stmt = ast.Pass()
        self.walrus = b":=" in file.data

    def add(self, name: str, kind: Kind, node: ast.AST, guard: Guard, **imported: str | None) -> None:
        self.sites.setdefault(name, []).append(Site(kind, node, guard, self.top, **imported))

    def statement(self, node: ast.stmt, guard: Guard) -> None:
        if isinstance(node, ast.Delete):
            self.deleted.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, guard)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.add(node.name, "def", node, guard)
        elif isinstance(node, ast.ClassDef):
            self.add(node.name, "class", node, guard)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            # an annotation alone binds nothing
            if isinstance(node, ast.Assign) or node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    plain = isinstance(target, ast.Name)
                    for name in target_names(target):
                        self.add(name, "assign" if plain else "other", node, guard)
        else:
            for name in bound_names(node):
                self.add(name, "other", node, guard)
        if self.walrus:
            for name in _walrus_names(node):
                self.add(name, "other", node, guard)
        for block in () if isinstance(node, DEFINITION) else blocks(node):
            inner = _guard_of(node, block)
            deeper = guard if inner == "none" else inner
            for child in block.body:
                self.statement(child, deeper if guard != "type_checking" else "type_checking")

    def _import(self, node: ast.Import | ast.ImportFrom, guard: Guard) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self.add(name, "import", node, guard, module=alias.name, asname=alias.asname)
            return
        module = absolute_module(self.file, node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(Star(module, node, guard))
            else:
                name = alias.asname or alias.name
                self.add(name, "from", node, guard, module=module, attribute=alias.name, asname=alias.asname)


def _walrus_names(node: ast.stmt) -> Iterator[str]:
    """Names that `:=` binds in the expressions of one statement (not in its suites, functions, lambdas or classes)."""
    stack: list[ast.AST] = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.NamedExpr):
            yield item.target.id
        if isinstance(item, (ast.Lambda, ast.stmt)):
            continue
        stack.extend(ast.iter_child_nodes(item))


def _guard_of(node: ast.stmt, block: Block) -> Guard:
    """The guard that a statement puts on what is inside one of its blocks."""
    if isinstance(node, ast.If):
        return "type_checking" if block.name == typing_block(node.test) else "conditional"
    if isinstance(node, TRY):
        return "none" if block.name == "finalbody" else "try"
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return "conditional" if _suppresses(node) else "none"
    return "conditional"


def _suppresses(node: ast.With | ast.AsyncWith) -> bool:
    return any(
        isinstance(n, (ast.Name, ast.Attribute)) and "suppress" in (n.id if isinstance(n, ast.Name) else n.attr)
        for item in node.items
        for n in ast.walk(item.context_expr)
    )


# ---- how often a name is bound on a path ------------------------------------------------------------------------

_Counts = dict[str, tuple[int, int]]


def _paths(file: SourceFile, body: Iterable[ast.stmt]) -> tuple[_Counts, bool]:
    """Least and greatest number of bindings of each name over the paths through `body`; whether no path gets through."""
    total: _Counts = {}
    for node in body:
        counts, ends = _paths_of(file, node)
        _add(total, counts)
        if ends:
            return total, True
    return total, False


def _add(total: _Counts, more: _Counts) -> None:
    for name, (low, high) in more.items():
        before = total.get(name, (0, 0))
        total[name] = (before[0] + low, before[1] + high)


def _either(branches: Sequence[tuple[_Counts, bool]]) -> tuple[_Counts, bool]:
    """Alternatives; one that never gets through does not count."""
    through = [counts for counts, ends in branches if not ends]
    if not through:
        return {}, True
    names = {name for counts in through for name in counts}
    return {
        name: (min(c.get(name, (0, 0))[0] for c in through), max(c.get(name, (0, 0))[1] for c in through))
        for name in names
    }, False


def _maybe(counts: _Counts, times: int = 1) -> _Counts:
    return {name: (0, high * times) for name, (_, high) in counts.items()}


def _paths_of(file: SourceFile, node: ast.stmt) -> tuple[_Counts, bool]:
    if isinstance(node, ast.Raise):
        return {}, True
    counts: _Counts = {}
    names: list[str] = []
    ways = branches(node)
    # overloads: the implementation that follows them is the one binding; what loops and clauses bind is counted below
    if (
        not ways
        and not isinstance(node, (ast.For, ast.AsyncFor))
        and not (isinstance(node, FUNCTION) and is_overload(node))
    ):
        names = list(bound_names(node))
    for name in names:
        _add(counts, {name: (1, 1)})
    if b":=" in file.data:
        for name in _walrus_names(node):
            _add(counts, {name: (1, 1)})

    if isinstance(node, ast.If):
        hidden = typing_block(node.test)
        if hidden is not None:
            run, ends = _paths(file, node.orelse if hidden == "body" else node.body)
            _add(counts, run)
            return counts, ends
    if ways:
        inner, ends = _either([_paths(file, way) for way in ways])
        _add(counts, inner)
        if not isinstance(node, TRY):  # the names of handlers are gone behind them
            _add(counts, dict.fromkeys(bound_names(node), (0, 1)))
        final, final_ends = _paths(file, getattr(node, "finalbody", ()))
        _add(counts, final)
        return counts, ends or final_ends
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        inner, _ = _paths(file, node.body)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            _add(inner, dict.fromkeys(target_names(node.target), (1, 1)))
        _add(counts, _maybe(inner, times=2))
        after, _ = _paths(file, node.orelse)
        _add(counts, _maybe(after))
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        inner, ends = _paths(file, node.body)
        _add(counts, _maybe(inner) if _suppresses(node) else inner)
        return counts, ends and not _suppresses(node)
    return counts, False
