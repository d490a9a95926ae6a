"""One delta of one symbol, carried from one release to another by the real `upgrade`: a project of one entry."""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from afd_patchkit.api import load_project
from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.manifest.load import parse_manifest
from afd_patchkit.model import Delta, Entry, Pin
from afd_patchkit.source.locate import Symbol, find_symbol, parse_reference
from afd_patchkit.upgrade.deltas import Judged, judge
from afd_patchkit.upgrade.moved import search
from afd_patchkit.upgrade.result import EntryResult
from afd_patchkit.upgrade.upgrader import Upgrader
from afd_patchkit.upgrade.upgrading import upgrade
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream
from tools.oracles.releases import BASE

_PINS = 'schema: 1\npins:\n  {name}:\n    distribution: {name}\n    version: "{version}"\n'
_MANIFEST = """\
schema: 1
module: proof/one.py
summary: One entry.
pin: {name}
entries:
  - symbol: {symbol}
    reason: a proof
    deltas:
"""


@dataclass(frozen=True)
class Carried:
    """What `upgrade` said about one delta.

    Attributes:
        result: the entry's result; None when the entry cannot be generated at the base.
        abstained: method B had no answer.
        why: codes of what kept it from being generated at the base.
    """

    result: EntryResult | None
    abstained: bool = False
    why: tuple[str, ...] = ()


@dataclass
class Engine:
    """Releases of one distribution, each opened once in this process.

    Attributes:
        distribution: what moves.
        base: the version that deltas are written for.
        options: where releases may come from.
        folder: where the project of one entry is written.
    """

    distribution: str = "vllm"
    base: str = BASE
    options: SourceOptions = field(default_factory=SourceOptions)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="afd-patchkit-proof-")))

    def __post_init__(self) -> None:
        (self.folder / "manifests" / "proof").mkdir(parents=True, exist_ok=True)
        (self.folder / "pyproject.toml").write_text('[tool.afd-patchkit]\npackage = "proof"\n', encoding="utf-8")
        pins = _PINS.format(name=self.distribution, version=self.base)
        (self.folder / "manifests" / "pins.yaml").write_text(pins, encoding="utf-8")
        self.project = load_project(self.folder)

    def symbol(self, reference: str, version: str | None = None) -> Symbol:
        """One symbol of one release.

        Raises:
            PatchkitError: it is not there.
        """
        module, qualname = parse_reference(reference)
        return find_symbol(self.upstream(version or self.base).read(module), qualname)

    def upstream(self, version: str) -> Any:
        """One release; an explicit source `NAME@VERSION` is for that version."""
        name, given = self.distribution, self.options.sources
        path = given.get(f"{name}@{version}", given.get(name))
        options = replace(self.options, sources={name: path} if path is not None else {})
        return opened(name, Pin(distribution=name, version=version), options)

    def manifest(self, reference: str, delta: str) -> str:
        """The manifest of one entry with one delta."""
        head = _MANIFEST.format(name=self.distribution, symbol=reference)
        return head + textwrap.indent(delta.strip("\n") + "\n", " " * 6)

    def parse(self, reference: str, delta: str) -> Delta:
        """The delta as the manifest's model has it.

        Raises:
            ManifestError: it is not valid.
        """
        entry = parse_manifest(self.manifest(reference, delta).encode(), "manifests/proof/one.yaml").entries[0]
        assert isinstance(entry, Entry)
        return entry.deltas[0]

    def carry(self, reference: str, delta: str, version: str) -> Carried:
        """Let `upgrade` classify the delta at a release."""
        path = self.folder / "manifests" / "proof" / "one.yaml"
        path.write_text(self.manifest(reference, delta), encoding="utf-8")
        _judged.clear()
        found = upgrade(self.project, pin_overrides={self.distribution: version}, options=self.options)
        if len(found.entries) != 1:
            raise UpstreamError(*found.findings)
        result = found.entries[0]
        if any(f.code == "PK505" for f in result.reasons):
            return Carried(None, why=tuple(f.code for f in result.reasons if f.code != "PK505"))
        return Carried(result, any(j.abstained for j in _judged))


# ---- what one process keeps ------------------------------------------------------------------------------------------
# A run of thousands of upgrades opens a release once and looks for a symbol that is gone once; both are pure functions of
# what is given. The judgements are recorded on their way: results do not say whether the second method abstained.

_judged: list[Judged] = []
_found: dict[tuple[str, str], Any] = {}
_opened: dict[tuple[Any, ...], Any] = {}


def opened(name: str, pin: Pin, options: SourceOptions) -> Any:
    """The release, opened when it is first asked for."""
    key = (name, pin.version, tuple(sorted(f"{k}={v}" for k, v in options.sources.items())))
    if key not in _opened:
        _opened[key] = open_upstream(name, pin, options)
    return _opened[key]


def _open(name: str, pin: Pin, options: SourceOptions, **_: Any) -> Any:
    return opened(name, pin, options)


def _recorded(change: Any) -> Judged:
    judged = judge(change)
    _judged.append(judged)
    return judged


def _search_once(record: Any, base: Any, release: Any) -> Any:
    key = (record["symbol"], release.upstream.version)
    if key not in _found:
        _found[key] = search(record, base, release)
    return _found[key]


def no_aliases(*_: Any, **__: Any) -> tuple[()]:
    return ()


_aliases = Upgrader._aliases
_REPLACED: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (open_upstream, _open),
    (judge, _recorded),
    (search, _search_once),
)


def remember() -> None:
    """Let this process keep releases and searches, record judgements, and leave out the alias report, which reads whole releases."""
    for function, ours in _REPLACED:
        swap(function, ours)
    Upgrader._aliases = no_aliases  # type: ignore[method-assign]


def forget() -> None:
    """Undo `remember`."""
    for function, ours in _REPLACED:
        swap(ours, function)
    Upgrader._aliases = _aliases  # type: ignore[method-assign]
    _judged.clear()
    _found.clear()
    _opened.clear()


def swap(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Put `new` wherever a module of the engine holds `old` by name."""
    for module in [m for name, m in sys.modules.items() if name.startswith("afd_patchkit.")]:
        for name in [n for n, value in vars(module).items() if value is old]:
            setattr(module, name, new)
