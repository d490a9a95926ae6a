"""What derived code needs besides upstream: imports of the hand file, and helpers that the file defines itself."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from afd_patchkit.adopt.texts import CodeText
from afd_patchkit.copies.meaning import FileNames
from afd_patchkit.copies.reading import HandFile
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.bindings import Binding, absolute_module, module_bindings
from afd_patchkit.source.locate import first_line
from afd_patchkit.source.stdlib import BUILTINS


@dataclass
class CodeNeeds:
    """What some code needs.

    Attributes:
        imports: import statements, by the name that each binds.
        own: names that the hand file defines.
        missing: names that nothing in sight binds.
    """

    imports: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)


def code_in(value: Any) -> Iterator[str]:
    """Every piece of code in a delta that is not matched on upstream: what it puts there."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("insert", "with", "add", "callee", "append", "set", "body", "targets"):
                yield from _texts(item)
            elif name in ("deltas", "call", "parameter", "decorator", "clause", "elements", "rebind"):
                yield from code_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from code_in(item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def free_names(code: str) -> set[str]:
    """The names that a piece of code reads and does not bind; of a clause or a parameter, too."""
    for text in (
        f"def f():\n{_indented(code)}",
        f"({code.strip()}\n)",
        f"def f({code.strip()}): pass",
        f"if 1:\n    pass\n{code}",
        f"try:\n    pass\n{code}",
        f"@{code.strip()}\ndef f(): pass",
    ):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        return {use.name for use in Analysis(tree.body).free()}
    return set()


def _indented(code: str) -> str:
    return "\n".join(f"    {row}" for row in code.strip("\n").split("\n"))


def needs_of(codes: Iterable[str], names: FileNames, upstream: dict[str, str], local: Collection[str]) -> CodeNeeds:
    """What code of a hand file needs where upstream's module is around it.

    Args:
        codes: the pieces of code.
        names: what names of the hand file lead to.
        upstream: what upstream's module binds: name, to where it leads.
        local: names that the function binds.
    """
    found = CodeNeeds()
    bound = module_bindings(names.file)
    for name in sorted({n for code in codes for n in free_names(code)} - set(local)):
        if name.startswith("__") and name.endswith("__"):
            continue
        if upstream.get(name) == names.lead(name).dotted or (name not in bound and name in upstream):
            continue
        binding = bound.get(name)
        if name in names.local:
            module, _, last = names.local[name].dotted.rpartition(".")
            found.imports[name] = f"from {module} import {last}" + ("" if last == name else f" as {name}")
        elif binding is None:
            if name not in BUILTINS:
                found.missing.add(name)
        elif (text := import_text(binding, names.file)) is not None:
            found.imports[name] = text
        else:
            found.own.add(name)
    return found


def import_text(binding: Binding, file: Any) -> str | None:
    """The import statement that binds a name; None when something else does."""
    site = binding.sites[-1]
    if binding.kind == "from" and isinstance(site.node, ast.ImportFrom):
        module = absolute_module(file, site.node.module, site.node.level) if site.node.level else site.node.module
        end = "" if binding.attribute == binding.name else f" as {binding.name}"
        return f"from {module} import {binding.attribute}{end}"
    if binding.kind == "import" and binding.module is not None:
        return f"import {binding.module}" + (f" as {site.asname}" if site.asname else "")
    return None


def part_of(file: HandFile, names: Collection[str], leave: Collection[str]) -> tuple[CodeText, set[str]] | str:
    """The text of a part with helpers of a hand file, and all names that it defines; else why there is none.

    Args:
        file: the hand file.
        names: the helpers that are needed; what they need comes along.
        leave: functions that become entries, and are not helpers.
    """
    bound = module_bindings(file.source)
    wanted: set[str] = set()
    imports: dict[str, str] = {}
    stack = sorted(names)
    while stack:
        name = stack.pop()
        if name in wanted or name in imports:
            continue
        binding = bound.get(name)
        if binding is None:
            continue
        if name in leave:
            return f"a helper uses {name}, which is a copy itself"
        text = import_text(binding, file.source)
        if text is not None:
            imports[name] = text
            continue
        wanted.add(name)
        for node in binding.nodes:
            if isinstance(node, ast.stmt):
                stack += sorted({use.name for use in Analysis([node]).free()})
    statements = [
        node for node in file.source.tree.body if any(node is site.top for name in wanted for site in bound[name].sites)
    ]
    rows = ["from __future__ import annotations\n"] if _future(file) else []
    rows += sorted(set(imports.values()), key=lambda t: (t.startswith("from"), t))
    pieces = ["\n".join(rows)] if rows else []
    for node in statements:
        span = file.source.line_span(first_line(node), node.end_lineno or node.lineno)
        pieces.append(file.source.slice(span).rstrip("\n"))
    return CodeText("\n\n\n".join(pieces) + "\n"), wanted


def _future(file: HandFile) -> bool:
    return any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in file.source.tree.body)
