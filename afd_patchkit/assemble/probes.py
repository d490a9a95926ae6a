"""Removal conditions, judged statically on a target."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.model import Code, InPattern, Probe
from afd_patchkit.patterns.select import Match, compile_pattern, find_all
from afd_patchkit.source.locate import Symbol, first_symbol, parse_place, whole
from afd_patchkit.upstream.base import Upstream

Targets = Mapping[str, Upstream]
"""Import package (`vllm`) to the upstream that provides it on the target."""


def holds(probe: Probe, targets: Targets) -> bool:
    """Whether `probe` is true on the targets.

    Nothing is true by emptiness: `contains` and `absent` are false where the symbol that they look into is gone (see
    `gone`), and `missing` where no pin provides the package.

    Raises:
        ManifestError: a reference or pattern is malformed.
        UpstreamError: a module that exists cannot be read.
    """
    if probe.defines is not None:
        return lookup(probe.defines, targets) is not None
    if probe.missing is not None:
        return (
            _target(probe.missing.text.partition(":")[0].strip(), targets) is not None
            and lookup(probe.missing, targets) is None
        )
    if probe.contains is not None:
        return _contains(probe.contains, targets)
    if probe.absent is not None:
        return lookup(probe.absent.in_, targets) is not None and not _contains(probe.absent, targets)
    if probe.any is not None:
        return any(holds(p, targets) for p in probe.any)
    return all(holds(p, targets) for p in probe.all or ())


def first_that_holds(probes: Sequence[Probe], targets: Targets) -> Probe | None:
    """The first probe that is true: any one is enough to retire an entry."""
    return next((probe for probe in probes if holds(probe, targets)), None)


def gone(probes: Sequence[Probe], targets: Targets) -> Iterator[Finding]:
    """Findings for conditions that look into a symbol which the targets do not have: nobody can say whether they hold."""
    for probe in probes:
        for test in (probe.contains, probe.absent):
            if test is not None and lookup(test.in_, targets) is None:
                yield finding(
                    "PK543",
                    f"the removal condition looks into {test.in_.text}, which is gone",
                    manifest=test.in_.position,
                    help="Name what it became, or delete the entry if upstream needs it no more.",
                )
        yield from gone((*(probe.any or ()), *(probe.all or ())), targets)


def lookup(reference: Code, targets: Targets) -> Symbol | None:
    """The symbol or module on the targets, or None; a name with several definitions counts as defined."""
    module, qualname = parse_place(reference.text, reference.position)
    upstream = _target(module, targets)
    if upstream is None or module not in upstream.modules():
        return None
    file = upstream.read(module)
    return first_symbol(file, qualname) if qualname else whole(file)


def _target(module: str, targets: Targets) -> Upstream | None:
    """The target that provides a module: by its package, which may have dots (`google.cloud`)."""
    parts = module.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((targets[name] for name in names if name in targets), None)


def _contains(test: InPattern, targets: Targets) -> bool:
    symbol = lookup(test.in_, targets)
    return symbol is not None and bool(matches(test.pattern, symbol))


def matches(code: Code, symbol: Symbol) -> list[Match]:
    """Where a symbol or module holds a pattern."""
    pattern = compile_pattern(code, "auto")
    roots: Sequence[ast.AST] = symbol.nodes if symbol.qualname else [symbol.file.tree]
    return [match for root in roots for match in find_all(pattern, root, symbol.file)]
