"""What the user says about the sources of one run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from afd_patchkit.findings.report import Progress, Waits
from afd_patchkit.upstream.cache import Store
from afd_patchkit.upstream.settings import IndexSettings, index_settings, timeout_setting

if TYPE_CHECKING:
    from afd_patchkit.upstream.network import Network

CACHE_VARIABLE = "AFD_PATCHKIT_CACHE"


@dataclass(frozen=True)
class SourceOptions:
    """Where upstreams may come from in one run; pins opened with the same object share connections and index pages.

    Attributes:
        sources: explicit sources by pin name: a source tree, an sdist or a wheel file.
        offline: use explicit sources, cache and installed distributions only.
        cache_dir: the cache folder; None for the user's cache folder, or `AFD_PATCHKIT_CACHE`.
        index_urls: simple-API addresses, the first that has the release wins; None reads the usual settings when needed.
        ca_file: certificate bundle (file or folder); None reads the usual settings.
        timeout: seconds without an answer or data after which a connection counts as stalled; None reads the usual settings.
        retries: how often a request is repeated after a connection error, a truncated body, 429 or 5xx.
        backoff: seconds before the first repetition; doubled for each further one.
        progress: told about long downloads.
        waits: told about what has been waited for longer than a second.
        search_path: folders with installed distributions; None for those of the running interpreter.
    """

    sources: Mapping[str, Path] = field(default_factory=dict)
    offline: bool = False
    cache_dir: Path | None = None
    index_urls: tuple[str, ...] | None = None
    ca_file: str | None = None
    timeout: float | None = None
    retries: int = 3
    backoff: float = 0.4
    progress: Progress | None = None
    waits: Waits | None = None
    search_path: tuple[str, ...] | None = None

    @cached_property
    def store(self) -> Store:
        """The cache of this run."""
        return Store(self.cache_dir or default_cache_dir())

    @cached_property
    def index(self) -> IndexSettings:
        """The package index that this run asks."""
        found = index_settings()
        urls = self.index_urls if self.index_urls is not None else found.urls
        return IndexSettings(
            urls, self.ca_file or found.ca_file, None if self.index_urls is not None else found.disabled
        )

    @cached_property
    def network(self) -> Network:
        """The connections of this run, opened when they are first needed."""
        from afd_patchkit.upstream.network import Network

        return Network(self.index, timeout=self.patience, retries=self.retries, backoff=self.backoff, waits=self.waits)

    @cached_property
    def patience(self) -> float:
        """Seconds without an answer or data after which a connection counts as stalled."""
        return self.timeout if self.timeout is not None else timeout_setting()


def default_cache_dir() -> Path:
    """`AFD_PATCHKIT_CACHE`, or the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("afd-patchkit", appauthor=False))
