"""Functions and classes inside a symbol as scopes: in which one a statement stands, and whose a name is there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from afd_patchkit.source.syntax import CLAUSE, DEFINITION, FUNCTION, binding, blocks, clause_names, own_parts

_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False, slots=True)
class Namespace:
    """One function or class.

    Attributes:
        node: its statement.
        parent: the one around it.
        statements: what runs in it, at any depth; nested definitions are given, what stands in them is not.
        bound: names that it binds.
        elsewhere: names that it declares `global` or `nonlocal`.
    """

    node: ast.stmt
    parent: Namespace | None
    statements: list[ast.stmt] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)

    def inside(self, name: str) -> Namespace | None:
        """The function or class that a name read here belongs to; None for one of the module."""
        scope: Namespace | None = self
        while scope is not None:
            if name in scope.elsewhere and any(name in s.names for s in scope.statements if isinstance(s, ast.Global)):
                return None
            visible = scope is self or isinstance(
                scope.node, FUNCTION
            )  # functions do not see the names of a class around them
            if visible and name in scope.bound - scope.elsewhere:
                return scope
            scope = scope.parent
        return None


def scopes_of(roots: Sequence[ast.stmt]) -> list[Namespace]:
    """The definitions among some statements and those inside them, the outer ones first."""
    found = [Namespace(root, None) for root in roots if isinstance(root, DEFINITION)]
    for scope in found:
        if isinstance(scope.node, FUNCTION):
            scope.bound |= {a.arg for a in parameters_of(scope.node)}
        stack = [s for block in reversed(list(blocks(scope.node))) for s in reversed(block.body)]
        while stack:
            node = stack.pop()
            scope.statements.append(node)
            scope.bound |= names_of(node)
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                scope.elsewhere |= set(node.names)
            if isinstance(node, DEFINITION):
                found.append(Namespace(node, scope))
            else:
                stack += [s for block in reversed(list(blocks(node))) for s in reversed(block.body)]
    return found


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function, those with stars last."""
    a = node.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *(extra for extra in (a.vararg, a.kwarg) if extra is not None)]


def clauses_of(node: ast.stmt) -> list[ast.AST]:
    """The handlers of a `try`, the cases of a `match`."""
    return [block.owner for block in blocks(node) if isinstance(block.owner, CLAUSE)]


def heads(node: ast.stmt) -> list[ast.AST]:
    """What a statement and its clauses consist of without their blocks: of a `try` the caught types, of a `match` the patterns."""
    found: list[ast.AST] = own_parts(node) if next(blocks(node), None) else [node]
    for clause in clauses_of(node):
        found += own_parts(clause)
    return found


def names_of(node: ast.stmt) -> set[str]:
    """The names that a statement without its blocks binds where it stands, clauses included; those of comprehensions and lambdas are theirs."""
    found = {n.id for n in stored_names(node)}
    if isinstance(node, DEFINITION):
        found.add(node.name)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        found |= {name[0] for alias in node.names if (name := binding(alias)) is not None}
    for clause in clauses_of(node):
        found |= set(clause_names(clause))
        found |= {n.id for part in own_parts(clause) for n in stored_names(part)}
    return found


def stored_names(root: ast.AST) -> Iterator[ast.Name]:
    """The names that a statement or expression sets or deletes where it stands, blocks and clauses left out."""
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, (ast.Store, ast.Del)):
                yield node
        elif isinstance(node, ast.Lambda):
            stack += [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
        elif isinstance(node, _COMPREHENSION):
            yield from (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        else:
            stack += [c for c in ast.iter_child_nodes(node) if not isinstance(c, (ast.stmt, *CLAUSE))]


def shadowed(node: ast.AST) -> Iterable[str]:
    """The names that an expression binds for itself alone: a lambda's parameters, the targets of a comprehension."""
    if isinstance(node, ast.Lambda):
        return [a.arg for a in parameters_of(node)]
    if isinstance(node, _COMPREHENSION):
        return [n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    return ()
