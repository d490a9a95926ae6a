"""The gate that an assembled module passes: it compiles, and something binds every name in it (invariant 7)."""

from __future__ import annotations

import ast
from typing import Any

from afd_patchkit.findings.errors import DeltaError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.model import Manifest
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.references.judge import Places
from afd_patchkit.references.texts import OwnText
from afd_patchkit.source.stdlib import BUILTINS

_IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__", "__builtins__"})
"""What every module has."""


def prove_module(manifest: Manifest, own: OwnText, places: Places) -> None:
    """Prove a module as a whole.

    Args:
        manifest: what it was made from.
        own: its text.
        places: where its code stands in the manifest.

    Raises:
        DeltaError: it does not compile (PK231), or nothing binds a name (PK232); the findings say in which entry.
    """
    try:
        tree = ast.parse(own.text)
        compile(tree, manifest.module, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno or 0
        text = [*own.text.split("\n"), ""][max(0, line - 1)].strip()
        said = f"{manifest.module} does not compile with these deltas: {error.msg}"
        help_ = "A delta's code fits the pattern but not the place: look at the line above."
        place = Position(manifest.module, line, error.offset or 0)
        found = finding("PK231", said, generated=place, details=(text,), help=help_)
        raise DeltaError(found.at(**_owner(manifest, own, line, places, text))) from error
    found_by: dict[tuple[str, str | None], Finding] = {}
    for name, line in _unknown(tree):
        item = _unbound(manifest, own, name, line, places)
        found_by.setdefault((name, item.entry), item)
    if found_by:
        raise DeltaError(*found_by.values())


def _unknown(tree: ast.Module) -> list[tuple[str, int]]:
    """Names that nothing binds, and the lines that they stand in."""
    analysis = Analysis(tree.body)
    known = analysis.outer.bound.union(*(scope.globals for scope in analysis.outer.walk()), BUILTINS, _IMPLICIT)
    return sorted((use.name, use.line()) for use in analysis.free() if use.name not in known)


def _unbound(manifest: Manifest, own: OwnText, name: str, line: int, places: Places) -> Finding:
    found = finding(
        "PK232",
        f"nothing in {manifest.module} binds `{name}`",
        generated=Position(manifest.module, line),
        help="Import it in the manifest's `imports`, or correct the delta, base or part that uses it.",
    )
    return found.at(**_owner(manifest, own, line, places, name))


def _owner(manifest: Manifest, own: OwnText, line: int, places: Places, written: str) -> dict[str, Any]:
    """Entry, delta and place of what is written in a line of the module; the place of the manifest above the first entry."""
    file = own.file
    piece = own.piece_at(file.offset(min(line, file.line_count))) if line else None
    if piece is None:
        return {"manifest": manifest.where}
    delta, at = places.at(piece.ref, own.text.split("\n"), line, written)
    return {"entry": piece.ref, "delta": delta, "manifest": at}
