"""Where a symbol went: the same text elsewhere, or else what is most like it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rapidfuzz.distance import Indel

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.source.facts import body_digest
from afd_patchkit.source.locate import Symbol, definitions, find_symbol
from afd_patchkit.source.text import SourceFile, load_source
from afd_patchkit.source.tokens import significant, tokens_in
from afd_patchkit.upgrade.merge import line_digests
from afd_patchkit.upgrade.sides import own_line_texts
from afd_patchkit.upstream.base import Upstream, module_table

_FILES = 12
_SHOWN = 5
_LEAST = 0.35
_TELLING = 5  # lines; shorter bodies are alike by chance


@dataclass(frozen=True)
class Found:
    """Where a symbol that is gone may have moved to.

    Attributes:
        same: the symbol with the same text, when there is exactly one.
        successors: likely new homes, best first, as `module:Qual.name` with likeness 0 to 1.
    """

    same: Symbol | None = None
    successors: tuple[tuple[str, float], ...] = ()


class Release:
    """The files of one release as bytes, read once; only candidates are parsed."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._files: list[tuple[str, bytes]] | None = None
        self._modules: dict[str, str] = {}

    def files(self) -> list[tuple[str, bytes]]:
        """Path and bytes of every module.

        Raises:
            UpstreamError: they cannot be read.
        """
        if self._files is None:
            self._files = list(self.upstream.package_files())
            self._modules = {path: module for module, path in module_table([p for p, _ in self._files]).items()}
        return self._files

    def source(self, path: str) -> SourceFile | None:
        """The parsed file; None when it cannot be parsed."""
        try:
            module = self._modules.get(path)
            data = next(d for p, d in self.files() if p == path)
            file = self.upstream.read(module) if module else load_source(data, pin=self.upstream.pin, path=path)
            file.tree  # noqa: B018 - parse now
        except PatchkitError:
            return None
        return file

    def named(self, name: str) -> Iterator[Symbol]:
        """Every symbol with this last name."""
        shape = re.compile(
            rb"(?m)^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+%s\b|^%s[ \t]*[=:]" % ((name.encode(),) * 2)
        )
        for path, data in self.files():
            if name.encode() in data and shape.search(data):
                file = self.source(path)
                yield from _symbols(file, name) if file is not None else ()

    def sharing(self, digests: Sequence[str]) -> Iterator[SourceFile]:
        """The files that share most lines with a text of which the line digests are known."""
        wanted = set(digests) - set(line_digests(["", ")", "else:", "try:", "return", '"""', "pass", "]", "}"]))
        scores = []
        for path, data in self.files():
            text = data.decode("utf-8", "replace").replace("\r\n", "\n")
            shared = len(wanted.intersection(line_digests(list({line.strip() for line in text.split("\n")}))))
            if shared >= max(2, len(wanted) // 5):
                scores.append((-shared, path))
        for _, path in sorted(scores)[:_FILES]:
            file = self.source(path)
            if file is not None:
                yield file


def _symbols(file: SourceFile, name: str | None = None) -> Iterator[Symbol]:
    seen = set()
    for definition in definitions(file):
        qualname = ".".join([*(c.name for c in definition.classes), definition.name])
        if name not in (None, definition.name) or qualname in seen:
            continue
        seen.add(qualname)
        try:
            yield find_symbol(file, qualname)
        except PatchkitError:
            yield find_symbol(file, qualname, branch=1)


def search(record: Mapping[str, Any], base: Symbol | None, release: Release) -> Found:
    """Look for a symbol that is not where it was.

    Args:
        record: the lock's record of it.
        base: the old symbol; None when the old upstream is not at hand.
        release: where to look.
    """
    digests = record["line_digests"].split(" ")
    name = record["symbol"].rpartition(":")[2].rpartition(".")[2]
    candidates = {s.reference: s for s in release.named(name)}
    same = [s for s in candidates.values() if line_digests(own_line_texts(s)) == digests]
    if len(same) != 1:
        for file in release.sharing(digests):
            for symbol in _symbols(file):
                if type(symbol.node) is _kind(record, base, symbol) and _size(symbol, len(digests)):
                    candidates.setdefault(symbol.reference, symbol)
        same = same or [s for s in candidates.values() if _renamed(s, name, digests)]
    likeness = [(_likeness(record, base, digests, s), s) for s in candidates.values()]
    ranked = sorted(likeness, key=lambda item: (-item[0], item[1].reference))
    shown = tuple((s.reference, round(value, 2)) for value, s in ranked if value >= _LEAST)[:_SHOWN]
    return Found(same[0] if len(same) == 1 else None, shown)


def _kind(record: Mapping[str, Any], base: Symbol | None, other: Symbol) -> type[ast.AST]:
    """The kind of statement to look for; without the old text, functions stay functions."""
    if base is not None:
        return type(base.node)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return type(other.node) if ("signature" in record) == isinstance(other.node, functions) else ast.AST


def _size(symbol: Symbol, count: int) -> bool:
    own = sum(last - first + 1 for first, last in symbol.line_ranges)
    return count / 3 <= own <= count * 3


def _renamed(symbol: Symbol, name: str, digests: Sequence[str]) -> bool:
    """Whether the text is the same but for the symbol's own name."""
    shape = re.compile(rf"\b{re.escape(symbol.name)}\b")
    return line_digests([shape.sub(name, line) for line in own_line_texts(symbol)]) == list(digests)


def _likeness(record: Mapping[str, Any], base: Symbol | None, digests: Sequence[str], other: Symbol) -> float:
    telling = len(digests) >= _TELLING and record.get("body") is not None
    if telling and record["body"] == body_digest(other.node, other.file):
        return 1.0
    if base is not None:
        return float(Indel.normalized_similarity(_words(base), _words(other)))
    return float(Indel.normalized_similarity(list(digests), line_digests(own_line_texts(other))))


def _words(symbol: Symbol) -> list[str]:
    return [t.text for span in symbol.spans for t in significant(tokens_in(symbol.file, span))]
