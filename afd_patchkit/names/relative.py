"""Relative imports inside bodies become absolute and stay where they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from afd_patchkit.names.bindings import absolute_module
from afd_patchkit.names.model import NameEdit
from afd_patchkit.source.syntax import nodes as below
from afd_patchkit.source.text import SourceFile, Span, Text

_GAP = r"(?:[ \t\f]|\\\n)"
_WORD = r"[^\W\d]\w*"
_FROM = re.compile(rf"from({_GAP}*)((?:\.{_GAP}*)*\.(?:{_GAP}*{_WORD}(?:{_GAP}*\.{_GAP}*{_WORD})*)?)({_GAP}*)import\b")

Relative = tuple[int, str | None]


def relative_imports(nodes: Iterable[ast.AST]) -> list[ast.ImportFrom]:
    """The relative import statements below `nodes`, in order of the text."""
    found = [n for n in below(*nodes) if isinstance(n, ast.ImportFrom) and n.level]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def absolute_edits(
    nodes: Iterable[ast.AST], text: Text, file: SourceFile, known: Collection[Relative] | None
) -> tuple[list[NameEdit], list[ast.ImportFrom]]:
    """Edits that make relative imports absolute, and the imports that cannot be changed.

    Args:
        nodes: statements of `text`.
        text: the text.
        file: the upstream file that the imports are relative to.
        known: level and module of upstream's own relative imports; others are refused. None: all are upstream's.
    """
    edits: list[NameEdit] = []
    refused: list[ast.ImportFrom] = []
    for node in relative_imports(nodes):
        module = absolute_module(file, node.module, node.level)
        span = text.node_span(node)
        match = _FROM.match(text.slice(span))
        if module is None or match is None or (known is not None and (node.level, node.module) not in known):
            refused.append(node)
            continue
        before, written, after = match.group(1), match.group(2), match.group(3)
        start = span.start + len("from" + before)
        new = f"{'' if before else ' '}{module}{'' if after else ' '}"
        edits.append(NameEdit(Span(start, start + len(written.encode("utf-8"))), new, module, "relative import"))
    return edits, refused
