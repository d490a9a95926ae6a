from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.sample import Sample
from tests.invented import forget


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sample]:
    """A project without manifests; tests write their own upstream modules and manifests."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    out = Sample(tmp_path / "project")
    (out.root / "manifests/acme_set/runner.yaml").unlink()
    yield out
    forget()
