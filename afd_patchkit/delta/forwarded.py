"""`__parameters__` in the code of deltas: all parameters of the entry's function, written out."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Code, Delta
from afd_patchkit.source.forward import PARAMETERS, Forwarded, ForwardError, written_out
from afd_patchkit.source.locate import Symbol, dotted


def written(symbol: Symbol, deltas: Sequence[Delta], entry: str) -> tuple[Delta, ...]:
    """The deltas, with `__parameters__` written out in their code.

    Args:
        symbol: what they change.
        deltas: in manifest order.
        entry: `module.py::name`, for findings.

    Raises:
        DeltaError: it stands where it cannot be written out (PK227).
    """
    return tuple(_written(symbol, delta, entry) for delta in deltas)


def _written(symbol: Symbol, delta: Delta, entry: str) -> Delta:
    def code(old: object) -> object:
        if not isinstance(old, Code) or PARAMETERS not in old.text:
            return old
        node = symbol.node
        try:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                raise ForwardError(f"{symbol.reference} has no parameters", ast.Pass())
            static = any(dotted(d) == "staticmethod" for d in node.decorator_list) and symbol.name != "__new__"
            private = symbol.classes[-1].name if symbol.classes else None
            text = written_out(old.text, Forwarded.of(node, bound=bool(symbol.classes) and not static, private=private))
        except ForwardError as error:
            raise DeltaError(
                finding(
                    "PK227", error.message, entry=entry, delta=delta.name, manifest=old.at(error.line, error.column + 1)
                )
            ) from error
        return Code(text, old.position, old.indent)

    update: dict[str, object] = {"with_": code(delta.with_), "insert": code(delta.insert)}
    if delta.call is not None:
        values = {name: code(value) for name, value in delta.call.set.items()}
        update["call"] = delta.call.model_copy(update={"set": values})
    if delta.clause is not None:
        clause = {"add": code(delta.clause.add), "first": code(delta.clause.first)}
        update["clause"] = delta.clause.model_copy(update=clause)
    update["deltas"] = written(symbol, delta.deltas, entry)
    changed = {name: new for name, new in update.items() if new is not None and new != getattr(delta, name)}
    return delta.model_copy(update=changed) if changed else delta
