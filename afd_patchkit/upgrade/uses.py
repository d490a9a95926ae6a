"""What pieces of code read and set: names, and what is reached through them by attributes and elements."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from afd_patchkit.source.locate import dotted
from afd_patchkit.source.namespaces import shadowed
from afd_patchkit.source.syntax import binding

_EVERY_NAME = frozenset(["locals", "vars", "eval", "exec"])
_BY_NAME = {"getattr": False, "hasattr": False, "setattr": True, "delattr": True}
_SELF = frozenset(["self", "cls"])
ELEMENT = "[]"
"""The last part of what is set by `x[...] = ...`."""


@dataclass
class Uses:
    """What some code uses.

    Attributes:
        reads: names and attribute chains, each as long as it is written; `*` where it may read any name.
        sets: the same, of what is set or deleted; `x.[]` for an element.
    """

    reads: set[str] = field(default_factory=set)
    sets: set[str] = field(default_factory=set)

    def __sub__(self, other: Uses) -> Uses:
        return Uses(self.reads - other.reads, self.sets - other.sets)

    def without(self, roots: Iterable[str]) -> Uses:
        """The same without what begins with one of these names."""
        gone = set(roots)
        return Uses(*({c for c in found if root(c) not in gone} for found in (self.reads, self.sets)))


def root(chain: str) -> str:
    """The name that a chain begins with."""
    return chain.partition(".")[0]


def uses(parts: Iterable[ast.AST]) -> Uses:
    """What some pieces of code use, nested functions included; names that an expression binds for itself are left out."""
    found = Uses()
    stack: list[tuple[ast.AST, frozenset[str]]] = [(part, frozenset()) for part in parts]
    while stack:
        node, own = stack.pop()
        own |= frozenset(shadowed(node))
        if isinstance(node, (ast.Name, ast.Attribute)) and (chain := dotted(node)):
            if root(chain) not in own:
                (found.reads if isinstance(node.ctx, ast.Load) else found.sets).add(chain)
            continue
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and (chain := dotted(node.value)):
            found.sets |= {f"{chain}.{ELEMENT}"} if root(chain) not in own else set()
            stack.append((node.slice, own))
            continue
        if isinstance(node, ast.AugAssign):
            found.reads |= {c for c in (dotted(node.target),) if c}
        if isinstance(node, ast.Call):
            _by_name(node, own, found)
        if not isinstance(node, (ast.Name, ast.arg)) and (name := binding(node)) is not None:
            found.sets.add(name[0])
        stack += [(child, own) for child in ast.iter_child_nodes(node)]
    return found


def _by_name(node: ast.Call, own: frozenset[str], found: Uses) -> None:
    """`getattr(x, "name")` and its like; `locals()`."""
    if not isinstance(node.func, ast.Name):
        return
    if node.func.id in _EVERY_NAME:
        found.reads.add("*")
    if node.func.id not in _BY_NAME or len(node.args) < 2:
        return
    chain, name = dotted(node.args[0]), node.args[1]
    if chain and root(chain) not in own and isinstance(name, ast.Constant) and isinstance(name.value, str):
        (found.sets if _BY_NAME[node.func.id] else found.reads).add(f"{chain}.{name.value}")


def met(used: Iterable[str], sets: Iterable[str]) -> list[str]:
    """What of `sets` somebody meets who uses these: the same, a part of it, or the whole that it is a part of.

    `self` as a whole is no such whole: whoever calls a method has it.
    """
    return sorted({s for s in sets for u in used if _touches(u, s)})


def _touches(used: str, stored: str) -> bool:
    if used == "*":
        return "." not in stored
    return used == stored or used.startswith(f"{stored}.") or (used not in _SELF and stored.startswith(f"{used}."))
