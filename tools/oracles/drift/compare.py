"""What one release changed about one symbol, by the engine's own extraction, comparison and search."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from afd_patchkit.assemble.record import symbol_record
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.model import Pin
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference
from afd_patchkit.source.signature import compare, signature
from afd_patchkit.source.text import Span
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upgrade.moved import Release, search
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream
from tools.oracles.releases import BASE

SUCCESSOR = 0.85
"""From this likeness on, the first of the likely successors counts as the symbol's new name or place."""


@dataclass(frozen=True)
class Drift:
    """What one release changed about one symbol.

    Attributes:
        status: `unchanged`, `unchanged (format only)`, `unchanged (docstring only)`, `body changed`, `signature changed`,
            `decorator changed`, `renamed: Q`, `moved: S`, `moved+renamed: S`, `removed`.
        detail: the differences of signature and decorators in words.
    """

    status: str
    detail: tuple[str, ...] = ()


def compared(old: Symbol, new: Symbol) -> Drift:
    """What changed about a symbol that is still there.

    A change of decorators counts before one of the signature, that before one of the body.
    """
    if old.data == new.data:
        return Drift("unchanged")
    found = compare(signature(old.node, old.file), signature(new.node, new.file))
    words = tuple(d.message for d in found)
    if any(d.change.startswith("decorator") for d in found):
        return Drift("decorator changed", words)
    if found:
        return Drift("signature changed", words)
    if _words(old) == _words(new):
        return Drift("unchanged (format only)")
    if _words(old, docstrings=False) == _words(new, docstrings=False):
        return Drift("unchanged (docstring only)")
    return Drift("body changed")


def _words(symbol: Symbol, *, docstrings: bool = True) -> list[str]:
    """The symbol's tokens without layout, comments and trailing commas."""
    skipped = [] if docstrings else [span for node in symbol.nodes for span in _docstrings(symbol, node)]
    found = [
        t.text
        for span in symbol.spans
        for t in significant(tokens_in(symbol.file, span))
        if not any(s.contains(t.span) for s in skipped)
    ]
    return [t for n, t in enumerate(found) if t != "," or found[n + 1 : n + 2] not in ([")"], ["]"], ["}"])]


def _docstrings(symbol: Symbol, root: ast.AST) -> Iterator[Span]:
    for node in ast.walk(root):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and body:
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield symbol.file.node_span(first)


def gone(old: Symbol, release: Release) -> Drift:
    """Where a symbol went that is not where it was."""
    found = search(symbol_record(old), old, release)
    likely = [reference for reference, value in found.successors if value >= SUCCESSOR]
    reference = found.same.reference if found.same is not None else likely[0] if likely else None
    if reference is None:
        return Drift("removed", tuple(f"{ref} is {value:.0%} alike" for ref, value in found.successors[:1]))
    module, qualname = parse_reference(reference)
    if module == old.file.module:
        return Drift(f"renamed: {qualname}")
    return Drift(f"moved: {reference}" if qualname == old.qualname else f"moved+renamed: {reference}")


class Comparer:
    """Releases of vLLM, opened once."""

    def __init__(self, options: SourceOptions | None = None, distribution: str = "vllm", base: str = BASE) -> None:
        self.options, self.distribution, self.base = options or SourceOptions(), distribution, base
        self._releases: dict[str, Release] = {}

    def release(self, version: str) -> Release:
        """Open one release, once."""
        if version not in self._releases:
            pin = Pin(distribution=self.distribution, version=version)
            self._releases[version] = Release(open_upstream(self.distribution, pin, self.options))
        return self._releases[version]

    def symbol(self, reference: str, version: str) -> Symbol | None:
        """One symbol of one release; None when it is not there.

        Raises:
            UpstreamError: the release cannot be had.
        """
        module, qualname = parse_reference(reference)
        try:
            return find_symbol(self.release(version).upstream.read(module), qualname)
        except PatchkitError as error:
            if error.findings[0].code in ("PK205", "PK405"):
                return None
            raise

    def drift(self, reference: str, version: str) -> Drift:
        """What a release changed about a symbol of the base."""
        old = self.symbol(reference, self.base)
        if old is None:
            return Drift("not at the base")
        new = self.symbol(reference, version)
        return compared(old, new) if new is not None else gone(old, self.release(version))
