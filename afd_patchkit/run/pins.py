"""The pins of a run: at the version that the user asks for, opened with what the lock knows of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.findings.report import PinReport
from afd_patchkit.model import Pin, Pins
from afd_patchkit.run.lock import Lock
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream, pin_report
from afd_patchkit.upstream.verified import SourceUpstream


def overridden(pins: Pins, overrides: Mapping[str, str]) -> tuple[Pins, dict[str, str]]:
    """The pins with other versions or commits; the second result names those that really moved.

    Raises:
        ManifestError: an override names no pin (PK091).
    """
    changed = dict(pins.pins)
    moved: dict[str, str] = {}
    for name, version in overrides.items():
        found = (
            [n for n, p in pins.pins.items() if n == name and p.role == "target"]
            or [n for n, p in pins.pins.items() if p.distribution == name and p.role == "target"]
            or [n for n in pins.pins if n == name]
        )
        if not found:
            raise _unknown(pins, name)
        pin = pins.pins[found[0]]
        new = pin.moved(version)
        if new != pin:
            changed[found[0]] = new
            moved[found[0]] = version
    return pins.model_copy(update={"pins": changed}), moved


def selected(pins: Pins, names: Collection[str]) -> dict[str, Pin]:
    """The pins of these names; all when none is named.

    Raises:
        ManifestError: there is no such pin (PK091).
    """
    for name in names:
        if name not in pins.pins:
            raise _unknown(pins, name)
    return {name: pin for name, pin in pins.pins.items() if not names or name in names}


def _unknown(pins: Pins, name: str) -> ManifestError:
    return ManifestError(
        finding("PK091", f"no pin or distribution is named {name}", help=f"Pins: {', '.join(sorted(pins.pins))}.")
    )


class Opener:
    """Opens each pin once, with what the lock knows of it."""

    def __init__(self, options: SourceOptions, lock: Lock | None, pins: Pins) -> None:
        self.options, self.lock, self.pins = options, lock, pins
        self.opened: dict[str, SourceUpstream] = {}

    def __call__(self, name: str, pin: Pin) -> SourceUpstream:
        """The upstream of a pin, opened when first asked for."""
        upstream = self.opened.get(name)
        if upstream is None:
            known = self.known(name)
            artifact = None
            files: dict[str, str] = {}
            if known is not None:
                files = {path: found["raw"] for path, found in known["files"].items()}
                if known["artifact"]["sha256"] and name not in self.options.sources:
                    artifact = Artifact(**known["artifact"])
            upstream = open_upstream(name, pin, self.options, locked=files, locked_artifact=artifact)
            self.opened[name] = upstream
        return upstream

    def known(self, name: str) -> Mapping[str, Any] | None:
        """The lock's record of the pin, if it is the same release."""
        record_ = (self.lock or {}).get("pins", {}).get(name)
        pin = self.pins.pins[name]
        if record_ and record_["version"] == pin.version and record_["distribution"] == pin.distribution:
            return record_ if record_.get("git") == pin.source_commit else None
        return None

    def reports(self) -> tuple[PinReport, ...]:
        """What each opened pin was read from."""
        return tuple(pin_report(self.opened[name]) for name in sorted(self.opened))
