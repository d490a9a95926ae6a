"""Who holds a symbol by name: `from module import name` over a whole release."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from afd_patchkit.assemble.workspace import import_packages
from afd_patchkit.manifest.model import Pin
from afd_patchkit.rebase.model import AliasChange, AliasKind, AliasSite
from afd_patchkit.review.finding import Position
from afd_patchkit.source.text import parse_quietly
from afd_patchkit.upstream.base import Upstream, module_table
from afd_patchkit.upstream.cache import Store

FORMAT = "1"
_IMPORT = re.compile(rb"(?m)^[ \t]*from[ \t]+[.\w]+[ \t]+import\b|;[ \t]*from[ \t]+[.\w]+[ \t]+import\b")

Rows = list[list[Any]]
"""`[path, line, level, module, name, as, local]` of every `from ... import name`; `*` for a star import."""


def alias_sites(
    upstream: Upstream, symbol: str, *, package: str | None = None, store: Store | None = None, reexports: bool = False
) -> list[AliasSite]:
    """Every place of a release that holds `symbol` by name.

    `static` ones run when the module is imported, so that a later rebinding of the original does not reach them; a `star`
    import may hold it; a `local` one runs at every call of its function, so that it follows a rebinding.

    Args:
        upstream: the release.
        symbol: `package.module:name`, or a re-export of it; classes and functions of a module, no methods.
        package: only modules of this import package; that of `symbol` by default.
        store: a cache for what the release imports.
        reexports: also those that take it from a module which holds it by the same name.

    Raises:
        UpstreamError: the release cannot be read.
    """
    module, _, name = symbol.partition(":")
    index = AliasIndex.of(upstream, package or module.split(".")[0], store)
    name = name.partition(".")[0]
    found = dict.fromkeys(index.sites(module, name))
    queue = [s.module for s in found if s.kind == "static" and s.name == name] if reexports else []
    seen = {module}
    while queue:
        holder = queue.pop()
        if holder in seen:
            continue
        seen.add(holder)
        for site in index.sites(holder, name):
            found[site] = None
            if site.kind == "static" and site.name == name:
                queue.append(site.module)
    return sorted(found, key=lambda s: (s.place.file, s.place.line))


@dataclass
class AliasIndex:
    """All `from` imports of one release.

    Attributes:
        rows: see `Rows`.
        modules: module of each path.
    """

    rows: Rows
    modules: dict[str, str]

    @classmethod
    def of(cls, upstream: Upstream, package: str, store: Store | None = None) -> AliasIndex:
        """The index of a release; kept in `store` under the artifact's digest."""
        sha256 = upstream.artifact.sha256
        key = ("imports", FORMAT, sha256 or "", package)
        kept = store.document(*key) if store is not None and sha256 else None
        if kept is not None and isinstance(kept.get("rows"), list) and isinstance(kept.get("modules"), dict):
            return cls(kept["rows"], kept["modules"])
        rows: Rows = []
        paths = []
        for path, data in _files(upstream, package):
            paths.append(path)
            rows += _rows(path, data, package)
        found = cls(rows, {path: module for module, path in module_table(paths).items()})
        if store is not None and sha256:
            store.put_document({"rows": found.rows, "modules": found.modules}, *key)
        return found

    def sites(self, module: str, name: str) -> list[AliasSite]:
        """The places that take `name` from `module`, in order of path and line."""
        found = []
        for path, line, level, source, taken, alias, local in self.rows:
            if taken not in (name, "*") or path == self._path(module):
                continue
            if self._absolute(path, level, source) != module:
                continue
            kind: AliasKind = "star" if taken == "*" else "local" if local else "static"
            holder = str(self.modules.get(path, path))
            found.append(AliasSite(holder, "" if taken == "*" else str(alias or name), kind, Position(path, line)))
        return sorted(found, key=lambda s: (s.place.file, s.place.line))

    def _path(self, module: str) -> str | None:
        by_module = self.__dict__.setdefault("_paths", {m: p for p, m in self.modules.items()})
        found: str | None = by_module.get(module)
        return found

    def _absolute(self, path: str, level: int, source: str) -> str | None:
        if not level:
            return source
        parts = path.removesuffix(".py").split("/")[:-level]
        return ".".join([*parts, *([source] if source else [])]) if parts else None


def _files(upstream: Upstream, package: str) -> Iterator[tuple[str, bytes]]:
    listed = getattr(upstream, "package_files", None)
    if listed is None:
        for module in sorted(upstream.modules()):
            file = upstream.read(module)
            yield file.path, file.data
        return
    for path, data in listed():
        if path.startswith(f"{package}/") or path == f"{package}.py":
            yield path, data


def _rows(path: str, data: bytes, package: str) -> Iterator[list[Any]]:
    """The `from` imports of one file; the file is parsed only if it may have one from the package itself."""
    if not _IMPORT.search(data) or (package.encode() not in data and b"from ." not in data and b"from\t." not in data):
        return
    try:
        tree = parse_quietly(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError):
        return
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, local = stack.pop()
        if isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level or source.split(".")[0] == package:
                for item in node.names:
                    yield [path, node.lineno, node.level, source, item.name, item.asname or "", local]
            continue
        if isinstance(node, ast.expr):
            continue
        inner = local or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        stack += [(child, inner) for child in ast.iter_child_nodes(node)]


def alias_changes(
    symbols: Sequence[str], old: Upstream, new: Upstream, pin: Pin, store: Store | None
) -> tuple[AliasChange, ...]:
    """Sites added and removed between two releases, for functions and classes of modules; local imports are left out.

    Raises:
        UpstreamError: a release cannot be read.
    """
    changes = []
    packages = import_packages(pin)
    for symbol in dict.fromkeys(symbols):
        module, _, name = symbol.partition(":")
        package = module.split(".")[0]
        if "." in name or package not in packages:
            continue
        before = alias_sites(old, symbol, store=store, reexports=True)
        after = alias_sites(new, symbol, store=store, reexports=True)
        keys, now = {_key(s) for s in before}, {_key(s) for s in after}
        added = tuple(s.place for s in after if s.kind != "local" and _key(s) not in keys)
        removed = tuple(s.place for s in before if s.kind != "local" and _key(s) not in now)
        if added or removed:
            changes.append(AliasChange(symbol, added, removed))
    return tuple(changes)


def _key(site: AliasSite) -> tuple[str, str, Literal["static", "star", "local"]]:
    return site.module, site.name, site.kind
