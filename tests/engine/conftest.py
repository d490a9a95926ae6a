from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.sample import Sample


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """A project that regenerates."""
    return Sample(tmp_path / "project")
