from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.engine.sample import Sample


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
    """A project without manifests; tests write their own upstream modules and manifests."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    out = Sample(tmp_path / "project")
    (out.root / "manifests/acme_set/runner.yaml").unlink()
    return out
