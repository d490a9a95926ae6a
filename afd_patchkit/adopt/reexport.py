"""A hand file whose copies are generated now: it passes them on."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst


class _Without(cst.CSTTransformer):
    """Takes functions at the top of the file out, with the comments above them."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self.names = names

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        return cst.RemoveFromParent() if original_node.name.value in self.names else updated_node


def reexported(text: str, names: Collection[str], module: str) -> str:
    """The file with its functions `names` imported from the generated module.

    Args:
        text: the file.
        names: the functions, each at the top of the file.
        module: the generated module as it is imported.
    """
    tree = cst.parse_module(text).visit(_Without(names))
    assert isinstance(tree, cst.Module)
    line = cst.parse_statement(f"from {module} import {', '.join(sorted(names))}\n")
    at = max((n for n, s in enumerate(tree.body, 1) if _imports(s)), default=0)
    made = tree.with_changes(body=[*tree.body[:at], line, *tree.body[at:]])
    return made.code


def _imports(node: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], (cst.Import, cst.ImportFrom))
