"""One symbol without deltas as a module of its own: what the sweep proves on every function of a release."""

from __future__ import annotations

from dataclasses import dataclass

from afd_patchkit.assemble.entry import Setting, edit_names, put_in_place, resolve
from afd_patchkit.assemble.verify import check_entry
from afd_patchkit.delta.apply import apply_deltas
from afd_patchkit.delta.buffer import Buffer
from afd_patchkit.errors import NameResolutionError
from afd_patchkit.manifest.model import Entry
from afd_patchkit.names.imports import merge_imports, merge_statements, render_imports
from afd_patchkit.names.model import NameEdit
from afd_patchkit.review.finding import Severity
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upstream.base import Upstream


@dataclass(frozen=True)
class Single:
    """One assembled symbol.

    Attributes:
        text: the module: imports, then the entry (methods inside a class of the same name).
        body: the entry's text alone, as it stands in the module.
        edits: declared name edits, in bytes of the dedented entry.
        rebindings: names that mean something else, and what.
    """

    text: str
    body: str
    edits: tuple[NameEdit, ...]
    rebindings: tuple[tuple[str, str], ...]


def assemble_symbol(symbol: Symbol, upstream: Upstream, *, module: str = "sweep.generated") -> Single:
    """Assemble `symbol` as a `copy` entry without deltas.

    Raises:
        PatchkitError: the tool refuses the symbol, with the findings that say why.
        SelfCheckError: a bug of the tool.
    """
    group = symbol.classes[-1].name if symbol.classes else None
    ref = f"{module}::{symbol.qualname}"
    applied = apply_deltas(symbol, (), entry=ref)
    setting = Setting(
        entry=ref, module=module, group=group, above=frozenset(), provided={}, marker="### PATCH", pin_text=f"{upstream.pin} {upstream.version}"
    )
    entry = Entry(reason="sweep")
    plan = resolve(entry, symbol, applied.buffer, {}, upstream, upstream, setting, symbol.name)
    errors = [f for f in plan.findings if f.severity is Severity.ERROR]
    if errors:
        raise NameResolutionError(*errors)
    body, spans = edit_names(applied.buffer, plan, symbol.file)
    body = put_in_place(body, "    " if group else "", symbol)
    check_entry(symbol, (), spans, body, setting.marker)
    needs, findings = merge_imports([plan])
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if errors:
        raise NameResolutionError(*errors)
    head = Buffer.emitted(f"class {group}:\n" if group else "", (), "owned")
    block = render_imports(needs, merge_statements([plan]))
    text = block + "\n\n" + (head + body).text
    return Single(text, body.text, plan.edits, tuple(sorted(plan.rebindings.items())))
