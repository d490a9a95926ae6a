"""What a reader of a generated entry should know, though nothing is wrong."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.names.model import NameEdit
from afd_patchkit.names.scope import Use
from afd_patchkit.source.locate import Symbol, dotted

_REGISTERING = {
    "custom_op", "triton_op", "impl", "route", "websocket", "command", "task", "fixture", "hookimpl", "on_event",
    "middleware", "exception_handler",
}  # fmt: skip
_ROUTES = {"get", "post", "put", "delete", "patch", "head", "options"}
_EVALUATING = ("eval", "exec")


def entry_notes(
    nodes: Sequence[ast.stmt],
    free: Iterable[Use],
    symbol: Symbol,
    module_attributes: Sequence[str],
    is_builtin: Callable[[str], bool],
) -> Iterator[Finding]:
    """Notes on module attributes, registering decorators, and text that is evaluated.

    Args:
        nodes: statements of the rendered text.
        free: their free uses.
        symbol: the upstream symbol.
        module_attributes: `__name__` and the like that the text reads.
        is_builtin: whether a name means the builtin.
    """
    if module_attributes:
        listed = ", ".join(f"`{name}`" for name in module_attributes)
        yield finding(
            "PK630",
            f"{symbol.reference} reads {listed}; the generated code reads upstream's",
            upstream=symbol.position,
        )
    for node in nodes:
        for decorator in getattr(node, "decorator_list", ()):
            name = _registering(decorator)
            if name:
                yield finding(
                    "PK631",
                    f"decorator `{name}` of {symbol.reference} registers something, so importing the generated module "
                    "registers it once more",
                    upstream=symbol.position,
                    help="Drop or change the decorator by a `decorator` delta if it must not happen twice.",
                )
    evaluating = sorted({use.name for use in free if use.name in _EVALUATING and is_builtin(use.name)})
    if evaluating:
        yield finding(
            "PK635",
            f"{symbol.reference} calls {' and '.join(f'`{n}`' for n in evaluating)}; names in the evaluated text are looked up "
            "in the generated module",
            upstream=symbol.position,
        )


def _registering(decorator: ast.expr) -> str | None:
    call = isinstance(decorator, ast.Call)
    name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    last = name.rpartition(".")[2]
    if "register" in last or last in _REGISTERING:
        return name
    return name if call and "." in name and last in _ROUTES else None


def rewritten_note(edits: Iterable[NameEdit], symbol: Symbol) -> Iterator[Finding]:
    """Notes on what was made explicit."""
    edits = list(edits)
    scoped = sorted({f"{e.name} -> {e.text}" for e in edits if e.reason == "class scope"})
    if scoped:
        yield finding(
            "PK632",
            f"{symbol.reference}: names of the class body are read from upstream's class when the generated module is "
            "imported",
            upstream=symbol.position,
            details=tuple(scoped),
        )
    made = sorted(
        {f"{e.name} -> {e.text}" for e in edits if e.reason in {"super", "mangled", "type parameter", "static"}}
    )
    if made:
        yield finding(
            "PK633",
            f"{symbol.reference}: what it takes from its class is written out",
            upstream=symbol.position,
            details=tuple(made),
        )
