"""Who holds a symbol by name: `from module import name` over a whole release."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Literal

from afd_patchkit.assemble.workspace import import_packages
from afd_patchkit.manifest.model import Pin
from afd_patchkit.rebase.model import AliasChange, AliasKind, AliasSite
from afd_patchkit.rebase.moved import Release
from afd_patchkit.review.finding import Position
from afd_patchkit.source.text import parse_quietly
from afd_patchkit.upstream.base import Upstream, module_table
from afd_patchkit.upstream.cache import Store

FORMAT = "1"
_STAR = re.compile(rb"(?m)^[ \t]*from[ \t]+[.\w]+[ \t]+import[ \t]*\(?[ \t]*\*")


def alias_sites(
    upstream: Upstream,
    symbol: str,
    *,
    reexports: bool = False,
    store: Store | None = None,
    release: Release | None = None,
) -> list[AliasSite]:
    """Every place of a release that holds `symbol` by name, in order of path and line.

    `static` ones run when the module is imported, so that a later rebinding of the original does not reach them; a `star`
    import may hold it; a `local` one runs at every call of its function, so that it follows a rebinding.

    Args:
        upstream: the release.
        symbol: `package.module:name`, or a re-export of it; of a member, its class is looked for.
        reexports: also those that take it from a module which holds it by the same name.
        store: a cache for the answer, by the artifact's digest.
        release: the files, if they are read already.

    Raises:
        UpstreamError: the release cannot be read.
    """
    module, _, name = symbol.partition(":")
    name = name.partition(".")[0]
    sha256 = upstream.artifact.sha256
    key = ("aliases", FORMAT, sha256 or "", f"{module}:{name}", str(reexports))
    kept = store.document(*key) if store is not None and sha256 else None
    if kept is not None:
        return [AliasSite(m, n, k, Position(f, line)) for m, n, k, f, line in kept["sites"]]
    imports = _Imports(release or Release(upstream), module.split(".")[0], name)
    found = dict.fromkeys(imports.sites(module))
    queue, seen = [module], set()
    while reexports and queue:
        holder = queue.pop()
        if holder not in seen:
            seen.add(holder)
            sites = imports.sites(holder)
            found |= dict.fromkeys(sites)
            queue += [s.module for s in sites if s.kind == "static" and s.name == name]
    answer = sorted(found, key=lambda s: (s.place.file, s.place.line))
    if store is not None and sha256:
        rows = [[s.module, s.name, s.kind, s.place.file, s.place.line] for s in answer]
        store.put_document({"sites": rows}, *key)
    return answer


class _Imports:
    """All `from` imports of one name (and all star imports) within one package of a release."""

    def __init__(self, release: Release, package: str, name: str) -> None:
        self.name = name
        self.found: dict[str, list[AliasSite]] = {}
        word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
        files = [(path, data) for path, data in release.files() if path.startswith(f"{package}/") or path == f"{package}.py"]
        modules = {path: module for module, path in module_table([path for path, _ in files]).items()}
        for path, data in files:
            if b"import" in data and (word.search(data) or _STAR.search(data)):
                self._read(path, data, modules.get(path, path))

    def sites(self, module: str) -> list[AliasSite]:
        """The places that take the name from `module`."""
        return self.found.get(module, [])

    def _read(self, path: str, data: bytes, holder: str) -> None:
        try:
            tree = parse_quietly(data.decode("utf-8", "replace").removeprefix("\ufeff"))
        except (SyntaxError, ValueError, RecursionError):
            return
        stack: list[tuple[ast.AST, bool]] = [(tree, False)]
        while stack:
            node, local = stack.pop()
            if isinstance(node, ast.ImportFrom):
                source = _absolute(path, node)
                for item in node.names:
                    if source is not None and item.name in (self.name, "*") and source != holder:
                        kind: AliasKind = "star" if item.name == "*" else "local" if local else "static"
                        bound = "" if kind == "star" else item.asname or item.name
                        self.found.setdefault(source, []).append(AliasSite(holder, bound, kind, Position(path, node.lineno)))
            elif not isinstance(node, ast.expr):
                inner = local or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                stack += [(child, inner) for child in ast.iter_child_nodes(node)]


def _absolute(path: str, node: ast.ImportFrom) -> str | None:
    """The module that an import takes from."""
    if not node.level:
        return node.module
    parts = path.removesuffix(".py").split("/")[: -node.level]
    return ".".join([*parts, *([node.module] if node.module else [])]) if parts else None


def alias_changes(
    symbols: Sequence[str], old: Upstream, new: Upstream, pin: Pin, store: Store | None
) -> tuple[AliasChange, ...]:
    """Sites added and removed between two releases, for functions and classes of modules; local imports are left out.

    Raises:
        UpstreamError: a release cannot be read.
    """
    changes = []
    packages = import_packages(pin)
    files = (Release(old), Release(new))
    for symbol in dict.fromkeys(symbols):
        module, _, name = symbol.partition(":")
        package = module.split(".")[0]
        if "." in name or package not in packages:
            continue
        before = alias_sites(old, symbol, store=store, release=files[0], reexports=True)
        after = alias_sites(new, symbol, store=store, release=files[1], reexports=True)
        keys, now = {_key(s) for s in before}, {_key(s) for s in after}
        added = tuple(s.place for s in after if s.kind != "local" and _key(s) not in keys)
        removed = tuple(s.place for s in before if s.kind != "local" and _key(s) not in now)
        if added or removed:
            changes.append(AliasChange(symbol, added, removed))
    return tuple(changes)


def _key(site: AliasSite) -> tuple[str, str, Literal["static", "star", "local"]]:
    return site.module, site.name, site.kind
