"""A function as a tree in which only what Python does is left: every name by where it leads, no annotations, no docstrings.

Each node of such a tree knows the node that it was made from (`origin`), so that places and text stay at hand.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from afd_patchkit.copies.meaning import FileNames, Lead
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.bindings import absolute_module
from afd_patchkit.source.locate import FunctionNode
from afd_patchkit.source.syntax import CLAUSE, blocks
from afd_patchkit.source.text import SourceFile


@dataclass
class Canonical:
    """A function in canonical form.

    Attributes:
        node: the function; its body is canonical.
        origin: the function as it was read.
        late: names that are reached through their module at call time: where each leads, to how it is written.
        free: names that are read as they are: the name, to where it leads.
        local: names that the function binds.
        decorators: the outermost first.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    origin: FunctionNode
    late: dict[str, str] = field(default_factory=dict)
    free: dict[str, str] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    decorators: tuple[Decorator, ...] = ()

    def named(self, *, method: bool) -> list[Decorator]:
        """The decorators that count; of a function outside of a class its assignment says how it is bound."""
        return [d for d in self.decorators if method or d.word not in ("staticmethod", "classmethod")]


class Decorator(NamedTuple):
    """A decorator: the last part of its name, its text, and what decorators share exactly when they do the same."""

    word: str
    text: str
    key: str


def origin(node: ast.AST) -> ast.AST:
    """The node that a canonical one was made from."""
    return getattr(node, "origin", node)


def key(node: ast.AST) -> str:
    """A text that two canonical nodes share exactly when they do the same."""
    known: str | None = getattr(node, "_key", None)
    if known is None:
        known = _dump(node)
        node._key = known  # type: ignore[attr-defined]
    return known


def _dump(node: object) -> str:
    if isinstance(node, ast.AST):
        known: str | None = getattr(node, "_key", None)
        if known is not None:
            return known
        parts = ",".join(_dump(getattr(node, name, None)) for name in node._fields if name not in _SILENT)
        text = f"{type(node).__name__}({parts})"
        if isinstance(node, ast.stmt):
            node._key = text  # type: ignore[attr-defined]
        return text
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    return f"{type(node).__name__}:{node!r}" if not isinstance(node, str) else repr(node)


_SILENT = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def canonical(
    function: FunctionNode,
    names: FileNames,
    *,
    owner: str = "",
    private: str | None = None,
    same_globals: Mapping[str, str] | None = None,
) -> Canonical:
    """A function in canonical form.

    Args:
        function: the function.
        names: what the free names of its file lead to.
        owner: where the class leads that the function is a method of, for `super()`.
        private: name of the class, for private names.
        same_globals: where names lead that this file defines for itself as upstream does (its own `logger`).
    """
    analysis = Analysis([function], private)
    free = {id(use.node): use.name for use in analysis.free() if not use.own or use.name != function.name}
    bound: set[str] = set()
    for scope in analysis.scope_of(function).walk():
        bound |= scope.bound - scope.globals
    builder = _Builder(names, free, owner, first_parameter(function), same_globals or {})
    made = builder.function(function)
    decorators = tuple(_decorator(d, names, same_globals or {}) for d in function.decorator_list)
    return Canonical(made, function, builder.late, builder.read, frozenset(bound), decorators)


def _decorator(node: ast.expr, names: FileNames, own: Mapping[str, str]) -> Decorator:
    """A decorator is read where the function stands: its names are not the function's."""
    free = {id(n): n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    called = node.func if isinstance(node, ast.Call) else node
    word = ast.unparse(called).rpartition(".")[2]
    return Decorator(word, ast.unparse(node), key(_Builder(names, free, "", None, own).build(node)))


def owner_of(file: SourceFile, classes: Sequence[ast.ClassDef]) -> str:
    """Where the class leads that a method stands in, the last of these; empty for what is no method."""
    return ".".join([file.module, *(c.name for c in classes)]) if classes else ""


def first_parameter(function: FunctionNode) -> str | None:
    """The name of the first positional parameter."""
    listed = [*function.args.posonlyargs, *function.args.args]
    return listed[0].arg if listed else None


class _Builder:
    def __init__(
        self, names: FileNames, free: Mapping[int, str], owner: str, first: str | None, own: Mapping[str, str]
    ) -> None:
        self.names, self.free, self.owner, self.first, self.own = names, free, owner, first, own
        self.late: dict[str, str] = {}
        self.read: dict[str, str] = {}

    def function(self, node: FunctionNode) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """The function itself; its name and decorators are not part of it."""
        made = type(node)(
            name="",
            args=self.build(node.args),  # type: ignore[arg-type]
            body=self.suite(node.body),
            decorator_list=[],
            returns=None,
        )
        if "type_params" in node._fields:
            made.type_params = []  # type: ignore[union-attr,unused-ignore]
        made.origin = node  # type: ignore[union-attr]
        ast.copy_location(made, node)
        return made

    def suite(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A block without what does nothing: strings, bare annotations, `global`; never empty."""
        found = [self.build(statement) for statement in body if not _silent(statement)]
        left = [s for s in found if not isinstance(s, ast.Pass)]
        return left or found[:1] or [_pass(body[0])]  # type: ignore[return-value]

    def build(self, node: ast.AST) -> ast.AST:  # type: ignore[type-arg,unused-ignore]
        """The canonical form of any node below the function."""
        made = self._special(node)
        if made is None:
            fields = {name: self._field(node, name) for name in node._fields}
            made = type(node)(**fields)
        made.origin = node  # type: ignore[attr-defined]
        if hasattr(node, "lineno"):
            ast.copy_location(made, node)
        return made

    def _field(self, node: ast.AST, name: str) -> object:
        value = getattr(node, name, None)
        if name in ("kind", "type_comment", "returns", "annotation") and not isinstance(node, ast.AnnAssign):
            return None
        if isinstance(value, ast.AST):
            return self.build(value)
        if isinstance(value, list):
            if value and isinstance(value[0], ast.stmt):
                return self.suite(value)
            return [self.build(item) if isinstance(item, ast.AST) else item for item in value]
        return value

    def _special(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Name) and id(node) in self.free:
            return self._named(self.names.lead(node.id), node.id, node)
        if isinstance(node, ast.Attribute):
            value = self.build(node.value)
            module = getattr(value, "module", None)
            if module is None:
                return ast.Attribute(value, node.attr, node.ctx)  # type: ignore[arg-type]
            found = self.names.meaning.follow(module, node.attr)
            self.late[found.dotted] = f"{getattr(value, 'written', module)}.{node.attr}"
            return self._leading(found, f"{getattr(value, 'written', module)}.{node.attr}", node.ctx)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            target = self.build(node.target)
            return ast.Assign([target], self.build(node.value), lineno=node.lineno)  # type: ignore[list-item,arg-type]
        if isinstance(node, ast.BoolOp):
            return self._flat(node)
        if isinstance(node, ast.ImportFrom) and node.level:
            module = absolute_module(self.names.file, node.module, node.level)
            return ast.ImportFrom(module, [self.build(n) for n in node.names], 0)  # type: ignore[misc]
        if self._bare_super(node) and self.first is not None:
            where, first = ast.Name(self.owner, ast.Load()), ast.Name(self.first, ast.Load())
            return ast.Call(self.build(node.func), [where, first], [])  # type: ignore[attr-defined,arg-type]
        return None

    def _bare_super(self, node: ast.AST) -> bool:
        bare = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
        return bool(bare and self.owner and not node.args)  # type: ignore[attr-defined]

    def _named(self, found: Lead, name: str, node: ast.Name) -> ast.Name:
        dotted = self.own.get(name, found.dotted)
        self.read[name] = dotted
        return self._leading(Lead(dotted, found.module and name not in self.own), name, node.ctx)

    @staticmethod
    def _leading(found: Lead, written: str, ctx: ast.expr_context) -> ast.Name:
        made = ast.Name(found.dotted, ctx)
        made.written = written  # type: ignore[attr-defined]
        if found.module:
            made.module = found.dotted  # type: ignore[attr-defined]
        return made

    def _flat(self, node: ast.BoolOp) -> ast.BoolOp:
        """`a and (b and c)` is `a and b and c`."""
        values: list[ast.expr] = []
        for value in node.values:
            made = self.build(value)
            if isinstance(made, ast.BoolOp) and type(made.op) is type(node.op):
                values += made.values
            else:
                values.append(made)  # type: ignore[arg-type]
        return ast.BoolOp(node.op, values)


def _silent(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return True
    return isinstance(node, ast.Global) or (isinstance(node, ast.AnnAssign) and node.value is None)


def _pass(place: ast.stmt) -> ast.Pass:
    made = ast.Pass()
    made.origin = place  # type: ignore[attr-defined]
    return ast.copy_location(made, place)


# ---- renamed locals -------------------------------------------------------------------------------------------------


def renamed(base: Canonical, wanted: Canonical) -> dict[str, str]:
    """Locals that the wanted function calls otherwise: its name, to upstream's; only where every use agrees."""
    fixed = {
        a.arg for c in (base, wanted) for a in ast.walk(c.node.args) if isinstance(a, ast.arg)
    }  # callers name them
    ours, theirs = wanted.local - base.local - fixed, base.local - wanted.local - fixed
    if not ours or not theirs:
        return {}
    shapes: dict[str, set[tuple[str, ...]]] = {}
    for statement in _statements(base.node):
        text, used = _masked(statement, theirs)
        shapes.setdefault(text, set()).add(used)
    votes: dict[str, set[str]] = {}
    for statement in _statements(wanted.node):
        text, used = _masked(statement, ours)
        rows = shapes.get(text, set())
        if used and len(rows) == 1 and len(row := next(iter(rows))) == len(used):
            for one, other in zip(used, row, strict=True):
                votes.setdefault(one, set()).add(other)
    sure = {one: next(iter(others)) for one, others in votes.items() if len(others) == 1}
    return {one: other for one, other in sure.items() if sum(o == other for o in sure.values()) == 1}


def name_unread(base: Canonical, wanted: Canonical) -> None:
    """Give loop variables that nothing reads (`_part`) upstream's names, in place."""
    shapes: dict[str, dict[str, ast.expr]] = {}
    for node in ast.walk(base.node):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            shapes.setdefault(key(node.iter), {})[key(node.target)] = node.target
    changed = False
    for node in ast.walk(wanted.node):
        if not isinstance(node, (ast.For, ast.AsyncFor)) or len(targets := shapes.get(key(node.iter), {})) != 1:
            continue
        ours, theirs = (list(ast.walk(t)) for t in (node.target, next(iter(targets.values()))))
        read = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name)}
        for one, other in zip(ours, theirs, strict=False) if len(ours) == len(theirs) else ():
            if isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id[:1] == "_" and one.id not in read:
                changed = changed or one.id != other.id
                one.id = other.id
    if changed:
        for node in ast.walk(wanted.node):
            node.__dict__.pop("_key", None)


def rename_locals(wanted: Canonical, names: Mapping[str, str]) -> None:
    """Give the locals of `wanted` these names, in place."""
    for node in ast.walk(wanted.node):
        node.__dict__.pop("_key", None)
        for attribute in ("id", "arg", "name"):
            value = getattr(node, attribute, None)
            if isinstance(value, str) and value in names and not isinstance(node, (ast.keyword, ast.alias)):
                setattr(node, attribute, names[value])


def _statements(node: ast.AST) -> list[ast.stmt]:
    return [n for n in ast.walk(node) if isinstance(n, ast.stmt) and n is not node]


def _masked(statement: ast.stmt, names: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """What a statement (of a compound one its head) does, whatever the names are, and these names in order."""
    parts: list[ast.AST] = [statement]
    if any(True for _ in blocks(statement)):
        parts = [c for c in ast.iter_child_nodes(statement) if not isinstance(c, (ast.stmt, *CLAUSE))]
    text = f"{type(statement).__name__} {' '.join(map(key, parts))}"
    found = []
    for node in (n for part in parts for n in ast.walk(part)):
        for attribute in ("id", "arg", "name"):
            value = getattr(node, attribute, None)
            if isinstance(value, str) and value in names and not isinstance(node, (ast.keyword, ast.alias)):
                found.append(value)
    for name in names:
        text = text.replace(repr(name), "?")
    return text, tuple(found)
