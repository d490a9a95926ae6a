"""Whether upstream already has what a delta does."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from afd_patchkit.model import Code, Delta
from afd_patchkit.source.signature import signature
from afd_patchkit.source.text import SourceFile, load_source
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upgrade.align import Alignment
from afd_patchkit.upgrade.dropped import heir
from afd_patchkit.upgrade.merge import line_digests
from afd_patchkit.upgrade.sides import LineDiff, own_part

Answer = Literal["no", "partly", "all"]
_TRIVIAL = 3  # tokens; `pass`, `else`, `return x` stand everywhere


def units(nodes: Sequence[ast.stmt], file: SourceFile) -> Counter[str]:
    """The statements of a definition (headers for blocks), its parameters, decorators and return annotation, as tokens."""
    return Counter(_units(nodes, file))


def _units(nodes: Sequence[ast.stmt], file: SourceFile) -> Iterator[str]:
    for root in nodes:
        if isinstance(root, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found = signature(root, file)
            yield from (f"parameter {p}" for p in found.parameters)
            yield from (f"decorator @{d}" for d in found.decorators)
            if found.returns:
                yield f"returns -> {found.returns}"
        for node in ast.walk(root):
            if isinstance(node, ast.stmt) and node is not root:
                yield _unit(node, file)


def _unit(node: ast.stmt, file: SourceFile) -> str:
    return " ".join(t.text for t in significant(tokens_in(file, own_part(file, node))))


def absorbed(patched: str, alignment: Alignment) -> Answer:
    """Whether what a delta added to the old text (giving `patched`) is new in the new one, too, and what it took away is gone.

    What it took away and upstream rewrote is not gone.
    """
    base, new = alignment.base.symbol, alignment.new.symbol
    file = load_source(patched.encode(), pin="", path="patched.py")
    try:
        ours = units(file.tree.body, file)
    except Exception:  # a delta whose result does not parse alone is judged by other means
        return "no"
    before, now = units(base.nodes, base.file), units(new.nodes, new.file)
    plus, minus = ours - before, before - ours
    if not plus and not minus:
        return "no"
    there = [u for u in plus if now[u] >= ours[u]]
    gone = [u for u in minus if now[u] <= ours[u]]
    whole = len(there) == len(plus) and len(gone) == len(minus) and not _rewritten(minus, plus, now - before, alignment)
    if whole and any(_telling(u) for u in (*plus, *minus)):
        return "all"
    return "partly" if any(_telling(u) for u in there) else "no"


def _rewritten(minus: Counter[str], plus: Counter[str], more: Counter[str], alignment: Alignment) -> bool:
    """Whether upstream has something else in place of what the delta takes away.

    Args:
        minus: what the delta takes away.
        plus: what it adds.
        more: what upstream has added.
        alignment: of the two texts.
    """
    for word in ("parameter", "decorator", "returns"):
        if any(u.startswith(f"{word} ") for u in minus) and any(u.startswith(f"{word} ") for u in more - plus):
            return True
    for statement in alignment.base.by_id.values():
        if statement.parent is not None and _unit(statement.node, alignment.base.file) in minus:
            became = heir(statement.node, alignment)
            unit = _unit(became.node, alignment.new.file) if became is not None else None
            if unit is not None and unit in more - plus:
                return True
    return False


def absorbed_lines(delta: Delta, lines: LineDiff) -> Answer:
    """The same from line digests alone, for deltas that add statements of their own."""
    codes = [c for c in (delta.insert, delta.with_) if isinstance(c, Code)]
    if not delta.does.takes or not codes:
        return "no"
    wanted = [t for t in codes[0].text.split("\n") if t.strip() and "__" not in t]
    digests = line_digests(wanted)
    old, new = Counter(lines.old), Counter(lines.new)
    there = [t for t, d in zip(wanted, digests, strict=True) if new[d] > old[d]]
    if wanted and len(there) == len(wanted):
        return "all"
    return "partly" if any(_telling(t) for t in there) else "no"


def _telling(unit: str) -> bool:
    return len(unit.split()) >= _TRIVIAL or "(" in unit
