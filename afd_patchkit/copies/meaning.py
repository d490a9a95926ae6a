"""Where a name leads, in a hand file as in upstream's: one dotted text for each thing, however it is reached."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.names.bindings import absolute_module, module_bindings
from afd_patchkit.names.stars import lookup
from afd_patchkit.source.stdlib import BUILTINS
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Lead:
    """What a name leads to.

    Attributes:
        dotted: the thing, `package.module.Qual.name`; the definition, not the way to it.
        module: it is a module, or may be one: what is read from it belongs to the text.
    """

    dotted: str
    module: bool = False


class Leads:
    """Follows names through upstreams; what lies outside of them is taken as it is written.

    Args:
        upstreams: upstreams with their import packages; the first that has a module counts.
    """

    def __init__(self, upstreams: Sequence[tuple[Upstream, Collection[str]]]) -> None:
        self.upstreams = tuple(upstreams)
        self._known: dict[tuple[str, str | None], Lead] = {}

    def provider(self, module: str) -> Upstream | None:
        """The upstream that has a module; None for any other module."""
        for upstream, packages in self.upstreams:
            if module.partition(".")[0] in {p.partition(".")[0] for p in packages} and module in upstream.modules():
                return upstream
        return None

    def follow(self, module: str, name: str | None, depth: int = _DEPTH) -> Lead:
        """What `from module import name` gives; of None the module itself."""
        key = (module, name)
        if key not in self._known:
            self._known[key] = self._follow(module, name, depth)
        return self._known[key]

    def _follow(self, module: str, name: str | None, depth: int) -> Lead:
        if name is None:
            return Lead(module, True)
        upstream = self.provider(module)
        whole = f"{module}.{name}"
        if upstream is None:
            # of another distribution: whether it is a module cannot be seen, and need not be
            return Lead(whole, True)
        if depth == 0:
            return Lead(whole)
        try:
            binding = lookup(upstream.read(module), name, upstream).binding
        except UpstreamError:
            return Lead(whole)
        if binding is None:
            return Lead(whole, self.provider(whole) is not None)
        if binding.kind in {"from", "star"} and binding.module is not None:
            if binding.module == module and binding.attribute == name:
                return Lead(whole, self.provider(whole) is not None)
            return self.follow(binding.module, binding.attribute, depth - 1)
        if binding.kind == "import" and (target := binding.sites[-1].bound_module) is not None:
            return Lead(target, True)
        return Lead(whole)

    def has(self, dotted: str) -> bool | None:
        """Whether an upstream has what a text leads to; None when it lies outside, or cannot be told."""
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            module = ".".join(parts[:count])
            upstream = self.provider(module)
            if upstream is None:
                continue
            if count == len(parts):
                return True
            try:
                found = lookup(upstream.read(module), parts[count], upstream)
                lazy = "__getattr__" in module_bindings(upstream.read(module))
            except UpstreamError:
                return None
            if found.binding is not None:
                return True
            return None if found.unread or lazy else False
        return None


class FileNames:
    """What the free names of one file's functions lead to.

    Args:
        file: the file.
        meaning: follows what they name.
        local: names that functions around bind by imports, each with where it leads.
    """

    def __init__(self, file: SourceFile, meaning: Leads, local: Mapping[str, Lead] | None = None) -> None:
        self.file, self.meaning, self.local = file, meaning, dict(local or {})

    def lead(self, name: str) -> Lead:
        """Where a free name leads."""
        if name in self.local:
            return self.local[name]
        binding = module_bindings(self.file).get(name)
        own = Lead(f"{self.file.module}.{name}")
        if self.meaning.provider(self.file.module) is not None:
            return Lead(name) if binding is None and name in BUILTINS else self.meaning.follow(self.file.module, name)
        if binding is None:
            return Lead(name) if name in BUILTINS else own
        if binding.kind == "from" and binding.module is not None:
            return self.meaning.follow(binding.module, binding.attribute)
        if binding.kind == "import" and (target := binding.sites[-1].bound_module) is not None:
            return Lead(target, True)
        if binding.kind == "assign" and len(binding.sites) == 1:
            value = getattr(binding.sites[0].node, "value", None)
            if isinstance(value, (ast.Name, ast.Attribute)) and (found := self.of(value)) is not None:
                return found
        return own

    def of(self, node: ast.expr) -> Lead | None:
        """Where a name, or a chain of attributes on one, leads; None for any other expression.

        An attribute of a class belongs to the text: `module.Class.method`.
        """
        if isinstance(node, ast.Name):
            return self.lead(node.id)
        if isinstance(node, ast.Attribute):
            base = self.of(node.value)
            if base is None:
                return None
            return self.meaning.follow(base.dotted, node.attr) if base.module else Lead(f"{base.dotted}.{node.attr}")
        return None

    def within(self, functions: Sequence[ast.FunctionDef | ast.AsyncFunctionDef]) -> FileNames:
        """The same for code inside these functions, whose imports and plain assignments of names count there."""
        local: dict[str, Lead] = dict(self.local)
        names = FileNames(self.file, self.meaning, local)
        for function in functions:
            for node in _own(function):
                if isinstance(node, ast.Import):
                    for item in node.names:
                        name = item.asname or item.name.partition(".")[0]
                        names.local[name] = Lead(item.name if item.asname else name, True)
                elif isinstance(node, ast.ImportFrom):
                    source = absolute_module(self.file, node.module, node.level) if node.level else node.module
                    for item in node.names:
                        if source and item.name != "*":
                            names.local[item.asname or item.name] = self.meaning.follow(source, item.name)
                elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                    found = names.of(node.value)
                    if found is not None and isinstance(node.value, (ast.Name, ast.Attribute)):
                        names.local.setdefault(node.targets[0].id, found)
        return names


def _own(function: ast.AST) -> Sequence[ast.AST]:
    """The nodes of a function that are not in another function or class inside it, in order."""
    found: list[ast.AST] = []
    stack = list(ast.iter_child_nodes(function))[::-1]
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += list(ast.iter_child_nodes(node))[::-1]
    return found
