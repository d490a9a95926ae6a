"""Scopes for the oracle: which names of a function are global, what a module's names lead to. Syntax only."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
DEFINED = "="
"""Target of a name that a statement of the module itself binds (not an import)."""

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run in this scope, those inside `if`, `try`, `with`, loops and `match` included."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            for child in getattr(node, name, ()):
                yield from statements([child] if isinstance(child, ast.stmt) else child.body)


def bindings(body: Iterable[ast.stmt], package: str) -> dict[str, set[str]]:
    """Names that a module or class body binds, each with what it leads to: dotted paths, or `=` when defined there."""
    found: dict[str, set[str]] = {}
    for node in statements(body):
        for name, target in _bound_by(node, package):
            found.setdefault(name, set()).add(target)
    return found


def without_type_checking(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module that run: `if TYPE_CHECKING:` gives way to its `else`."""
    found: list[ast.stmt] = []
    for node in body:
        guarded = isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        found += node.orelse if guarded and isinstance(node, ast.If) else [node]
    return found


def _bound_by(node: ast.stmt, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom):
        source = absolute(node, package)
        for alias in node.names:
            yield alias.asname or alias.name, f"{source}.{alias.name}"
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, DEFINED
    else:
        for name in _stored(node):
            yield name, DEFINED


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module an import names, made absolute from `package`."""
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return ".".join(filter(None, [package if node.level else "", node.module]))


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that a statement stores in the scope it stands in (suites and inner scopes excluded, walrus included)."""
    for child in own_parts(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, (ast.Store, ast.Del)):
            yield child.id
        elif isinstance(child, (ast.MatchAs, ast.MatchStar)) and child.name:
            yield child.name
        elif isinstance(child, ast.MatchMapping) and child.rest:
            yield child.rest
        elif isinstance(child, ast.ExceptHandler) and child.name:
            yield child.name


def own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a statement that belong to the scope it stands in; its suites and inner scopes do not."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, *_FUNCTIONS)):
            continue
        if isinstance(child, _COMPREHENSIONS):
            for inner in ast.walk(child):
                if isinstance(inner, ast.NamedExpr):
                    yield inner.target
            continue
        yield from own_parts(child)


def header_expressions(node: FunctionNode) -> list[ast.expr]:
    """What is evaluated in the scope around a function: decorators, defaults, annotations."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    annotations = [a.annotation for a in every if a and a.annotation]
    defaults = [d for d in [*arguments.defaults, *arguments.kw_defaults] if d]
    return [*node.decorator_list, *defaults, *annotations, *([node.returns] if node.returns else [])]


@dataclass
class _Scope:
    is_class: bool = False
    bound: set[str] = field(default_factory=set)
    declared_global: set[str] = field(default_factory=set)
    declared_outer: set[str] = field(default_factory=set)


class Scopes(ast.NodeVisitor):
    """The `Name` nodes of one function that mean a global or a builtin (its header included)."""

    def __init__(self, function: FunctionNode) -> None:
        self._stack: list[_Scope] = []
        self._global: set[int] = set()
        self.globals: set[str] = set()
        self.written: set[str] = set()
        self.visit(function)

    def is_global(self, node: ast.Name) -> bool:
        """Whether the node means a global or builtin name."""
        return id(node) in self._global

    def visit_Name(self, node: ast.Name) -> None:
        if self._leads_out(node.id):
            self._global.add(id(node))
            self.globals.add(node.id)
            if not isinstance(node.ctx, ast.Load):
                self.written.add(node.id)

    def _leads_out(self, name: str) -> bool:
        for depth, scope in enumerate(reversed(self._stack)):
            if name in scope.declared_global:
                return True
            if name in scope.bound and name not in scope.declared_outer and not (scope.is_class and depth):
                return False
        return True

    def _function(self, node: FunctionNode | ast.Lambda) -> None:
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        if isinstance(node, ast.Lambda):
            for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
                self.visit(default)
            body: list[ast.stmt] = [ast.Expr(node.body)]
        else:
            for expression in header_expressions(node):
                self.visit(expression)
            body = node.body
        scope = _scope(body)
        scope.bound |= {p.arg for p in parameters if p}
        self._inside(scope, [node.body] if isinstance(node, ast.Lambda) else node.body)

    def _inside(self, scope: _Scope, nodes: Iterable[ast.AST]) -> None:
        self._stack.append(scope)
        for node in nodes:
            self.visit(node)
        self._stack.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for expression in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]:
            self.visit(expression)
        scope = _scope(node.body)
        scope.is_class = True
        scope.bound |= {"__module__", "__qualname__"}
        self._inside(scope, node.body)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.visit(node.generators[0].iter)
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        inside: list[ast.AST] = []
        for number, generator in enumerate(node.generators):
            inside += [generator.target, *([generator.iter] if number else []), *generator.ifs]
        inside += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._inside(_Scope(bound=targets), inside)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)


def _scope(body: Iterable[ast.stmt]) -> _Scope:
    scope = _Scope()
    for node in statements(body):
        if isinstance(node, ast.Global):
            scope.declared_global |= set(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.declared_outer |= set(node.names)
        else:
            scope.bound |= {name for name, _ in _bound_by(node, "")}
            scope.bound |= {h.name for h in getattr(node, "handlers", ()) if h.name}
            for case in getattr(node, "cases", ()):
                scope.bound |= set(_stored(case))
    return scope
