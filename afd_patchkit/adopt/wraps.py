"""What a replacement keeps of the text that it replaces: a run as a whole, with changes inside, or pieces of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from afd_patchkit.copies.canonical import key
from afd_patchkit.copies.difference import Contrast, HandBlock, compare_runs, heads
from afd_patchkit.source.syntax import blocks


@dataclass
class KeptText:
    """What new statements keep of old ones.

    Attributes:
        names: canonical new nodes, by id: the placeholder that stands for each; empty for the rest of a run.
        parts: placeholder, to the old node that it stands for.
        inner: changes inside what is kept as a whole.
    """

    names: dict[int, str] = field(default_factory=dict)
    parts: dict[str, ast.AST] = field(default_factory=dict)
    inner: list[Contrast] = field(default_factory=list)


def kept_as_a_whole(base: Sequence[ast.stmt], wanted: Sequence[ast.stmt], suite: HandBlock, at: int) -> KeptText | None:
    """The old run stands somewhere in the new statements: exactly, maybe several times, or once with changes inside.

    Args:
        base: the old statements.
        wanted: the new ones.
        suite: upstream's block of the old ones.
        at: index of the first of them in it.
    """
    keys = [key(s) for s in base]
    kept = KeptText()
    for run in runs(wanted):
        for index in range(len(run) - len(keys) + 1):
            if [key(s) for s in run[index : index + len(keys)]] == keys:
                _name(kept, run[index : index + len(keys)])
    if kept.names:
        return kept
    return _changed(base, wanted, suite, at)


def _name(kept: KeptText, run: Sequence[ast.stmt]) -> None:
    kept.names[id(run[0])] = "__upstream__"
    kept.names.update((id(s), "") for s in run[1:])


def _changed(base: Sequence[ast.stmt], wanted: Sequence[ast.stmt], suite: HandBlock, at: int) -> KeptText | None:
    best: tuple[int, KeptText] | None = None
    whole = sum(1 for s in base for n in ast.walk(s) if isinstance(n, ast.AST))
    for run in runs(wanted, inner_only=True):
        for index in range(len(run) - len(base) + 1):
            here = run[index : index + len(base)]
            if not all(type(a) is type(b) for a, b in zip(base, here, strict=True)):
                continue
            changes = compare_runs(base, here, suite, at)
            if any(c.suite is suite and c.sort in ("insert", "remove", "replace") for c in changes):
                continue
            cost = sum(sum(1 for n in ast.walk(s)) for c in changes for s in (*c.base, *c.wanted))
            cost = sum(_cost(c) for c in changes) if changes else cost
            if cost <= whole * 0.6 and (best is None or cost < best[0]):
                kept = KeptText(inner=changes)
                _name(kept, here)
                best = cost, kept
    return best[1] if best else None


def _cost(change: Contrast) -> int:
    if change.sort in ("statement", "head"):
        one, two = heads(change.base[0]), heads(change.wanted[0])
        return 2 * (sum(len(set(a.split(",")) ^ set(b.split(","))) for a, b in zip(one, two, strict=False)) // 2 + 2)
    return sum(sum(1 for _ in ast.walk(s)) for s in (*change.base, *change.wanted))


def kept_in_pieces(base: Sequence[ast.stmt], wanted: Sequence[ast.stmt], suite: HandBlock) -> KeptText:
    """Old statements, and calls in them, that stand in the new ones, each by a name of its own; a call may have changed inside.

    Args:
        base: the old statements.
        wanted: the new ones.
        suite: upstream's block of the old ones.
    """
    kept = KeptText()
    old: dict[str, ast.AST] = {}
    counts: dict[str, int] = {}
    for statement in base:
        for node in ast.walk(statement):
            if isinstance(node, (ast.stmt, ast.expr)) and _worth(node):
                old.setdefault(key(node), node)
                counts[key(node)] = counts.get(key(node), 0) + 1
    stack: list[ast.AST] = [*reversed(wanted)]
    names: dict[str, str] = {}
    while stack:
        node = stack.pop()
        text = key(node) if isinstance(node, (ast.stmt, ast.expr)) else ""
        if text in old and counts[text] == 1 and type(old[text]) is type(node):
            name = names.setdefault(text, f"__part{len(names) + 1}__")
            kept.names[id(node)] = name
            kept.parts[name.strip("_")] = old[text]
            continue
        near = _changed_call(node, base, kept)
        if near is not None:
            name = f"__part{len(names) + 1}__"
            names[text] = kept.names[id(node)] = name
            kept.parts[name.strip("_")] = near
            kept.inner.append(Contrast("statement", (near,), (node,), suite, 0))  # type: ignore[arg-type]
            continue
        stack += list(ast.iter_child_nodes(node))[::-1]
    return kept


def _changed_call(node: ast.AST, base: Sequence[ast.stmt], kept: KeptText) -> ast.stmt | None:
    """The one old statement that is this one but for arguments of its call."""
    shape = _call_shape(node)
    if shape is None:
        return None
    found = [n for s in base for n in ast.walk(s) if isinstance(n, ast.stmt) and _call_shape(n) == shape]
    taken = {id(n) for n in kept.parts.values()}
    return found[0] if len(found) == 1 and id(found[0]) not in taken else None


def _call_shape(node: ast.AST) -> str | None:
    """What a statement does with which call, its arguments aside."""
    value = getattr(node, "value", None)
    if (
        not isinstance(node, (ast.Assign, ast.Expr, ast.Return))
        or not isinstance(value, ast.Call)
        or not (value.args or value.keywords)
    ):
        return None
    targets = [key(t) for t in node.targets] if isinstance(node, ast.Assign) else []
    return f"{type(node).__name__} {targets} {key(value.func)}"


def _worth(node: ast.AST) -> bool:
    if isinstance(node, (ast.Pass, ast.Break, ast.Continue)):
        return False
    leaves = sum(isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.keyword)) for n in ast.walk(node))
    if isinstance(node, ast.stmt):
        return leaves >= 3
    if isinstance(node, ast.Call):
        return bool(node.args or node.keywords) and leaves >= 2
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp, ast.IfExp, ast.ListComp, ast.GeneratorExp, ast.Dict,
                             ast.DictComp, ast.SetComp, ast.Lambda, ast.JoinedStr)) and leaves >= 3  # fmt: skip


def runs(statements: Sequence[ast.stmt], *, inner_only: bool = False) -> Iterator[Sequence[ast.stmt]]:
    """The statement lists of some statements, their own and all below."""
    if not inner_only:
        yield statements
    for statement in statements:
        for block in blocks(statement):
            yield from runs(block.body)
