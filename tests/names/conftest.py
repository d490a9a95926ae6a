from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.names.world import World, importable


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes a world of files, importable for the time of the test."""

    def make(files: Mapping[str, str], donor: Mapping[str, str] | None = None) -> World:
        return World(tmp_path, files, donor)

    with importable(tmp_path):
        yield make
