"""The upstreams of a run, by pin and by role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import finding
from afd_patchkit.model import Pin, Pins
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

Opener = Callable[[str, Pin], Upstream]
"""Gives the upstream of a pin; the same object when asked again."""


@dataclass(frozen=True)
class Workspace:
    """Pins and the upstreams behind them, opened when first needed.

    Attributes:
        pins: the pins of this run (overrides applied).
        open: opens the upstream of a pin.
    """

    pins: Pins
    open: Opener

    def upstream(self, name: str) -> Upstream:
        """The upstream of pin `name`.

        Raises:
            UpstreamError: it cannot be had.
        """
        return self.open(name, self.pins.pins[name])

    def read(self, pin: str, module: str) -> SourceFile:
        """Read one module of one pin."""
        return self.upstream(pin).read(module)

    def target_of(self, name: str) -> Upstream:
        """The target that code of pin `name` must run on: the pin itself, or the target pin of its distribution.

        Raises:
            UpstreamError: a donor's distribution has no target pin (PK420), or it cannot be had.
        """
        pin = self.pins.pins[name]
        if pin.role == "target":
            return self.upstream(name)
        for other, candidate in self.pins.pins.items():
            if candidate.role == "target" and candidate.distribution == pin.distribution:
                return self.upstream(other)
        raise UpstreamError(
            finding(
                "PK420",
                f"donor pin {name} has no target: no pin of {pin.distribution} has `role: target`",
                help="Add the target pin of that distribution to pins.yaml.",
            )
        )

    def targets(self) -> Mapping[str, Upstream]:
        """Import package to target upstream, opened when asked for."""
        return _Targets(self)

    def providers(self, module: str) -> Iterator[Upstream]:
        """The upstreams whose import packages a module lies in, targets first; each is opened when it is its turn."""
        pins = sorted(self.pins.pins.items(), key=lambda item: (item[1].role != "target", item[0]))
        for name, pin in pins:
            if pin.provides(module):
                yield self.upstream(name)

    def describe(self, name: str) -> str:
        """How a pin is named in comments: distribution, version, commit."""
        pin = self.pins.pins[name]
        commit = pin.revision
        return f"{pin.distribution} {pin.version}" + (f" (commit {commit[:10]})" if commit else "")


class _Targets(Mapping[str, Upstream]):
    """Import package to target upstream; opening is left until a package is asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names = {
            package: name
            for name, pin in workspace.pins.pins.items()
            if pin.role == "target"
            for package in pin.import_packages
        }

    def __getitem__(self, package: str) -> Upstream:
        return self._workspace.upstream(self._names[package])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
