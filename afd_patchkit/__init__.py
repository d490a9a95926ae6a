"""afd-patchkit: keep copied and adapted upstream code alive.

The public API is what stands in `__all__`; everything below the subpackages may change between releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afd_patchkit.version import __version__

if TYPE_CHECKING:
    from afd_patchkit.api import check, load_project, regen
    from afd_patchkit.findings.errors import ManifestError, PatchkitError, UpstreamError
    from afd_patchkit.findings.finding import Finding, Position, Severity
    from afd_patchkit.findings.report import ModuleReport, PinReport, Report
    from afd_patchkit.project import Project

_HOMES = {
    "check": "api",
    "load_project": "api",
    "regen": "api",
    "ManifestError": "findings.errors",
    "PatchkitError": "findings.errors",
    "UpstreamError": "findings.errors",
    "Project": "project",
    "ModuleReport": "findings.report",
    "PinReport": "findings.report",
    "Report": "findings.report",
    "Finding": "findings.finding",
    "Position": "findings.finding",
    "Severity": "findings.finding",
}

__all__ = [
    "Finding",
    "ManifestError",
    "ModuleReport",
    "PatchkitError",
    "PinReport",
    "Position",
    "Project",
    "Report",
    "Severity",
    "UpstreamError",
    "__version__",
    "check",
    "load_project",
    "regen",
]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: `afd_patchkit.__version__` must cost nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'afd_patchkit' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"afd_patchkit.{home}"), name)
