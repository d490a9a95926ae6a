"""What a manifest imports, and whether it is what upstream's module has under the same name."""

from __future__ import annotations

import ast

from afd_patchkit.names.bindings import Binding
from afd_patchkit.names.follow import find_definition
from afd_patchkit.names.model import ImportNeed, NameContext
from afd_patchkit.names.ways import by_value


def same_import(name: str, described: str, binding: Binding) -> bool:
    """Whether a manifest import, described by its statement, is the one by which upstream's module gets `name`."""
    need = _imported(name, described)
    if need is None or binding.mutable or binding.kind not in {"import", "from"}:
        return False
    return need.meaning in {own.meaning for own in by_value(binding, "")}


def same_object(context: NameContext, name: str, described: str, binding: Binding) -> bool:
    """Whether a manifest import gives what upstream's module has under `name`: by the same import, or from where it leads.

    Args:
        context: the entry.
        name: the name.
        described: the import, by its statement.
        binding: how upstream's module gets the name.
    """
    need = _imported(name, described)
    if need is None or binding.mutable:
        return False
    if same_import(name, described, binding):
        return True
    source, home = context.source, context.symbol.file.module
    upstreams = find_definition(source, home, name)
    whole = need.attribute or need.alias
    manifests = find_definition(source, need.module if whole else name, need.attribute)
    return upstreams is not None and manifests is not None and upstreams.reference == manifests.reference


def _imported(name: str, described: str) -> ImportNeed | None:
    """What a manifest import, described by its statement, binds to `name`."""
    if not described.startswith(("import ", "from ")):
        return None
    try:
        statement = ast.parse(described).body[0]
    except (SyntaxError, IndexError):
        return None
    if isinstance(statement, ast.Import):
        needs = [ImportNeed(a.name, alias=a.asname) for a in statement.names]
    elif isinstance(statement, ast.ImportFrom) and not statement.level:
        needs = [ImportNeed(statement.module or "", a.name, a.asname) for a in statement.names]
    else:
        return None
    return next((need for need in needs if need.bound == name), None)
