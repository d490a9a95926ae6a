"""Code of a delta that can never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.delta.edits import Edit
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.source.syntax import blocks, branches
from afd_patchkit.source.text import Text, parse_quietly


def unreachable(body: Buffer, edits: Sequence[Edit], entry: str) -> Iterator[Finding]:
    """Findings for statements of deltas behind one that never goes on: `return`, `raise`, an endless loop.

    Args:
        body: the text of the entry, dedented.
        edits: its edits.
        entry: `module.py::name`, for findings.
    """
    try:
        tree = parse_quietly(body.text)
    except (SyntaxError, ValueError, RecursionError):
        return
    text = Text(body.text.encode())
    by_id = {edit.id: edit for edit in edits}
    said: set[str] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        for block in blocks(node):
            stack += block.body
            end = next((i for i, statement in enumerate(block.body) if ends(statement)), len(block.body))
            for dead in block.body[end + 1 :]:
                edit = _writer(body, text, dead, by_id)
                if edit is not None and edit.delta not in said:
                    said.add(edit.delta)
                    before = block.body[end]
                    yield finding(
                        "PK225",
                        f"the code of the delta can never run: it stands behind `{_first_line(text, before)}`",
                        entry=entry,
                        delta=edit.delta,
                        manifest=edit.where,
                        help="Insert it `before` that statement.",
                    )


def _writer(body: Buffer, text: Text, node: ast.stmt, by_id: dict[int, Edit]) -> Edit | None:
    """The edit that wrote the beginning of a statement; None for upstream's own."""
    start = len(text.data[: text.node_span(node).start].decode())
    for at, run in body.positioned():
        if at <= start < at + len(run.text):
            return by_id.get(run.edits[0]) if run.file is None and run.edits else None
    return None


def _first_line(text: Text, node: ast.stmt) -> str:
    return text.slice(text.node_span(node)).split("\n")[0]


def ends(node: ast.stmt) -> bool:
    """Whether control never goes on behind a statement."""
    if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return True
    if isinstance(node, ast.While):
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return endless and not any(isinstance(n, ast.Break) for n in ast.walk(node))
    ways = branches(node)
    return (bool(ways) and all(map(_ends, ways))) or _ends(getattr(node, "finalbody", ()))


def _ends(body: Sequence[ast.stmt]) -> bool:
    return any(ends(statement) for statement in body)
