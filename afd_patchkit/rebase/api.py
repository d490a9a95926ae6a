"""`upgrade` and `accept` for scripts and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from afd_patchkit.errors import PatchkitError
from afd_patchkit.project import Project
from afd_patchkit.rebase.model import UpgradeResult
from afd_patchkit.rebase.run import Upgrader

if TYPE_CHECKING:
    from afd_patchkit.api import Progress
    from afd_patchkit.upstream.settings import SourceOptions


def upgrade(
    project: Project,
    *,
    pin_overrides: Mapping[str, str],
    options: SourceOptions | None = None,
    write: bool = False,
    progress: Progress | None = None,
) -> UpgradeResult:
    """Re-apply every entry on another release and say what happened.

    Args:
        project: what to work on.
        pin_overrides: one pin or distribution, and the version or commit it moves to.
        options: where upstreams may come from.
        write: move pin, lock and modules, if nothing is left for a person to decide.
        progress: told about entries.

    Returns:
        the result; user errors are findings in it, never exceptions.
    """
    try:
        upgrader = Upgrader(project, options)
    except PatchkitError as error:
        name, version = next(iter(pin_overrides.items()), ("", ""))
        return UpgradeResult(name, name, "", version, findings=error.findings)
    result = upgrader.to(pin_overrides, progress)
    return replace(result) if not write else result
