"""Import statements of manifests and owned parts as the needs that a module's import block is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.model import Code
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.model import ImportNeed
from afd_patchkit.source.syntax import bound_names, typing_block


@dataclass(frozen=True, slots=True)
class Part:
    """An owned file, taken apart.

    Attributes:
        path: as the user would type it.
        needs: its imports at the top.
        body: the rest, byte for byte.
        first_line: line of `body`'s first line in the file.
        names: what it defines at module level.
        future_annotations: whether it has the annotations future import.
        annotated: whether that import makes a difference to it.
    """

    path: str
    needs: tuple[ImportNeed, ...]
    body: str
    first_line: int
    names: frozenset[str]
    future_annotations: bool
    annotated: bool


def manifest_imports(codes: Iterable[Code]) -> tuple[ImportNeed, ...]:
    """The needs of a manifest's `imports`.

    Raises:
        ManifestError: one of them is not an import statement (PK020).
    """
    needs: list[ImportNeed] = []
    for code in codes:
        for node in ast.parse(code.text.strip()).body:
            found = import_needs(node)
            if not found:
                raise ManifestError(
                    finding("PK020", f"`{code.text.strip()}` is not an absolute import", manifest=code.position)
                )
            needs += found
    return tuple(needs)


def import_needs(node: ast.stmt, guard: str = "none") -> list[ImportNeed]:
    """The needs of one import statement; none for anything else, for relative and star imports."""
    if isinstance(node, ast.Import):
        return [ImportNeed(a.name, None, a.asname, guard) for a in node.names]  # type: ignore[arg-type]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module and all(a.name != "*" for a in node.names):
        return [ImportNeed(node.module, a.name, a.asname, guard) for a in node.names]  # type: ignore[arg-type]
    return []


def read_part(text: str, path: str, module: str) -> Part:
    """Take an owned file apart.

    Args:
        text: its text (LF).
        path: for findings.
        module: dotted name of the generated module: imports from it are dropped, the names are already there.

    Raises:
        ManifestError: it does not parse (PK020).
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ManifestError(
            finding(
                "PK020",
                f"the part is not Python: {error.msg}",
                manifest=Position(path, error.lineno or 1, error.offset or 1),
            )
        ) from error
    needs: list[ImportNeed] = []
    future = False
    body: Sequence[ast.stmt] = tree.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    start = 0
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            future = future or any(a.name == "annotations" for a in node.names)
        elif isinstance(node, ast.If) and typing_block(node.test) == "body" and not node.orelse:
            for inner in node.body:
                needs += import_needs(inner, "type_checking")
        elif import_needs(node):
            needs += import_needs(node)
        else:
            break
        start += 1
    rest = body[start:]
    lines = text.split("\n")
    first = min([rest[0].lineno, *(d.lineno for d in getattr(rest[0], "decorator_list", ()))]) if rest else len(lines)
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1  # the comment block above the first statement belongs to it
    needs = [need for need in needs if need.module != module]
    return Part(
        path,
        tuple(needs),
        "\n".join(lines[first - 1 :]).strip("\n") + "\n",
        first,
        frozenset(name for node in rest for name in bound_names(node, declared=True)),
        future,
        Analysis(list(rest)).annotated,
    )
