"""Comparing and rebuilding `ast` trees, without positions."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

_IGNORED = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def same(one: Any, other: Any) -> bool:
    """Whether two trees mean the same to Python: positions, contexts and string prefixes aside."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        return all(
            same(getattr(one, name, None), getattr(other, name, None)) for name in one._fields if name not in _IGNORED
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)  # `1 == True` and `0.0 == -0.0`, but they are not the same code


def filled(root: Node, new: Mapping[int, ast.AST]) -> Node:
    """A copy of `root` in which the nodes with the given ids are replaced; what is not on the way to them is shared."""
    found = _filled(root, new)
    return root if found is None else found  # type: ignore[return-value]


def _filled(node: ast.AST, new: Mapping[int, ast.AST]) -> ast.AST | None:
    """The changed copy, or None where nothing changes."""
    if id(node) in new:
        return new[id(node)]
    changed: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            copy = _filled(value, new)
            if copy is not None:
                changed[name] = copy
        elif isinstance(value, list):
            copies = [_filled(item, new) if isinstance(item, ast.AST) else None for item in value]
            if any(item is not None for item in copies):
                changed[name] = [old if item is None else item for old, item in zip(value, copies, strict=True)]
    if not changed:
        return None
    fields = dict(ast.iter_fields(node)) | changed
    copy_of = type(node)(**fields)
    return ast.copy_location(copy_of, node) if hasattr(node, "lineno") else copy_of
