"""Errors carry their findings, also from one process to another."""

from __future__ import annotations

import pickle

import pytest

from afd_patchkit.findings.errors import DeltaError, ManifestError, NameResolutionError, PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Position, finding


@pytest.mark.parametrize("cls", [PatchkitError, ManifestError, UpstreamError, DeltaError, NameResolutionError])
def test_an_error_crosses_processes_with_its_findings(cls: type[PatchkitError]) -> None:
    error = cls(
        finding("PK201", "one", manifest=Position("m.yaml", 3, 5), details=("a",)),
        finding("PK404", "two", entry="m.py::f"),
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert again.findings == error.findings
    assert str(again) == "PK201: one; PK404: two"
