"""What a method takes from its class without saying so: `super()`, `__class__`, class-scope names."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.names.analysis import Analysis, mangle
from afd_patchkit.names.bindings import Site, class_sites
from afd_patchkit.names.follow import class_members, find_class
from afd_patchkit.names.model import NameContext
from afd_patchkit.names.scope import Scope, Use
from afd_patchkit.names.spans import correct
from afd_patchkit.source.locate import dotted, first_line
from afd_patchkit.source.text import Span, Text

# ---- super() ----------------------------------------------------------------------------------------------------


def super_calls(nodes: Iterable[ast.stmt]) -> dict[int, ast.Call]:
    """Zero-argument `super()` calls, by the identity of their `super` name node."""
    return {
        id(node.func): node
        for statement in nodes
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and not node.args
        and not node.keywords
    }


def first_argument(use: Use, analysis: Analysis) -> str | None:
    """The name of the first argument that `super()` would take at `use`; None when there is none that can be named."""
    for scope in use.scope.chain():
        if scope.kind in {"function", "lambda"}:
            arguments = scope.node.args  # type: ignore[union-attr]
            positional: list[ast.arg] = [*arguments.posonlyargs, *arguments.args]
            if not positional:
                return None
            name = mangle(positional[0].arg, scope.private)
            return name if _binder(name, use.scope) is scope else None
        if scope.kind in {"class", "outer"}:
            return None
    return None


def _binder(name: str, scope: Scope) -> Scope | None:
    for around in scope.chain():
        if around.is_function and name in around.bound:
            return around
    return None


def call_span(call: ast.Call, use: Use, text: Text) -> Span:
    """The bytes of a call (right inside f-strings too)."""
    correct(text, use.fstring)
    return text.node_span(call)


# ---- names of the class scope -----------------------------------------------------------------------------------


def class_scope(context: NameContext, name: str) -> tuple[bool, Finding | None]:
    """Whether the header of a member reads `name` from the class around it, and why that cannot be expressed, if so.

    Args:
        context: the entry; its symbol is a member of a class.
        name: the name as Python looks it up.
    """
    symbol = context.symbol
    cls = symbol.classes[-1]
    sites = [s for n, found in class_sites(symbol.file, cls).items() if mangle(n, cls.name) == name for s in found]
    line = first_line(symbol.node)
    above = [site for site in sites if _line(site) < line and site.node not in symbol.nodes]
    if not above:
        return False, None
    why = _not_reachable(cls, sites, above)
    if why is None and context.kind == "backport":
        there = find_class(context.target, symbol.file.module, ".".join(c.name for c in symbol.classes))
        if there is not None and name not in class_members(context.target, there).names:
            why = f"the target's {there.reference} has no such name"
    if why is None:
        return True, None
    return True, finding(
        "PK307",
        f"`{name}` in the header of {symbol.reference} is a name of the class body, but {why}",
        upstream=symbol.position,
        help="Say what is meant: a `parameter` or `decorator` delta, or `rebind`.",
    )


def _not_reachable(cls: ast.ClassDef, sites: list[Site], above: list[Site]) -> str | None:
    if len(sites) > 1 and not _group(sites):
        return "the class binds it more than once"
    node = above[-1].node
    if any(dotted(base).rpartition(".")[2] in {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"} for base in cls.bases):
        return "the class is an Enum, so the attribute is a member and not the value"
    value = getattr(node, "value", None)
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in {"field", "Field"}:
        return "it is a field there, which the class decorator replaces"
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__slots__" for t in node.targets):
        return "it is a slot"
    return None


def _group(sites: list[Site]) -> bool:
    """Overloads, or a property with its setters: the class keeps the last one under the name."""
    return all(site.kind == "def" for site in sites)


def _line(site: Site) -> int:
    node = site.node
    return first_line(node) if isinstance(node, ast.stmt) else 0
