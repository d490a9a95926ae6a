"""What the user says about one run of `regen` or `check`. Cheap to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afd_patchkit.findings.report import Progress
    from afd_patchkit.upstream.options import SourceOptions


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How modules are generated in one run.

    Attributes:
        overrides: pin or distribution name to version, in place of the pinned one. With another version than the
            pinned one modules are written only if no entry needs a person, and beside the generated folder: lock and
            outlines of the pinned one stay.
        modules: only these (paths below the generated package root, or the ends of such paths).
        sources: where upstreams may come from.
        full: regenerate also what digests prove unchanged, and prove each entry a second time.
        jobs: worker processes; by default one below 400 entries.
        progress: told about modules.
        into: the folder for modules, outlines and lock, in place of the generated one; with other versions than the
            pinned ones the default is `<generated>-<pin>-<version>` beside it.
    """

    overrides: Mapping[str, str] = field(default_factory=dict)
    modules: Sequence[str] = ()
    sources: SourceOptions | None = None
    full: bool = False
    jobs: int | None = None
    progress: Progress | None = None
    into: Path | None = None
