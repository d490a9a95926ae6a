"""Our own modules as references need them: the text, which of it is ours, and which entry stands where."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.model import Manifest
from afd_patchkit.source.text import SourceFile, Span, load_source


@dataclass(frozen=True)
class Piece:
    """Where one entry stands in the text of its module.

    Attributes:
        ref: `module.py::name`.
        kind: kind of the entry.
        symbol: upstream's `package.module:Qual.name`; empty for owned code.
        group: the generated class that it is a member of; empty without one.
        start: byte of the text where it begins; it ends where the next one begins.
        rebound: names that mean something else than upstream, and what they mean.
        imports: what it takes of upstream by name: module, attribute, and the name that is bound.
    """

    ref: str
    kind: str
    symbol: str
    group: str
    start: int
    rebound: frozenset[str] = frozenset()
    imports: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class OwnText:
    """One generated module.

    Attributes:
        module: its dotted name.
        text: its text.
        pieces: its entries, in order.
        ours: the bytes of the text that no upstream wrote, in order and disjoint.
        imports: what manifest and parts import: module, attribute, and the name that it binds.
        make: of a text that was read from the disk, generates the module again; None where that fails.
    """

    module: str
    text: str
    pieces: tuple[Piece, ...]
    ours: tuple[tuple[int, int], ...]
    imports: tuple[tuple[str, str | None, str], ...]
    make: Callable[[], OwnText | None] | None = field(default=None, compare=False)

    @cached_property
    def whole(self) -> OwnText:
        """The module with its entries, which a file on the disk does not tell."""
        return (self.make() if self.make is not None else None) or self

    @cached_property
    def file(self) -> SourceFile:
        """The text as a source file."""
        return load_source(self.text.encode(), pin="", path=self.module.replace(".", "/") + ".py")

    @cached_property
    def parses(self) -> bool:
        """Whether the text is Python that can be read."""
        try:
            return bool(self.file.tree)
        except (PatchkitError, RecursionError):
            return False

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self.ours]

    def is_ours(self, span: Span) -> bool:
        """Whether all of a span is ours."""
        index = bisect_right(self._starts, span.start) - 1
        return index >= 0 and span.end <= self.ours[index][1]

    def piece_at(self, offset: int) -> Piece | None:
        """The entry that a byte of the text stands in; None above the first one."""
        index = bisect_right([p.start for p in self.pieces], offset) - 1
        return self.pieces[index] if index >= 0 else None

    def writes(self, node: ast.AST) -> bool:
        """Whether a node is ours: a call by what it calls or by one of its arguments, all others as a whole."""
        if isinstance(node, ast.Call):
            parts: Sequence[ast.AST] = [node.func, *node.args, *node.keywords]
            return any(self.is_ours(self.file.node_span(part)) for part in parts)
        if isinstance(node, ast.Attribute):
            end = self.file.node_span(node).end
            return self.is_ours(Span(end - len(node.attr.encode()), end))
        return self.is_ours(self.file.node_span(node))


@dataclass(frozen=True)
class Catalogue:
    """What the manifests of a project make, whether it is generated now or not.

    Attributes:
        modules: dotted names of all modules.
        names: last parts of the names of all entries.
        copied: entries that have an upstream symbol, as `module:Qual.name`.
        classes: of a generated class (`module:Class`), the upstream classes (`module:Class`) that its members come from.
        patched: definitions of upstream's modules (`module:name`) that an entry of the same name stands for, and the entry.
    """

    modules: frozenset[str]
    names: frozenset[str]
    copied: frozenset[str]
    classes: Mapping[str, tuple[str, ...]]
    patched: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, manifests: Iterable[Manifest], module_name: Callable[[str], str]) -> Catalogue:
        """The catalogue of some manifests; `module_name` gives the dotted name of a module path."""
        modules, names, copied = set(), set(), set()
        classes: dict[str, dict[str, None]] = {}
        patched: dict[str, str] = {}
        for manifest in manifests:
            module = module_name(manifest.module)
            modules.add(module)
            for entry, group in manifest.all_entries():
                name = entry.generated_name
                if name is not None:
                    names.add(name)
                if entry.symbol is None:
                    continue
                copied.add(f"{module}:{group.name + '.' if group else ''}{name}")
                symbol = entry.symbol.text.strip()
                if group is None and symbol.rpartition(":")[2] == name:
                    patched.setdefault(symbol, manifest.ref(entry, group))
                owner = entry.symbol.text.rpartition(".")[0]
                if group is not None and ":" in owner:
                    classes.setdefault(f"{module}:{group.name}", {})[owner] = None
        found = {key: tuple(of) for key, of in classes.items()}
        return cls(frozenset(modules), frozenset(names), frozenset(copied), found, patched)


def joined_ranges(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Neighbouring ranges made one."""
    out: list[tuple[int, int]] = []
    for start, end in ranges:
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return tuple(out)
