"""What a module binds under a name, star imports followed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.names.bindings import Binding, module_bindings, stars
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a module binds under a name.

    Attributes:
        binding: the binding; of kind `star` when it came through a star import (module and attribute then name the origin).
        unread: star imports that could not be read and may bind the name (or something else).
    """

    binding: Binding | None
    unread: tuple[str, ...] = ()


def lookup(file: SourceFile, name: str, upstream: Upstream | None = None) -> Lookup:
    """What `name` means at the top level of `file`, star imports followed through `upstream`."""
    binding = module_bindings(file).get(name)
    if not stars(file) or name.startswith("__"):
        return Lookup(binding)
    unread: list[str] = []
    for star in reversed(stars(file)):
        exported = star_exports(star.module, upstream)
        if exported is None:
            if not name.startswith("_"):
                unread.append(star.module or "?")
        elif name in exported:
            if binding is not None:
                # both bind it, so only the module itself says which one is last
                return Lookup(replace(binding, paths=binding.paths + 1))
            found = Binding(name, "star", star.module, name, star.guard, always=star.guard == "none")
            return Lookup(found)
    return Lookup(binding, tuple(unread))


def star_exports(module: str | None, upstream: Upstream | None, depth: int = 4) -> frozenset[str] | None:
    """The names that `from module import *` binds; None when the module or its `__all__` cannot be read."""
    if module is None or upstream is None or module not in upstream.modules() or depth == 0:
        return None
    try:
        file = upstream.read(module)
        listed = module_bindings(file).get("__all__")
    except UpstreamError:
        return None
    cached: frozenset[str] | None = file.__dict__.get("_star_exports")
    if cached is not None:
        return cached
    if listed is not None:
        names = _all_of(listed)
        if names is None:
            return None
    else:
        found = {n for n, b in module_bindings(file).items() if not n.startswith("_") and b.guard != "type_checking"}
        for star in stars(file):
            inner = star_exports(star.module, upstream, depth - 1)
            if inner is None:
                return None
            found |= inner
        names = frozenset(found)
    file.__dict__["_star_exports"] = names
    return names


def _all_of(binding: Binding) -> frozenset[str] | None:
    names: set[str] = set()
    for site in binding.sites:
        node = site.node
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or not isinstance(
            value, (ast.List, ast.Tuple)
        ):
            return None
        for item in value.elts:
            if not isinstance(item, ast.Constant) or not isinstance(item.value, str):
                return None
            names.add(item.value)
    return frozenset(names)
