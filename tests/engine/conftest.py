from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.engine.sample import Sample


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
    """A project that regenerates."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Sample(tmp_path / "project")
