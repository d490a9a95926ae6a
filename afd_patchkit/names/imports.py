"""The imports of one generated module: merged from its entries, checked, and written out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.model import ImportNeed, NamePlan
from afd_patchkit.source.stdlib import STDLIB

LINE = 88
_FUTURE = ImportNeed("__future__", "annotations")


def merge_imports(plans: Sequence[NamePlan]) -> tuple[list[ImportNeed], list[Finding]]:
    """The imports that all entries of one generated module need.

    Args:
        plans: the plans of the module's entries, in order.

    Returns:
        The imports, sorted, with `from __future__ import annotations` where the annotations of the entries want it; and the
        findings: a name with two meanings (PK308), entries whose upstream modules disagree about the future import (PK309).
    """
    findings: list[Finding] = []
    meanings: dict[str, tuple[str, str]] = {}
    needs: dict[tuple[str, str | None, str | None], ImportNeed] = {}
    for plan in plans:
        for need in plan.imports:
            key = (need.module, need.attribute, need.alias)
            if key not in needs or need.guard == "none":
                needs[key] = need
        for name, meaning in _meanings(plan):
            first = meanings.setdefault(name, (meaning, plan.label))
            if first[0] != meaning:
                findings.append(_two_meanings(name, first, (meaning, plan.label)))
    future, disagreement = _future(plans)
    findings += disagreement
    if future:
        needs[_FUTURE.module, _FUTURE.attribute, None] = _FUTURE
    return sorted(needs.values(), key=_order), list(dict.fromkeys(findings))


def merge_statements(plans: Iterable[NamePlan]) -> list[str]:
    """The statements that the entries of one generated module need, each once."""
    return list(dict.fromkeys(statement for plan in plans for statement in plan.statements))


def _meanings(plan: NamePlan) -> Iterator[tuple[str, str]]:
    """The names that a plan makes the module bind, and what they are."""
    for need in plan.imports:
        yield need.bound, need.meaning
    for statement in plan.statements:
        for name in sorted(Analysis(ast.parse(statement).body).outer.bound):
            yield name, statement


def _two_meanings(name: str, one: tuple[str, str], other: tuple[str, str]) -> Finding:
    return finding(
        "PK308",
        f"`{name}` would have two meanings in one generated module",
        details=(f"{one[1]}: {_head(one[0])}", f"{other[1]}: {_head(other[0])}"),
        help="Put the entries into two modules, or read the name late in one of them: `late: [" + name + "]`.",
    )


def _head(meaning: str) -> str:
    first, newline, _ = meaning.partition("\n")
    return f"{first} ..." if newline else first


def _future(plans: Sequence[NamePlan]) -> tuple[bool, list[Finding]]:
    """Whether the module has the future import. Only entries with annotations care; they must agree."""
    annotated = [plan for plan in plans if plan.annotated]
    deferred = [plan for plan in annotated if plan.future_annotations]
    if not annotated:
        return any(plan.future_annotations for plan in plans), []
    if len(deferred) in {0, len(annotated)}:
        return bool(deferred), []
    evaluated = [plan for plan in annotated if not plan.future_annotations]
    report = finding(
        "PK309",
        "entries of one generated module come from upstream modules with and without `from __future__ import annotations`",
        details=(
            *(f"with: {plan.label}" for plan in deferred),
            *(f"without: {plan.label}" for plan in evaluated),
        ),
        help="Split the module.",
    )
    return True, [report]


# ---- text ---------------------------------------------------------------------------------------------------------


def render_imports(
    needs: Iterable[ImportNeed], statements: Iterable[str] = (), *, first_party: Collection[str] = ()
) -> str:
    """The import block of a module, in isort's order.

    Args:
        needs: the imports.
        statements: guarded import statements and the like, copied after the imports.
        first_party: top-level packages that come in a group of their own, last.

    Returns:
        `__future__`, standard library, others, first party, statements and the TYPE_CHECKING block, separated by blank
        lines; ends with a newline unless empty.
    """
    hidden = sorted({need.statement() for need in needs if need.hidden})
    plain = {need for need in needs if need.guard == "none" and not need.hidden}
    if hidden:
        plain.add(ImportNeed("importlib"))
    guarded = {need for need in needs if need.guard == "type_checking"}
    covered = {(n.module, n.attribute, n.alias) for n in plain}
    guarded = {n for n in guarded if (n.module, n.attribute, n.alias) not in covered}
    if guarded:
        plain.add(ImportNeed("typing", "TYPE_CHECKING"))
    blocks = ["\n".join(_lines(group)) for group in _groups(plain, first_party)]
    blocks += ["\n".join(hidden)] if hidden else []
    blocks += [statement.rstrip("\n") for statement in statements]
    if guarded:
        groups = ["\n".join(_lines(group, "    ")) for group in _groups(guarded, first_party)]
        blocks.append("if TYPE_CHECKING:\n" + "\n\n".join(groups))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _groups(needs: Collection[ImportNeed], first_party: Collection[str]) -> list[list[ImportNeed]]:
    groups: list[list[ImportNeed]] = [[], [], [], []]
    for need in sorted(needs, key=_order):
        root = need.module.partition(".")[0]
        if need.module == "__future__":
            groups[0].append(need)
        elif root in STDLIB:
            groups[1].append(need)
        elif root in first_party:
            groups[3].append(need)
        else:
            groups[2].append(need)
    return [group for group in groups if group]


def _order(need: ImportNeed) -> tuple[bool, bool, str, int, str, str]:
    name = need.attribute or ""
    return (
        need.module != "__future__",
        need.attribute is not None,
        need.module,
        _kind(name),
        name,
        need.alias or "",
    )


def _kind(name: str) -> int:
    """The order by type that isort uses: constants, classes, the rest."""
    if name.isupper() and len(name) > 1:
        return 0
    return 1 if name[:1].isupper() else 2


def _lines(needs: Sequence[ImportNeed], indent: str = "") -> Iterator[str]:
    modules: dict[str, list[ImportNeed]] = {}
    for need in needs:
        if need.attribute is None:
            yield indent + need.statement()
        else:
            modules.setdefault(need.module, []).append(need)
    for module, wanted in modules.items():
        names = [f"{n.attribute} as {n.alias}" if n.alias else str(n.attribute) for n in wanted]
        line = f"{indent}from {module} import {', '.join(names)}"
        if len(line) > LINE:
            inner = "".join(f"{indent}    {name},\n" for name in names)
            line = f"{indent}from {module} import (\n{inner}{indent})"
        yield line
