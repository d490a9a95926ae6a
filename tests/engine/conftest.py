from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.sample import Sample
from tests.invented import forget


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sample]:
    """A project that regenerates."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield Sample(tmp_path / "project")
    forget()
