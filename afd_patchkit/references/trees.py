"""The pinned trees and our own modules as one place to look things up in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.names.bindings import Binding, Site, module_bindings
from afd_patchkit.names.meaning import MODULE_ATTRIBUTES
from afd_patchkit.names.stars import lookup
from afd_patchkit.references.things import (
    UNKNOWN,
    Class,
    Found,
    Function,
    FunctionNode,
    Missing,
    Module,
    Outside,
    Several,
    Thing,
    Value,
)
from afd_patchkit.source.locate import dotted, is_overload
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

DEPTH = 24
"""How many re-exports are followed; a circle of imports ends here."""


class Trees:
    """Looks modules and names up in the targets' trees and in our own modules.

    It has the face of an `Upstream` as far as names need it, so star imports are followed from one tree into another.

    Args:
        upstream_of: gives the upstream of an import package; None for packages that no pin provides.
        own: our own modules as they are generated, by dotted name.
        package: our own import package.
        promised: modules of ours that are not at hand, though some manifest makes them.

    Attributes:
        seen: the upstream files that were read, by module.
    """

    def __init__(
        self,
        upstream_of: Callable[[str], Upstream | None],
        own: Mapping[str, SourceFile],
        package: str,
        promised: Collection[str] = (),
    ) -> None:
        self._upstream_of = upstream_of
        self.own = own
        self.package = package
        self.promised = promised
        self.seen: dict[str, SourceFile] = {}
        self._packages = {".".join(name.split(".")[:n]) for name in own for n in range(1, name.count(".") + 1)}
        self._cache: dict[tuple[str, str, bool], Thing] = {}

    # ---- as an upstream -------------------------------------------------------------------------------------

    def modules(self) -> Trees:
        """All modules, to be asked with `in`."""
        return self

    def __contains__(self, module: object) -> bool:
        return isinstance(module, str) and self.has(module)

    def __iter__(self) -> Iterator[str]:
        return iter(self.own)

    def __len__(self) -> int:
        return len(self.own)

    def read(self, module: str) -> SourceFile:
        """The source of a module.

        Raises:
            UpstreamError: there is none, or it fails verification.
        """
        if module in self.own:
            return self.own[module]
        if module not in self.seen:
            upstream = self._upstream_of(module)
            assert upstream is not None
            self.seen[module] = upstream.read(module)
        return self.seen[module]

    # ---- modules --------------------------------------------------------------------------------------------

    def judged(self, module: str) -> bool:
        """Whether the module belongs to a package whose modules are all known here."""
        return self.is_ours(module) or self._upstream_of(module) is not None

    def is_ours(self, module: str) -> bool:
        """Whether the module lies in our own package."""
        return module == self.package or module.startswith(self.package + ".")

    def has(self, module: str) -> bool:
        """Whether there is such a module (or package) of ours or of a pin."""
        if module in self.own or module in self._packages:
            return True
        if self.is_ours(module):
            return False
        upstream = self._upstream_of(module)
        return upstream is not None and module in upstream.modules()

    def module(self, name: str) -> Thing:
        """The module of that name."""
        if self.has(name):
            return Module(name)
        if name in self.promised:
            return UNKNOWN
        if not self.judged(name):
            return Outside(name)
        if name.rpartition(".")[2].startswith("_") and not self.is_ours(name):
            return UNKNOWN  # a compiled module, perhaps; only Python files are listed
        return Missing(name.rpartition(".")[0] or name, name, self._near_modules(name))

    def _near_modules(self, name: str) -> tuple[str, ...]:
        if self.is_ours(name):
            return nearest(name, self.own)
        upstream = self._upstream_of(name)
        return nearest(name, upstream.modules()) if upstream is not None else ()

    # ---- names of modules -------------------------------------------------------------------------------------

    def name(self, module: str, name: str, *, typing: bool = False) -> Thing:
        """What `from module import name` gives.

        Args:
            module: dotted name of the module.
            name: the name.
            typing: what type checkers see, imports below `TYPE_CHECKING` included.
        """
        key = (module, name, typing)
        found = self._cache.get(key)
        if found is None:
            self._cache[key] = UNKNOWN  # a circle of imports
            found = self._cache[key] = self._name(module, name, DEPTH, typing)
        return found

    def _name(self, module: str, name: str, depth: int, typing: bool) -> Thing:
        if not self.judged(module):
            return Outside(f"{module}.{name}")
        if not self.has(module):
            return UNKNOWN if module in self.promised else self.module(module)
        if depth == 0:
            return UNKNOWN
        submodule = f"{module}.{name}"
        if module in self._packages and module not in self.own:
            return self.module(submodule)
        try:
            file = self.read(module)
            found = lookup(file, name, self)  # type: ignore[arg-type]  # it is asked for modules and files alone
        except PatchkitError:
            return UNKNOWN
        binding = found.binding
        if binding is None:
            if self.has(submodule):
                return Module(submodule)
            if found.unread or name in MODULE_ATTRIBUTES or self._dynamic(file):
                return UNKNOWN
            return Missing(module, name, nearest(name, module_bindings(file)))
        if binding.guard == "type_checking" and not typing:
            return UNKNOWN if self._dynamic(file) else Missing(module, name, ("only type checkers import it",))
        if binding.deleted or not binding.sites:
            return self._through(binding, name, depth, typing)
        things = [self._site(site, file, module, name, depth, typing) for site in _last_of_each_branch(binding, typing)]
        return joined(things)

    def _through(self, binding: Binding, name: str, depth: int, typing: bool) -> Thing:
        if binding.kind == "star" and binding.module is not None:
            return self._name(binding.module, binding.attribute or name, depth - 1, typing)
        return UNKNOWN

    def _site(self, site: Site, file: SourceFile, module: str, name: str, depth: int, typing: bool) -> Thing:
        if site.kind == "import" and (target := site.bound_module) is not None:
            if site.asname and self.has(target):
                return self._by_attributes(target, depth, typing)
            return self.module(target) if self.is_ours(module) else upstreams_own(self.module(target))
        if site.kind == "from":
            if site.module is None or site.attribute is None:
                return UNKNOWN
            if site.module == module and site.attribute == name:
                return Module(f"{module}.{name}") if self.has(f"{module}.{name}") else UNKNOWN
            found = self._name(site.module, site.attribute, depth - 1, typing)
            return found if self.is_ours(module) else upstreams_own(found)
        if site.kind == "class" and isinstance(site.node, ast.ClassDef):
            return Class(module, name, file, site.node)
        if site.kind == "def" and isinstance(site.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return Function(module, name, file, definition_group(module_bindings(file)[name], site.node))
        if site.kind == "assign" and isinstance(site.node, (ast.Assign, ast.AnnAssign)):
            return self._assigned(site.node, file, module, name, depth)
        if site.kind == "other":  # `a, b = ...`, a loop, a `with`: some value, whatever it is
            return Value(module, name, file, (site.node,))
        return UNKNOWN

    def _by_attributes(self, module: str, depth: int, typing: bool) -> Thing:
        """What `import a.b.c as m` binds: the attribute `c` of what `a.b` is, which may be something else than the module."""
        head, *rest = module.split(".")
        thing: Thing = self.module(head)
        for part in rest:
            thing = self._name(thing.name, part, depth - 1, typing) if isinstance(thing, Module) else UNKNOWN
        return thing

    def _assigned(
        self, node: ast.Assign | ast.AnnAssign, file: SourceFile, module: str, name: str, depth: int
    ) -> Thing:
        """`A = B` means what `B` means where that is a definition; else it is a value."""
        if isinstance(node, ast.Assign) and (chain := dotted(node.value)):
            target = self.chain(module, chain, depth=depth - 1)
            if isinstance(target, (Module, Class, Function)):
                return target
        made = node.value
        if isinstance(made, ast.Call) and dotted(made.func) == "importlib.import_module" and self.is_ours(module):
            named = made.args[0] if len(made.args) == 1 else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                return self.module(named.value)
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        values = ((node.value, None),) if node.value is not None else ()
        return Value(module, name, file, (node,), annotation=annotation, values=values)

    def chain(self, module: str, chain: str, *, typing: bool = False, depth: int = DEPTH) -> Thing:
        """What a dotted name means at the top level of a module; classes are looked into one level at a time.

        Args:
            module: the module that the name stands in.
            chain: the dotted name.
            typing: what is imported for type checkers only counts, too.
            depth: how many imports and assignments are followed.
        """
        head, *rest = chain.split(".")
        thing = self._name(module, head, depth, typing) if depth < DEPTH else self.name(module, head, typing=typing)
        for part in rest:
            if isinstance(thing, Module):
                thing = self._name(thing.name, part, depth, typing)
            elif isinstance(thing, Class):
                inner = next((n for n in thing.node.body if isinstance(n, ast.ClassDef) and n.name == part), None)
                thing = Class(thing.module, f"{thing.qualname}.{part}", thing.file, inner) if inner else UNKNOWN
            elif isinstance(thing, Outside):
                thing = Outside(f"{thing.name}.{part}")
            else:
                return thing if isinstance(thing, Missing) else UNKNOWN
        return thing

    @staticmethod
    def _dynamic(file: SourceFile) -> bool:
        """Whether a module may have names that no statement of it binds."""
        return "__getattr__" in module_bindings(file) or any(
            word in file.data for word in (b"globals()", b"vars()", b"locals()", b"sys.modules")
        )


def upstreams_own(thing: Thing) -> Thing:
    """What upstream's own import leads to: where that is nothing, upstream knows better (a module in C, say)."""
    return UNKNOWN if isinstance(thing, Missing) else thing


def joined(things: list[Thing]) -> Thing:
    """One meaning of several branches."""
    unique = list(dict.fromkeys(things))
    if len(unique) == 1:
        return unique[0]
    found: list[Found] = [t for t in unique if isinstance(t, (Module, Class, Function, Value))]
    return Several(tuple(found)) if found and len(found) == len(unique) else UNKNOWN


def _last_of_each_branch(binding: Binding, typing: bool) -> list[Site]:
    """The sites that may have the last word: the last one that surely runs, and those behind it."""
    plain = [site for site in binding.sites if site.guard != "type_checking"] or (list(binding.sites) if typing else [])
    sure = [i for i, site in enumerate(plain) if site.guard == "none"]
    return plain[sure[-1] :] if sure else plain


def definition_group(binding: Binding, node: FunctionNode) -> tuple[FunctionNode, ...]:
    """A function with the overloads before it."""
    nodes: list[Any] = [site.node for site in binding.sites if site.kind == "def"]
    index = nodes.index(node)
    first = index
    while first and is_overload(nodes[first - 1]):
        first -= 1
    return tuple(nodes[first : index + 1])
