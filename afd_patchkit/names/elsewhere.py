"""Globals of a module that other modules of the distribution set: `import acme.mm as mm; mm.STATE = 5`.

All files are searched once for each distribution; the lock keeps the answer, so that later runs need not read them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from weakref import WeakKeyDictionary

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.text import parse_quietly
from afd_patchkit.upstream.base import Upstream, module_table

FORMAT = "1"
"""Of what is kept in the cache."""
Elsewhere = Mapping[str, frozenset[str]]
"""Module to the names that others set in it."""

Plain = dict[str, list[str]]
"""The same as JSON data."""

_KNOWN: WeakKeyDictionary[Upstream, Elsewhere] = WeakKeyDictionary()
_SAVE: WeakKeyDictionary[Upstream, Callable[[Plain], None]] = WeakKeyDictionary()
_ASKED: ContextVar[set[str] | None] = ContextVar("_ASKED", default=None)
_STORES = (
    re.compile(rb"^[ \t]*(?!self\.|cls\.)([A-Za-z_][\w.]*)\.\w+[ \t]*(?::[^=\n]*|[-+*/|&^%@<>]{0,2})=(?!=)", re.M),
    re.compile(rb"^[ \t]*([\w.]+(?:[ \t]*,[ \t]*[\w.]+)+)[ \t]*=(?!=)", re.M),
    re.compile(rb"^[ \t]*del[ \t]+([\w., \t]+)", re.M),
    re.compile(rb"\bsetattr\(\s*([A-Za-z_][\w.]*)"),
)
"""What may set or delete an attribute of a module; quick to search for, and then parsed."""
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.M)
_WORDS = re.compile(rb"[A-Za-z_]\w*")


def set_elsewhere(upstream: Upstream) -> Elsewhere:
    """The globals that other modules of an upstream set; nothing where its files cannot be had."""
    if (names := _ASKED.get()) is not None:
        names.add(upstream.pin)
    known = _KNOWN.get(upstream)
    if known is None:
        try:
            known = _KNOWN[upstream] = _searched(upstream)
        except PatchkitError:
            return {}
        if upstream in _SAVE:
            _SAVE[upstream](told(upstream) or {})
    return known


@contextmanager
def asked() -> Iterator[set[str]]:
    """The pins whose globals are asked for meanwhile, whether the answer is known or not."""
    names: set[str] = set()
    token = _ASKED.set(names)
    try:
        yield names
    finally:
        _ASKED.reset(token)


def tell(upstream: Upstream, known: Mapping[str, Collection[str]]) -> None:
    """Spare the search: somebody knows the answer for the same artifact."""
    _KNOWN[upstream] = {module: frozenset(names) for module, names in known.items()}


def save(upstream: Upstream, keep: Callable[[Plain], None]) -> None:
    """Have the answer kept when it has been searched for."""
    _SAVE[upstream] = keep


def told(upstream: Upstream) -> Plain | None:
    """The answer as the lock keeps it; None when it is not known."""
    known = _KNOWN.get(upstream)
    return None if known is None else {module: sorted(names) for module, names in sorted(known.items())}


def _searched(upstream: Upstream) -> Elsewhere:
    found: dict[str, set[str]] = {}
    modules = upstream.modules()
    last = {name.rpartition(".")[2].encode() for name in modules}
    for path, data in upstream.package_files():
        if not _worth_parsing(data, last):
            continue
        try:
            tree = parse_quietly(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        own = next(iter(module_table([path])), "")
        package = own if path.endswith("/__init__.py") else own.rpartition(".")[0]
        for module, name in _stores(tree, package, modules):
            if module != own:
                found.setdefault(module, set()).add(name)
    return {module: frozenset(names) for module, names in found.items()}


def _worth_parsing(data: bytes, last: Collection[bytes]) -> bool:
    """Whether a file may set an attribute of something that it imports, and that may be a module."""
    roots: set[bytes] = set()
    for shape in _STORES:
        for match in shape.finditer(data):
            roots.update(part.strip().partition(b".")[0] for part in match[1].split(b","))
    if not roots:
        return False
    for statement in _IMPORT.findall(data):
        words = _WORDS.findall(statement)
        renamed = {name for word, name in pairwise(words) if word == b"as"}
        plain = statement.lstrip().startswith(b"import")
        if any(word in roots and (plain or word in last or word in renamed) for word in words):
            return True
    return False


def _stores(tree: ast.Module, package: str, modules: Collection[str]) -> Iterator[tuple[str, str]]:
    """Module and name of each global of another module that a file sets or deletes."""
    nodes = list(ast.walk(tree))
    heads: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            heads.update(
                (a.asname or a.name.partition(".")[0], a.name if a.asname else a.name.partition(".")[0])
                for a in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, package)
            heads.update((a.asname or a.name, f"{source}.{a.name}".strip(".")) for a in node.names)
    for node in nodes:
        name = None
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            chain, name = dotted(node.value), node.attr
        elif isinstance(node, ast.Call) and dotted(node.func) == "setattr" and len(node.args) == 3:
            chain, named = dotted(node.args[0]), node.args[1]
            name = named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else None
        if name is None:
            continue
        head, _, rest = chain.partition(".")
        module = ".".join(part for part in (heads.get(head, ""), rest) if part)
        if head in heads and module in modules:
            yield module, name


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])
