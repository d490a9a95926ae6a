"""Whether two texts differ by nothing but names that upstream gave to what it had before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from afd_patchkit.source.facts import names_bound
from afd_patchkit.source.locate import Symbol, definitions
from afd_patchkit.source.syntax import DEFINITION, same
from afd_patchkit.source.text import SourceFile, Span

_NAMES = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr"}
"""The field of a node that holds a name which may be another one."""
Pairs = dict[tuple[bool, str], str]
"""Old names, of attributes or not, and the new ones."""


def renamed(old: Symbol, before: Span, new: Symbol, after: Span) -> Mapping[str, str] | None:
    """What upstream renamed in some text of a symbol, when nothing else has changed there; else None.

    A local name is renamed when the old one is bound no more and the new one was not bound before; a function, class or method when
    the file defines the same thing under the new name alone.

    Args:
        old: the symbol before.
        before: bytes of it.
        new: the symbol now.
        after: what the bytes have become.
    """
    pairs: Pairs = {}
    if not _alike(list(_nodes(old, before)), list(_nodes(new, after)), pairs):
        return None
    was, now = (names_bound([part for n in side.nodes for part in ast.iter_child_nodes(n)]) for side in (old, new))
    found = {one: other for (_, one), other in pairs.items() if one != other}
    for (attribute, one), other in pairs.items():
        local = not attribute and one in was and one not in now and other in now and other not in was
        if one != other and not local and not _defined(old.file, new.file, one, other):
            return None
    return found or None


def _nodes(symbol: Symbol, span: Span) -> Iterator[ast.AST]:
    """The outermost nodes that lie in `span`."""
    stack: list[ast.AST] = list(reversed(symbol.nodes))
    while stack:
        node = stack.pop()
        if hasattr(node, "lineno") and span.contains(symbol.file.node_span(node)):
            yield node
        else:
            stack += reversed(list(ast.iter_child_nodes(node)))


def _alike(one: object, other: object, pairs: Pairs) -> bool:
    """Whether two trees differ in names only, each of which always became the same one."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_alike(a, b, pairs) for a, b in zip(one, other, strict=True))
    if not isinstance(one, ast.AST) or not isinstance(other, ast.AST) or type(one) is not type(other):
        return same(one, other)
    named = _NAMES.get(type(one))
    for field in one._fields:
        a, b = getattr(one, field, None), getattr(other, field, None)
        if field == named and isinstance(a, str) and isinstance(b, str):
            if pairs.setdefault((isinstance(one, ast.Attribute), a), b) != b:
                return False
        elif field != "ctx" and not _alike(a, b, pairs):
            return False
    return True


def _defined(old: SourceFile, new: SourceFile, one: str, other: str) -> bool:
    """Whether the new file defines as `other`, and not as `one`, what the old one defined as `one`, and not as `other`."""
    was, gone = _definitions(old, one), _definitions(old, other)
    lost, now = _definitions(new, one), _definitions(new, other)
    return bool(was) and not gone and not lost and len(was) == len(now) and all(map(_same_but_name, was, now))


def _definitions(file: SourceFile, name: str) -> Sequence[Any]:
    return [d.node for d in definitions(file) if d.name == name and isinstance(d.node, DEFINITION)]


def _same_but_name(one: Any, other: Any) -> bool:
    fields = [f for f in one._fields if f != "name"]
    return type(one) is type(other) and all(same(getattr(one, f, None), getattr(other, f, None)) for f in fields)
