"""Write what a run has changed, and take out what no manifest generates any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from afd_patchkit.assemble.result import ModuleResult
from afd_patchkit.files import read_regular
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.project import Project
from afd_patchkit.run import lock as locks
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.ownership import in_the_way, leftovers, module_path, outline_path
from afd_patchkit.run.support import support_files


def write_generated(
    project: Project,
    old: Lock | None,
    new: Lock,
    results: Sequence[ModuleResult],
    extra: Mapping[str, bytes] | None = None,
) -> tuple[list[str], list[str]]:
    """Write what changed, and `extra` files of the generated folder, in one step. The caller holds `exclusive`.

    Args:
        project: the project.
        old: the lock on disk, read since `exclusive` is held.
        new: the lock to write.
        results: the modules that were generated; those without text keep their files.
        extra: further files, path below the generated folder to content.

    Returns:
        the written and the removed paths, as the user would type them.

    Raises:
        PatchkitError: files that are not the tool's are in the way (PK104, PK115), or it cannot be written (PK111);
            nothing was changed.
    """
    from afd_patchkit.run.exchange import replace_files

    wanted = {project.generated / name: data for name, data in (extra or {}).items()}
    for result in results:
        if result.text:
            wanted[module_path(project, result.module)] = result.text.encode()
            wanted[outline_path(project, result.module)] = result.outline.encode()
    support = support_files(project, new)
    wanted |= support
    wanted[project.lock] = locks.dumps(new)
    removed, problems = leftovers(project, new, support, old)
    problems = in_the_way(project, wanted, old) + problems
    if problems:
        raise PatchkitError(*problems)
    changed = {_below(project, path): data for path, data in wanted.items() if not _same(path, data)}
    gone = [_below(project, path) for path in removed]
    if changed or gone:
        replace_files(project.generated, changed, gone)
    prefix = project.shown(project.generated)
    return [f"{prefix}/{name}" for name in sorted(changed)], [f"{prefix}/{name}" for name in sorted(gone)]


def _below(project: Project, path: Path) -> str:
    return path.relative_to(project.generated).as_posix()


def _same(path: Path, data: bytes) -> bool:
    try:
        return read_regular(path) == data
    except OSError:
        return False


def touched(project: Project, result: ModuleResult, written: Sequence[str]) -> bool:
    """Whether a module is among the written paths."""
    return project.shown(module_path(project, result.module)) in written
