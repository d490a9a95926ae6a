"""A quiet environment, a local package index, and short ways to open pins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.model import Pin
from afd_patchkit.upstream.resolve import SourceOptions, SourceUpstream, open_upstream
from tests.upstream.server import Index, Running

Open = Callable[..., SourceUpstream]

_NOISE = ("PIP_", "UV_", "GIT_", "AFD_")
_NAMES = {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"}


@pytest.fixture(autouse=True)
def _quiet(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's settings reaches a test, unless it is about the real index."""
    if request.node.get_closest_marker("upstream") is not None:
        return
    for name in list(os.environ):
        if name.startswith(_NOISE) or name in _NAMES or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def index() -> Iterator[Index]:
    with Running() as running:
        yield running


@pytest.fixture
def options(index: Index, tmp_path: Path) -> Callable[..., SourceOptions]:
    """Options that know only the local index and an own cache, and are impatient."""

    def make(**fields: Any) -> SourceOptions:
        defaults: dict[str, Any] = {
            "index_urls": (index.simple,),
            "cache_dir": tmp_path / "cache",
            "search_path": (),
            "timeout": 600.0,  # what stalls in a test has a time-out of its own
            "retries": 2,
            "backoff": 0.01,
        }
        return SourceOptions(**(defaults | fields))

    return make


@pytest.fixture
def open_acme(options: Callable[..., SourceOptions]) -> Open:
    """Open the pin `acme`; what `Pin` and `open_upstream` take goes there, the rest to the options."""

    def call(**fields: Any) -> SourceUpstream:
        locks = {key: fields.pop(key) for key in ("locked", "locked_artifact") if key in fields}
        pin = {
            key: fields.pop(key) for key in ("distribution", "version", "git", "packages", "commit") if key in fields
        }
        chosen = fields.pop("given", None) or options(**fields)
        return open_upstream("acme", Pin(**{"distribution": "acme", "version": "1.0", **pin}), chosen, **locks)

    return call


def code(error: pytest.ExceptionInfo[UpstreamError]) -> str:
    """The finding code of an error."""
    return error.value.findings[0].code


def everything(error: pytest.ExceptionInfo[UpstreamError]) -> str:
    """All that the user would read."""
    return "\n".join(line for f in error.value.findings for line in (f.message, *f.details, f.help or ""))
