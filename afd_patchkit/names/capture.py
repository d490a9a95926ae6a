"""A delta must not bind a name that upstream reads as free: the upstream lines would mean something else."""

from __future__ import annotations

from collections.abc import Iterator

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.names.analysis import Analysis
from afd_patchkit.names.model import NameContext
from afd_patchkit.names.scope import Scope

_Path = tuple[str, ...]


def captured_names(upstream: Analysis, rendered: Analysis, context: NameContext) -> Iterator[Finding]:
    """Names that a scope of the rendered text binds, its upstream counterpart does not, and upstream reads from outside.

    Scopes are paired by the names of the functions and classes around them; the entry's own name may differ.
    """
    reads: dict[_Path, set[str]] = {}
    for use in upstream.free():
        if use.ctx == "load" and use.quoted is None and use.scope is not upstream.outer:
            reads.setdefault(_path(use.scope), set()).add(use.name)
    before = _bound(upstream)
    symbol = context.symbol
    for path, names in sorted(_bound(rendered).items()):
        new = names - before.get(path, set())
        is_class = path[-1].startswith("class ")
        for name in sorted(new):
            reading = [
                p for p, read in reads.items() if name in read and (p == path if is_class else p[: len(path)] == path)
            ]
            if reading:
                where = " > ".join((symbol.qualname, *(part.partition(" ")[2] for part in path[1:])))
                yield finding(
                    "PK303",
                    f"a delta binds `{name}` in {where}, but upstream's text reads `{name}` from outside the function",
                    upstream=symbol.position,
                    help="Use another local name in the delta; or declare `rebind` if upstream's name shall mean something else.",
                )


def _bound(analysis: Analysis) -> dict[_Path, set[str]]:
    found: dict[_Path, set[str]] = {}
    for scope in analysis.outer.walk():
        if scope.kind in {"function", "class"}:
            found.setdefault(_path(scope), set()).update(scope.bound - scope.globals - scope.nonlocals)
    return found


def _path(scope: Scope) -> _Path:
    around = [s for s in scope.chain() if s.kind in {"function", "class", "lambda"}]
    parts = [f"{s.kind} {s.name}" for s in reversed(around)]
    if parts:
        parts[0] = f"{around[-1].kind} "
    return tuple(parts)
