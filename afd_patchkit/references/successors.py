"""What something that is gone may have become."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from afd_patchkit.references.contract import nameless
from afd_patchkit.references.things import FunctionNode
from afd_patchkit.references.world import World
from afd_patchkit.source.text import SourceFile


def successors(world: World, contract: Mapping[str, Any]) -> list[str]:
    """Definitions with the same text but for the name, where the old one was, best first.

    Args:
        world: the new trees.
        contract: the old contract, as the lock has it.
    """
    module, _, qualname = str(contract.get("origin", "")).partition(":")
    body = contract.get("body")
    if not qualname or body is None or not world.trees.has(module):
        return []
    file = world.trees.read(module)
    found = [name for name, node in _definitions(file) if nameless(file, node) == body]
    around = qualname.rpartition(".")[0]
    return [f"{module}:{n}" for n in sorted(found, key=lambda n: (n.rpartition(".")[0] != around, n))]


def _definitions(file: SourceFile) -> Iterator[tuple[str, FunctionNode | ast.ClassDef]]:
    for node in file.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield f"{node.name}.{inner.name}", inner  # type: ignore[attr-defined]
