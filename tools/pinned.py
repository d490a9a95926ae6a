"""The pinned upstreams, opened for the project's own checks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.manifest.load import parse_pins
from afd_patchkit.model import Pin
from afd_patchkit.upstream.resolve import SourceOptions, SourceUpstream, open_upstream
from tools.environments import ROOT


def pins() -> dict[str, Pin]:
    """The pins of this repository's `pins.yaml`."""
    path = ROOT / "manifests/pins.yaml"
    return parse_pins(path.read_bytes(), "manifests/pins.yaml").pins


def options(sources: Sequence[str], *, offline: bool) -> SourceOptions:
    """Where upstreams come from; `sources` are `NAME=PATH`."""
    named = dict(source.split("=", 1) for source in sources)
    return SourceOptions(sources={name: Path(path) for name, path in named.items()}, offline=offline)


def opened(name: str, pin: Pin, settings: SourceOptions) -> SourceUpstream | None:
    """The upstream of a pin; None, with a word why, when its source cannot be had (a commit that is on no index, say)."""
    try:
        return open_upstream(name, pin, settings)
    except UpstreamError as error:
        print(f"{name} ({pin.distribution} {pin.version}): {error.findings[0].message}", file=sys.stderr)
        return None
