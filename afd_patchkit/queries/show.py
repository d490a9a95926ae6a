"""Upstream's text of any symbol, whether an entry is about it or not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import kwlist

from afd_patchkit.findings.errors import DeltaError, ManifestError, PatchkitError, UpstreamError
from afd_patchkit.findings.finding import finding
from afd_patchkit.findings.nearest import nearest
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.model import Manifest, Pin
from afd_patchkit.project import Project
from afd_patchkit.run.lock import load
from afd_patchkit.run.pins import Opener, overridden, selected
from afd_patchkit.source.locate import definitions, every_symbol
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import NoModuleError, Upstream
from afd_patchkit.upstream.options import SourceOptions

_SHOWN = 20
_DEFINED = re.compile(rb"^[ \t]*(?:(?:async[ \t]+)?def[ \t]+|class[ \t]+)?(\w+)[ \t]*[=:(\[]", re.MULTILINE)
"""What may be a definition: to find the files that are worth parsing."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One definition of a symbol.

    Attributes:
        symbol: `package.module:Qual.name`; of a module its name.
        pin: the pin that has it.
        version: of that pin.
        file: the file's path in the distribution.
        lines: number and text of each of its lines, in order; between the parts of a group some are left out.
        conditions: the headers of `if` and `try` around it, outermost first.
    """

    symbol: str
    pin: str
    version: str
    file: str
    lines: tuple[tuple[int, str], ...]
    conditions: tuple[str, ...] = ()


def show(
    project: Project,
    name: str,
    *,
    overrides: Mapping[str, str] | None = None,
    pins: Sequence[str] = (),
    sources: SourceOptions | None = None,
) -> list[Shown]:
    """Upstream's text of a symbol: every definition, where several branches define it.

    Args:
        project: whose pins are read.
        name: `package.module:Qual.name`, the same with dots only, a module, or an end of a qualified name that only one
            symbol of the pins has.
        overrides: pin or distribution name to version, in place of the pinned one.
        pins: the pins to look in, in this order; by default all, target pins first.
        sources: where upstreams may come from.

    Raises:
        PatchkitError: there is no such symbol (PK205) or several (PK206), no such pin (PK091), or an upstream cannot be had.
    """
    loaded = load_manifests(project)
    known, _ = overridden(loaded.pins, overrides or {})
    chosen = (
        selected(known, pins) if pins else dict(sorted(known.pins.items(), key=lambda item: item[1].role != "target"))
    )
    opener = Opener(sources or SourceOptions(), load(project.lock, project.shown(project.lock)), known)
    if not all(part.isidentifier() for part in re.split("[.:]", name)) or name.count(":") > 1:
        raise ManifestError(
            finding("PK006", f"{name!r} is not a symbol", help="Write `package.module:Qual.name`, or an end of it.")
        )
    return _Search(opener, chosen).named(name, loaded.manifests)


class _Search:
    """The pins to look in, opened when they are needed."""

    def __init__(self, opener: Opener, pins: Mapping[str, Pin]) -> None:
        self._opener, self._pins = opener, pins

    def named(self, name: str, manifests: Sequence[Manifest]) -> list[Shown]:
        """What a name means: in full, else as manifests have it, else anywhere in the pins."""
        head = name.partition(":")[0].partition(".")[0]
        owners = [
            pin for pin, item in self._pins.items() if any(head == p.partition(".")[0] for p in item.import_packages)
        ]
        if ":" in name or owners:
            return self._in_full(name, owners or list(self._pins))
        symbols = {
            entry.symbol.text.strip()
            for manifest in manifests
            for entry, _ in manifest.all_entries()
            if entry.symbol is not None and (entry.pin or manifest.pin) in self._pins
        }
        found = {symbol for symbol in symbols if _ends(symbol.partition(":")[2], name)}
        if len(found) == 1:
            return self._in_full(next(iter(found)), list(self._pins))
        return self._anywhere(name)

    def _in_full(self, name: str, pins: Sequence[str]) -> list[Shown]:
        """The first pin that has it gives it; none: what the first pin says is wrong."""
        errors: list[PatchkitError] = []
        for pin in pins:
            upstream = self._opener(pin, self._pins[pin])
            try:
                module, qualname = _split(name, upstream)
                return self._texts(upstream, upstream.read(module), qualname)
            except (NoModuleError, DeltaError) as error:
                errors.append(error)
        raise errors[0]

    def _texts(self, upstream: Upstream, file: SourceFile, qualname: str) -> list[Shown]:
        if not qualname:
            spans = [(((1, file.line_count),), file.module, ())]
        else:
            spans = [(s.line_ranges, s.reference, s.conditions) for s in every_symbol(file, qualname)]  # type: ignore[misc]
        return [
            Shown(
                reference, upstream.pin, upstream.version, file.path,
                tuple((n, file.lines(n, n)[0].rstrip("\n")) for first, last in ranges for n in range(first, last + 1)), conditions,
            )
            for ranges, reference, conditions in spans
        ]  # fmt: skip

    def _anywhere(self, name: str) -> list[Shown]:
        """The one symbol of all the pins whose qualified name ends so; of several pins with it the first."""
        last = name.rpartition(".")[2]
        seen: set[str] = set()
        lost: list[PatchkitError] = []
        for pin, item in self._pins.items():
            try:
                upstream = self._opener(pin, item)
            except UpstreamError as error:
                lost.append(error)
                continue
            found = {}
            for module, data in _modules(upstream, item):
                names = {word.decode() for word in _DEFINED.findall(data)}
                seen |= names
                if last in names:
                    file = upstream.read(module)
                    for known in definitions(file):
                        qualname = ".".join([*(c.name for c in known.classes), known.name])
                        if _ends(qualname, name):
                            found[f"{module}:{qualname}"] = file
            if len(found) > 1:
                more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
                raise DeltaError(
                    finding(
                        "PK206",
                        f"{name} names {len(found)} symbols of pin {pin}",
                        details=(*list(found)[:_SHOWN], *more),
                        help="Write more of the one that is meant.",
                    )
                )
            for symbol, file in found.items():
                return self._texts(upstream, file, symbol.partition(":")[2])
        near = nearest(last, seen.difference(kwlist))
        missing = finding(
            "PK205",
            f"no pin that was searched ({', '.join(self._pins)}) defines {name}",
            details=tuple(f"near: {known}" for known in near),
            help="Write `package.module:Qual.name`, or an end of it.",
        )
        raise (UpstreamError if lost else DeltaError)(missing, *(f for error in lost for f in error.findings))


def _ends(qualname: str, name: str) -> bool:
    return f".{qualname}".endswith(f".{name}")


def _split(name: str, upstream: Upstream) -> tuple[str, str]:
    """Module and qualified name; of a dotted name the longest beginning that is a module."""
    module, colon, qualname = name.partition(":")
    if colon:
        return module, qualname
    modules = set(upstream.modules())
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        if (module := ".".join(parts[:n])) in modules:
            return module, ".".join(parts[n:])
    return name, ""


def _modules(upstream: Upstream, pin: Pin) -> Iterator[tuple[str, bytes]]:
    folders = tuple(f"{package.replace('.', '/')}{end}" for package in pin.import_packages for end in ("/", ".py"))
    modules = set(upstream.modules())
    for path, data in upstream.package_files():
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if path.startswith(folders) and module in modules:
            yield module, data
