"""What one class statement says by itself: names that its body binds, attributes that its methods set, slots, fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from afd_patchkit.names.analysis import mangle
from afd_patchkit.names.bindings import Site, class_sites
from afd_patchkit.references.things import Class, FunctionNode, How
from afd_patchkit.source.decorators import decorator_names
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.text import SourceFile

_PROPERTIES = frozenset(["property", "cached_property", "functools.cached_property", "abc.abstractproperty"])


@dataclass
class Facts:
    """What one class statement says, bases aside.

    Attributes:
        sites: what its body binds.
        attributes: attributes that its methods set: name to statements.
        open: it may have members that nothing here names.
    """

    sites: dict[str, list[Site]]
    attributes: dict[str, list[tuple[ast.stmt, FunctionNode | None]]]
    open: bool


@dataclass(frozen=True)
class Field:
    """One field of a dataclass or named tuple, as its constructor takes it."""

    name: str
    required: bool
    keyword_only: bool = False
    node: ast.AnnAssign | None = field(default=None, compare=False)
    file: SourceFile | None = field(default=None, compare=False)


def how_decorated(node: FunctionNode) -> How:
    """What its decorators make of a member."""
    names = [name for _, name in decorator_names(node)]
    if "staticmethod" in names:
        return "static"
    if "classmethod" in names or node.name in {"__init_subclass__", "__class_getitem__"}:
        return "class"
    if any(
        name in _PROPERTIES or name.rpartition(".")[2] in {"cached_property", "setter", "getter", "deleter"}
        for name in names
    ):
        return "property"
    return "plain"


def facts_of(cls: Class) -> Facts:
    """What the statement of a class says."""
    sites = {mangle(name, cls.name): list(found) for name, found in class_sites(cls.file, cls.node).items()}
    facts = Facts(sites, {}, False)
    for found in list(sites.values()):
        for site in found:
            if isinstance(site.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for name, statement in _attributes_set(site.node, cls.name):
                    facts.attributes.setdefault(name, []).append((statement, site.node))
                facts.open |= _opens(site.node)
    if {"__getattr__", "__getattribute__"} & sites.keys():
        facts.open = True
    for statement in cls.node.body:
        if isinstance(statement, ast.AnnAssign) and statement.value is None and isinstance(statement.target, ast.Name):
            facts.attributes.setdefault(mangle(statement.target.id, cls.name), []).insert(0, (statement, None))
    for slot in slots(cls.node) or ():
        facts.attributes.setdefault(mangle(slot, cls.name), [])
    for statement in cls.file.tree.body if "." not in cls.qualname else ():
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == cls.name:
                facts.attributes.setdefault(target.attr, []).append((statement, None))
    return facts


def abstract(facts: Facts) -> list[str]:
    """Names of the abstract methods, sorted."""
    return sorted(
        name
        for name, sites in facts.sites.items()
        if any(
            dotted(d).rpartition(".")[2] == "abstractmethod"
            for s in sites
            for d in getattr(s.node, "decorator_list", ())
        )
    )


def slots(node: ast.ClassDef) -> tuple[str, ...] | None:
    """The names in `__slots__` of a class statement; None when it has none, or none that can be read."""
    for statement in node.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(t, ast.Name) and t.id == "__slots__" for t in targets):
                value = statement.value
                items = value.elts if isinstance(value, (ast.Tuple, ast.List, ast.Set)) else [value]
                if all(isinstance(i, ast.Constant) and isinstance(i.value, str) for i in items):
                    return tuple(i.value for i in items)  # type: ignore[union-attr]
                return None
    for decorator in node.decorator_list:
        if flag(decorator, "slots", False):
            return tuple(
                s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            )
    return None


def _attributes_set(function: FunctionNode, private: str) -> Iterator[tuple[str, ast.stmt]]:
    """`self.name = ...` in a method, and `setattr(self, "name", ...)`, with the statement."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments or how_decorated(function) == "static":
        return
    first = arguments[0].arg
    stack: list[tuple[ast.AST, ast.stmt]] = [(s, s) for s in function.body]
    while stack:
        node, statement = stack.pop()
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is(node.value, first):
            yield mangle(node.attr, private), statement
        elif (
            isinstance(node, ast.Call)
            and dotted(node.func) in {"setattr", "object.__setattr__"}
            and len(node.args) == 3
        ):
            name = node.args[1]
            if _is(node.args[0], first) and isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, statement
        stack += ((child, child if isinstance(child, ast.stmt) else statement) for child in ast.iter_child_nodes(node))


def _opens(function: FunctionNode) -> bool:
    """Whether a method may set attributes whose names cannot be seen."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        return False
    first = arguments[0].arg
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr == "__dict__" and _is(node.value, first):
            return True
        if (
            isinstance(node, ast.Call)
            and dotted(node.func) in {"setattr", "object.__setattr__", "vars"}
            and node.args
            and _is(node.args[0], first)
        ):
            name = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                return True
    return False


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def values_of(statement: ast.AST) -> tuple[ast.expr, ...]:
    """The value that a statement gives to one name; none where it gives several, or where that cannot be told."""
    value = getattr(statement, "value", None)
    plain = isinstance(statement, ast.AnnAssign) or (
        isinstance(statement, ast.Assign) and not any(isinstance(t, (ast.Tuple, ast.List)) for t in statement.targets)
    )
    return (value,) if plain and isinstance(value, ast.expr) else ()


def flag(decorator: ast.expr | None, name: str, default: bool) -> bool:
    """What a keyword of a call is, where it is a constant; the default where it is not given."""
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        if keyword.arg == name and isinstance(keyword.value, ast.Constant):
            return bool(keyword.value.value)
    return default


def field_of(statement: ast.AnnAssign, keyword_only: bool, file: SourceFile) -> Field | None:
    """The constructor's parameter for one field; None for `field(init=False)`."""
    assert isinstance(statement.target, ast.Name)
    value = statement.value
    required = value is None
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in {"field", "Field"}:
        if not flag(value, "init", True):
            return None
        keyword_only = flag(value, "kw_only", keyword_only)
        given = {k.arg for k in value.keywords}
        required = not given & {"default", "default_factory", None} and not value.args
    return Field(statement.target.id, required, keyword_only, statement, file)
