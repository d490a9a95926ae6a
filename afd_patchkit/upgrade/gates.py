"""What our own code asks of the new target: imports that are there, calls that bind to upstream's signatures."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from afd_patchkit.assemble.imports import Part
from afd_patchkit.assemble.module import Attempt
from afd_patchkit.assemble.workspace import Workspace
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.names.follow import binds, class_members, find_class, find_definition
from afd_patchkit.names.model import ImportNeed
from afd_patchkit.source.locate import dotted
from afd_patchkit.source.text import parse_quietly
from afd_patchkit.upstream.base import Upstream

_TRANSPARENT = frozenset({
    "staticmethod", "classmethod", "contextmanager", "contextlib.contextmanager", "asynccontextmanager", "abstractmethod",
    "contextlib.asynccontextmanager", "abc.abstractmethod", "functools.cache", "cache", "override", "typing.override",
    "torch.inference_mode", "torch.no_grad", "final", "typing.final",
})  # fmt: skip
"""Decorators that leave the parameters as they are."""

Names = Mapping[str, tuple[str, str | None]]


def gate(
    attempts: Sequence[Attempt],
    imports: Sequence[ImportNeed],
    parts: Mapping[str, Part],
    workspace: Workspace,
    pin: str,
) -> Iterator[Finding]:
    """Findings about one module's own code against the target pin `pin`, each with its entry."""
    moved = workspace.pins.pins[pin]
    if moved.role != "target":
        return
    packages = moved.import_packages
    try:
        upstream = workspace.upstream(pin)
        upstream.modules()
    except PatchkitError:
        return
    for attempt in attempts:
        if attempt.generated is None:
            continue
        part = parts.get(attempt.entry.part) if attempt.entry.part else None
        plan = attempt.generated.plan
        needs = [*(part.needs if part else imports), *(plan.imports if plan else ())]
        text = attempt.generated.body.text
        yield from _imports(attempt, part.needs if part else imports, text, upstream, packages)
        names = {n.bound: (n.module, n.attribute) for n in needs if n.module.split(".")[0] in packages}
        yield from _calls(attempt, names, upstream)


def _imports(
    attempt: Attempt, needs: Sequence[ImportNeed], text: str, upstream: Upstream, packages: Sequence[str]
) -> Iterator[Finding]:
    used = {n.id for n in ast.walk(_tree(text)) if isinstance(n, ast.Name)}
    for need in needs:
        if need.guard != "none" or need.module.split(".")[0] not in packages or need.bound not in used:
            continue
        try:
            there = binds(upstream, need.module, need.attribute)
        except PatchkitError:
            continue
        if not there:
            yield finding(
                "PK534",
                f"`{need.statement()}`: the target has no such thing",
                entry=attempt.ref,
                manifest=attempt.entry.where,
                help="Import what replaced it, or change the code that uses it.",
            )


def _tree(text: str) -> ast.AST:
    try:
        return parse_quietly(textwrap.dedent(text))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _calls(attempt: Attempt, names: Names, upstream: Upstream) -> Iterator[Finding]:
    generated = attempt.generated
    assert generated is not None
    text = generated.body.text
    lines = _our_lines(attempt)
    for node in ast.walk(_tree(text)):
        if not isinstance(node, ast.Call) or not any(n in lines for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)):
            continue
        try:
            callee = _callee(attempt, node, names, upstream)
        except PatchkitError:
            continue
        if callee is None:
            continue
        function, bound = callee
        problem = _misfit(node, function, bound=bound)
        if problem:
            yield finding(
                "PK533",
                f"the call of {ast.unparse(node.func)} does not fit its signature: {problem}",
                entry=attempt.ref,
                manifest=attempt.entry.where,
                details=(f"def {function.name}({ast.unparse(function.args)})",),
                generated=Position(attempt.ref.partition("::")[0]),
                help="Change the call in the delta (or part) to the new signature.",
            )


def _our_lines(attempt: Attempt) -> set[int]:
    """Lines of the entry that deltas, parts or delegates wrote."""
    assert attempt.generated is not None
    found = set()
    for number, runs in enumerate(attempt.generated.body.split_lines(), 1):
        if any(run.file is None and run.label in ("delta", "owned") and run.text.strip() for run in runs):
            found.add(number)
    return found


def _callee(
    attempt: Attempt, call: ast.Call, names: Names, upstream: Upstream
) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool] | None:
    """The upstream function that a call reaches, and whether its first argument is bound; None where that is not clear."""
    func = call.func
    if isinstance(func, ast.Name) and func.id in names:
        module, attribute = names[func.id]
        found = find_definition(upstream, module, attribute)
        if found is not None and isinstance(found.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return (found.node, False) if _plain(found.node) else None
        return None
    symbol = attempt.generated.symbol if attempt.generated else None
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or func.value.id != "self":
        return None
    if symbol is None or not symbol.classes or (attempt.group and _own_member(attempt, func.attr)):
        return None
    cls = find_class(upstream, symbol.file.module, ".".join(c.name for c in symbol.classes))
    if cls is None:
        return None
    node = class_members(upstream, cls).names.get(func.attr)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _plain(node):
        static = any(dotted(d) == "staticmethod" for d in node.decorator_list)
        return node, not static
    return None


def _own_member(attempt: Attempt, name: str) -> bool:
    assert attempt.group is not None
    return any(m.generated_name == name for m in attempt.group.members)


def _plain(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(dotted(d.func if isinstance(d, ast.Call) else d) in _TRANSPARENT for d in node.decorator_list)


def _misfit(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> str | None:
    """Why a call cannot bind, or None; with `*` or `**` in the call only unknown keywords can be seen."""
    a = function.args
    positional = [p.arg for p in (*a.posonlyargs, *a.args)]
    only = {p.arg for p in a.posonlyargs}
    required = positional[: len(positional) - len(a.defaults)]
    if bound:
        positional, required = positional[1:], required[1:]
    keywords = {k.arg for k in call.keywords if k.arg is not None}
    known = ({*positional} - only) | {p.arg for p in a.kwonlyargs}
    unknown = sorted(keywords - known)
    if unknown and a.kwarg is None:
        return f"it has no parameter {', '.join(unknown)}"
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return None
    if len(call.args) > len(positional) and a.vararg is None:
        return f"{len(call.args)} positional arguments, it takes {len(positional)}"
    twice = sorted(keywords & set(positional[: len(call.args)]))
    if twice:
        return f"{', '.join(twice)} is given twice"
    missing = [n for n in required[len(call.args) :] if n not in keywords]
    missing += [p.arg for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is None and p.arg not in keywords]
    return f"nothing for {', '.join(missing)}" if missing else None
