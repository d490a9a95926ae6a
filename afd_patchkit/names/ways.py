"""The imports by which a generated module gets at what an upstream module has, and at the module itself."""

from __future__ import annotations

from collections import Counter
from typing import Literal
from weakref import WeakKeyDictionary

from afd_patchkit.digests import short
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.names.bindings import Binding, Site
from afd_patchkit.names.model import ImportNeed
from afd_patchkit.names.stars import lookup
from afd_patchkit.upstream.base import Upstream


def by_value(binding: Binding, home: str) -> tuple[ImportNeed, ...]:
    """The imports that give a name the object that the module `home` has under it."""
    name = binding.name
    guard: Literal["none", "type_checking"] = "type_checking" if binding.guard == "type_checking" else "none"
    if binding.kind == "star" and binding.module is not None and binding.guard == "none":
        return (ImportNeed(binding.module, name),)
    plain = [site for site in binding.sites if site.guard == binding.guard]
    usable = binding.guard in {"none", "type_checking"} and all(
        site.kind in {"import", "from"} and site.module not in {None, "__future__"} for site in binding.sites
    )
    # a submodule that is imported under a condition is there only after the module itself has run
    if usable and len(plain) < len(binding.sites) and plain[-1].kind == "import":
        usable = all(site.guard in {"none", "type_checking"} for site in binding.sites)
    if not usable:
        return (ImportNeed(home, name, guard=guard),)
    last = plain[-1]
    if last.kind == "import" and last.asname is None:
        needs = {_need(site, guard) for site in plain if site.kind == "import"}
        return tuple(sorted(needs))
    return (_need(last, guard),)


def _need(site: Site, guard: Literal["none", "type_checking"]) -> ImportNeed:
    assert site.module is not None
    if site.kind == "import":
        return ImportNeed(site.module, alias=site.asname, guard=guard)
    return ImportNeed(site.module, site.attribute, site.asname if site.asname != site.attribute else None, guard)


def is_hidden(module: str, upstream: Upstream) -> bool:
    """Whether a package on the way to a module has something else under the name of what it holds.

    `import a.b.c as m` reads the attributes `b` and `c`: where `a/b/__init__.py` says `from .c import c`, it binds that.
    """
    parts = module.split(".")
    for count in range(1, len(parts)):
        package, name = ".".join(parts[:count]), parts[count]
        if package not in upstream.modules():
            continue
        try:
            binding = lookup(upstream.read(package), name, upstream).binding
        except PatchkitError:
            continue  # nothing imports it then
        if binding is None or binding.guard == "type_checking":
            continue
        if (
            not all(s.kind == "from" and s.module == package and s.attribute == name for s in binding.sites)
            or not binding.sites
        ):
            return True
    return False


_COLLISIONS: WeakKeyDictionary[Upstream, frozenset[str]] = WeakKeyDictionary()


def module_alias(module: str, upstream: Upstream) -> str:
    """A name for an upstream module that follows from its dotted name and is unique in the upstream."""
    collisions = _COLLISIONS.get(upstream)
    if collisions is None:
        counted = Counter(_plain_alias(name) for name in upstream.modules())
        collisions = _COLLISIONS[upstream] = frozenset(alias for alias, count in counted.items() if count > 1)
    alias = _plain_alias(module)
    return f"{alias}_{short(module, 6)}" if alias in collisions else alias


def _plain_alias(module: str) -> str:
    return "_" + module.replace(".", "_").strip("_")
