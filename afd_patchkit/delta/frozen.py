"""The `frozen` finding: delta code that repeats the upstream text it replaces hides what upstream adds there later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from afd_patchkit.delta.builder import Builder
from afd_patchkit.manifest.model import Code, Delta
from afd_patchkit.review.finding import Finding, Severity, finding

_LEAST = 6  # nodes of a repeated tree that is worth a finding: `self.model(x)` counts, `len(x)` does not


def frozen_findings(builder: Builder, deltas: Sequence[Delta]) -> Iterable[Finding]:
    """PK220 for every delta whose code repeats what it replaces; a note when the manifest says why."""
    for delta in deltas:
        code = delta.with_
        if delta.operation in ("replace", "expr", "member", "clause") and isinstance(code, Code):
            repeated = _repeated(builder, delta, code)
            if repeated:
                yield finding(
                    "PK220",
                    f"`with:` repeats upstream text that it replaces: {_short(repeated)}",
                    severity=Severity.NOTE if delta.frozen else None,
                    entry=builder.entry,
                    delta=delta.name,
                    manifest=code.position,
                    upstream=builder.symbol.position,
                    help=delta.frozen or "Keep it with `__upstream__` or `parts`, use `expr` or `call`, or say why in `frozen:`.",
                )
        if delta.deltas:
            yield from frozen_findings(builder, delta.deltas)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"`{line}`" if len(line) <= 60 else f"`{line[:57]}...`"


def _repeated(builder: Builder, delta: Delta, code: Code) -> str | None:
    replaced: set[str] = set()
    for edit in builder.edits:
        if edit.delta != delta.name or edit.touched is None:
            continue
        for node in ast.walk(ast.Module(list(builder.symbol.nodes), [])):
            if isinstance(node, (ast.stmt, ast.expr)) and edit.span.contains(builder.file.node_span(node)):
                if sum(1 for _ in _counted(node)) >= _LEAST:
                    replaced.add(ast.dump(node))
    if not replaced:
        return None
    for tree in _trees(code):
        for node in ast.walk(tree):  # breadth first: the largest repetition is met first
            if isinstance(node, (ast.stmt, ast.expr)) and ast.dump(node) in replaced:
                return ast.unparse(node)
    return None


def _counted(node: ast.AST) -> Iterable[ast.AST]:
    return (n for n in ast.walk(node) if not isinstance(n, (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)))


def _trees(code: Code) -> list[ast.AST]:
    text = code.text.strip("\n")
    for source in (text, f"({text.strip()}\n)", f"if 1:\n    pass\n{text}", f"try:\n    pass\n{text}"):
        try:
            return [ast.parse(source)]
        except SyntaxError:
            continue
    return []
