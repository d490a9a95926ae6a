"""Follow a name of an upstream to its definition, list what a class has, and say how two definitions differ."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.names.stars import lookup
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.syntax import blocks, bound_names, docstring_of, same
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

_DEPTH = 8


@dataclass(frozen=True, eq=False)
class Destination:
    """Where a name leads: a statement of a file, or a whole module (`node` is None)."""

    module: str
    name: str = ""
    file: SourceFile | None = None
    node: ast.AST | None = None

    @property
    def reference(self) -> str:
        """`package.module:name`, or the module alone."""
        return f"{self.module}:{self.name}" if self.name else self.module


def find_definition(upstream: Upstream, module: str, name: str | None, depth: int = _DEPTH) -> Destination | None:
    """What `from module import name` gives, through re-exports; None when it leaves the upstream or cannot be told.

    Args:
        upstream: where to look.
        module: the module that is imported from.
        name: the name that is imported; None for the module itself.
        depth: how many re-exports are followed.
    """
    if name is None:
        return Destination(module) if module in upstream.modules() else None
    if module not in upstream.modules() or depth == 0:
        return None
    file = upstream.read(module)
    binding = lookup(file, name, upstream).binding
    if binding is None:
        return Destination(f"{module}.{name}") if f"{module}.{name}" in upstream.modules() else None
    if binding.kind in {"from", "star"} and binding.module is not None:
        if binding.module == module and binding.attribute == name:
            return Destination(f"{module}.{name}") if f"{module}.{name}" in upstream.modules() else None
        return find_definition(upstream, binding.module, binding.attribute, depth - 1)
    if binding.kind == "import" and (target := binding.sites[-1].bound_module) is not None:
        return Destination(target) if target in upstream.modules() else None
    if not binding.sites:
        return None
    return Destination(module, name, file, binding.sites[-1].node)


def binds(upstream: Upstream, module: str, name: str | None) -> bool:
    """Whether `from module import name` (or `import module`) can work; where that cannot be told, it is assumed."""
    if module not in upstream.modules():
        return False
    if name is None:
        return True
    if f"{module}.{name}" in upstream.modules():
        return True
    file = upstream.read(module)
    found = lookup(file, name, upstream)
    return found.binding is not None or bool(found.unread) or "__getattr__" in module_bindings(file)


def names_of(upstream: Upstream, module: str) -> list[str]:
    """The names that a module binds, for suggestions."""
    if module not in upstream.modules():
        return []
    try:
        return sorted(module_bindings(upstream.read(module)))
    except UpstreamError:
        return []


# ---- equality -----------------------------------------------------------------------------------------------------


def differences(one: ast.AST, other: ast.AST) -> tuple[str, ...]:
    """What differs between two definitions of one thing: `signature`, `decorators`, `body`, `bases`, members, `value`."""
    if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and isinstance(
        other, (ast.FunctionDef, ast.AsyncFunctionDef)
    ):
        return _function_differences(one, other)
    if isinstance(one, ast.ClassDef) and isinstance(other, ast.ClassDef):
        return _class_differences(one, other)
    if type(one) is not type(other):
        return (f"it is {_word(one)} there and {_word(other)} here",)
    value, other_value = getattr(one, "value", one), getattr(other, "value", other)
    return () if same(value, other_value) else ("value",)


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.ClassDef):
        return "a class"
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return "a function"
    return "an assignment"


def _function_differences(
    one: ast.FunctionDef | ast.AsyncFunctionDef, other: ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[str, ...]:
    found: list[str] = []
    if type(one) is not type(other) or not same(one.args, other.args) or not same(one.returns, other.returns):
        found.append("signature")
    if not same(one.decorator_list, other.decorator_list):
        found.append("decorators")
    if not same(_without_docstring(one.body), _without_docstring(other.body)):
        found.append("body")
    return tuple(found)


def _class_differences(one: ast.ClassDef, other: ast.ClassDef) -> tuple[str, ...]:
    found: list[str] = []
    if not same(one.bases, other.bases) or not same(one.keywords, other.keywords):
        found.append("bases")
    if not same(one.decorator_list, other.decorator_list):
        found.append("decorators")
    ours, theirs = _members(other), _members(one)
    added = sorted(theirs.keys() - ours.keys())
    removed = sorted(ours.keys() - theirs.keys())
    changed = sorted(n for n in ours.keys() & theirs.keys() if not _same_members(theirs[n], ours[n]))
    for word, names in (("only there", added), ("only here", removed), ("differ", changed)):
        if names:
            found.append(f"members {word}: {', '.join(names)}")
    return tuple(found)


def _same_members(one: list[ast.stmt], other: list[ast.stmt]) -> bool:
    return len(one) == len(other) and all(
        type(a) is type(b) and (same(a, b) or not differences(a, b)) for a, b in zip(one, other, strict=True)
    )


def _members(node: ast.ClassDef) -> dict[str, list[ast.stmt]]:
    members: dict[str, list[ast.stmt]] = {}
    for statement in _without_docstring(node.body):
        names = list(bound_names(statement, declared=True)) or [f"<{type(statement).__name__.lower()}>"]
        for name in names:
            members.setdefault(name, []).append(statement)
    return members


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if docstring_of(body) else body


# ---- classes ------------------------------------------------------------------------------------------------------


@dataclass
class Members:
    """What instances of a class have.

    Attributes:
        names: attribute name to the statement that gives it (None for `self.name = ...`).
        open: a base outside the upstream, or `__getattr__`, may give more.
    """

    names: dict[str, ast.AST | None] = field(default_factory=dict)
    open: bool = False


def class_members(upstream: Upstream, definition: Destination, seen: Collection[str] = ()) -> Members:
    """Fields, methods, properties and attributes assigned in methods, those of the bases included where they can be read."""
    members = Members()
    node, file = definition.node, definition.file
    if not isinstance(node, ast.ClassDef) or file is None or definition.reference in seen:
        members.open = True
        return members
    for base in node.bases:
        name = dotted(base.value if isinstance(base, ast.Subscript) else base)
        if name in {"object", "Generic", "typing.Generic", "Protocol", "ABC", "abc.ABC", "Enum"}:
            continue
        found = resolve_dotted(upstream, file, name) if name else None
        inherited = class_members(upstream, found, [*seen, definition.reference]) if found else Members(open=True)
        members.names.update({n: v for n, v in inherited.names.items() if n not in members.names})
        members.open = members.open or inherited.open
    _own_members(node, members)
    if "__getattr__" in members.names or "__getattribute__" in members.names:
        members.open = True
    return members


def _own_members(node: ast.ClassDef, members: Members) -> None:
    stack: list[ast.stmt] = list(node.body)
    while stack:
        statement = stack.pop(0)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            members.names[statement.name] = statement
            if statement.args.args or statement.args.posonlyargs:
                first = [*statement.args.posonlyargs, *statement.args.args][0].arg
                for inner in ast.walk(statement):
                    if (
                        isinstance(inner, ast.Attribute)
                        and isinstance(inner.ctx, ast.Store)
                        and isinstance(inner.value, ast.Name)
                        and inner.value.id == first
                    ):
                        members.names.setdefault(inner.attr, None)
        elif isinstance(statement, ast.ClassDef):
            members.names[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    members.names[target.id] = statement
                    if target.id == "__slots__" and isinstance(
                        getattr(statement, "value", None), (ast.Tuple, ast.List)
                    ):
                        for item in statement.value.elts:  # type: ignore[union-attr]
                            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                                members.names.setdefault(item.value, None)
        else:
            stack.extend(inner for block in blocks(statement) for inner in block.body)


def resolve_dotted(upstream: Upstream, file: SourceFile, name: str) -> Destination | None:
    """The definition that a dotted name leads to when it is read at the top level of `file`."""
    head, *rest = name.split(".")
    found: Destination | None = find_definition(upstream, file.module, head)
    for part in rest:
        if found is None:
            return None
        if found.node is None:
            found = find_definition(upstream, found.module, part)
        elif isinstance(found.node, ast.ClassDef):
            inner = next((n for n in found.node.body if isinstance(n, ast.ClassDef) and n.name == part), None)
            found = Destination(found.module, f"{found.name}.{part}", found.file, inner) if inner else None
        else:
            return None
    return found


def find_class(upstream: Upstream, module: str, qualname: str) -> Destination | None:
    """The class `qualname` (dotted for nested ones) of `module`."""
    if module not in upstream.modules():
        return None
    found = resolve_dotted(upstream, upstream.read(module), qualname)
    return found if found is not None and isinstance(found.node, ast.ClassDef) else None
