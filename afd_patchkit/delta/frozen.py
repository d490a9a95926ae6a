"""The `frozen` finding: delta code that repeats the upstream text it replaces hides what upstream changes there later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from afd_patchkit.delta.builder import Builder
from afd_patchkit.findings.finding import Finding, Severity, finding
from afd_patchkit.model import Code, Delta
from afd_patchkit.source.keywords import frames
from afd_patchkit.source.stdlib import BUILTINS
from afd_patchkit.source.syntax import same
from afd_patchkit.source.text import Span

# names, attributes, constants and keywords that a repeated piece must hold to be worth a finding
_STATEMENT, _EXPRESSION, _BUILTIN_CALL = 4, 4, 6
_PIECES = (ast.Compare, ast.BinOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Dict,
           ast.JoinedStr)  # fmt: skip


def frozen_findings(builder: Builder, deltas: Sequence[Delta]) -> Iterable[Finding]:
    """PK220 for every delta whose code repeats what it replaces; a note when the manifest says why."""
    for delta in deltas:
        for code, spans in _replacements(builder, delta):
            found = _repeated(builder, code, spans, whole=delta.does.repeats == "expressions")
            if found:
                yield finding(
                    "PK220",
                    f"the new code repeats upstream text that it replaces: {_short(found)}",
                    severity=Severity.NOTE if delta.frozen else None,
                    entry=builder.entry,
                    delta=delta.name,
                    manifest=code.position,
                    upstream=builder.file.position(builder.file.node_span(found).start),
                    help=delta.frozen
                    or "Keep it with `__upstream__` or `parts`, use `expr` or `call`, or say why in `frozen:`.",
                )
                break
        yield from frozen_findings(builder, delta.deltas)


def _replacements(builder: Builder, delta: Delta) -> Iterator[tuple[Code, list[Span]]]:
    """Code of a delta, and the upstream text that each replaces."""
    edits = [edit for edit in builder.edits if edit.delta == delta.name and edit.touched is not None]
    if isinstance(delta.with_, Code) and delta.does.repeats == "with":
        yield delta.with_, [edit.span for edit in edits if len(edit.span)]
    elif delta.does.repeats == "expressions":
        swapped = {edit.id: edit.span for edit in edits}
        for number, code in builder.swapped():
            if number in swapped:
                yield code, [swapped[number]]


def _repeated(builder: Builder, code: Code, spans: Sequence[Span], *, whole: bool) -> ast.expr | ast.stmt | None:
    """The upstream node that `code` repeats, if it does."""
    replaced = [node for node in _nodes(builder) if any(s.contains(builder.file.node_span(node)) for s in spans)]
    entire = [n for n in replaced if any(builder.file.node_span(n) == s for s in spans)] if whole else []
    calls = [node for node in replaced if isinstance(node, ast.Call)]
    tests = [node for node in replaced if isinstance(node, ast.BoolOp)]
    for new in (n for tree in _trees(code) for n in ast.walk(tree)):  # breadth first: the largest is met first
        old = next((node for node in replaced if same(node, new)), None)
        if old is not None and (_weighs(old) or (not _plain(old) and any(same(node, new) for node in entire))):
            return old
        near: ast.expr | None = None
        if isinstance(new, ast.Call):
            near = next((call for call in calls if _repeats_call(new, call)), None)
        elif isinstance(new, ast.BoolOp):
            near = next((test for test in tests if _repeats_test(new, test)), None)
        if near is not None:
            return near
    return None


def _nodes(builder: Builder) -> Iterator[ast.expr | ast.stmt]:
    for part in builder.symbol.nodes:
        for node in ast.walk(part):
            if isinstance(node, (ast.expr, ast.stmt)):
                yield node


def _plain(node: ast.AST) -> bool:
    """A name, constant or chain of attributes: nothing that upstream could change without breaking the anchor."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, (ast.Name, ast.Constant))


def _leaves(node: ast.AST) -> int:
    return sum(isinstance(n, (ast.Name, ast.Attribute, ast.Constant, ast.keyword)) for n in ast.walk(node))


def _weighs(node: ast.AST) -> bool:
    """Whether an equal piece says enough to be called a repetition."""
    if isinstance(node, ast.stmt):
        return _leaves(node) >= _STATEMENT and not (
            isinstance(node, ast.Return) and (node.value is None or _plain(node.value))
        )
    if isinstance(node, ast.Call):
        least = _BUILTIN_CALL if isinstance(node.func, ast.Name) and node.func.id in BUILTINS else 0
        return bool(node.args or node.keywords) and _leaves(node) >= least
    return isinstance(node, _PIECES) and _leaves(node) >= _EXPRESSION


def _repeats_call(new: ast.Call, old: ast.Call) -> bool:
    """Whether a call is the old one with some arguments changed, added or dropped."""
    if not same(new.func, old.func) or (isinstance(old.func, ast.Name) and old.func.id in BUILTINS):
        return False
    count = len(old.args) + len(old.keywords)
    positions = [same(a, b) for a, b in zip(new.args, old.args, strict=False)]
    given = {k.arg: k.value for k in new.keywords}
    shared = sum(positions) + sum(same(given.get(k.arg), k.value) for k in old.keywords)
    if old.args and not (positions and positions[0]):
        return False  # about something else
    return shared >= (1 if old.args else 2) and 2 * shared >= count


def _repeats_test(new: ast.BoolOp, old: ast.BoolOp) -> bool:
    """Whether a condition is the old one with operands changed, added or dropped."""
    if type(new.op) is not type(old.op):
        return False
    shared = [value for value in new.values if any(same(value, other) for other in old.values)]
    return len(shared) >= 2 and sum(map(_leaves, shared)) >= _EXPRESSION


def _short(node: ast.AST) -> str:
    line = " ".join(ast.unparse(node).split())
    return f"`{line}`" if len(line) <= 60 else f"`{line[:57]}...`"


def _trees(code: Code) -> list[ast.AST]:
    text = code.text.strip("\n")
    for source in (f"({text.strip()}\n)", *(frame.text for frame in frames(text))):
        try:
            return [ast.parse(source)]
        except SyntaxError:
            continue
    return []
