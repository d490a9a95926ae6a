"""What of a project goes into its distributions, and what keeps it from being shipped. Needs nothing but what is cheap to import."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.project import Project
from afd_patchkit.run import lock as locks
from afd_patchkit.run.compare import check_files, stale_inputs
from afd_patchkit.run.lock import Lock
from afd_patchkit.run.ownership import licence_paths, module_path, outline_path, typed_marker
from afd_patchkit.run.support import support_files

HELP = "run `afd-patchkit regen`, then build again"


class NotReady(Exception):
    """The generated modules are not what the lock says; the text says what is wrong, and what to run."""


def shipped(project: Project) -> dict[str, Path]:
    """The generated files by their path in a wheel: modules, what stands beside them, `py.typed`, licence files.

    Raises:
        NotReady: they are not there, or are not what the lock says.
    """
    lock = _sound(project)
    live = [name for name, module in lock["modules"].items() if "sha256" in module]
    files = {
        *(module_path(project, name) for name in live),
        *support_files(project, lock),
        *licence_paths(project, lock),
    }
    files |= {typed_marker(project)} if live else set()
    return {path.relative_to(project.generated).as_posix(): path for path in sorted(files)}


def sources(project: Project) -> list[Path]:
    """What a source distribution needs, so that a wheel can be built of it: what is shipped, settings, lock, outlines.

    Raises:
        NotReady: as `shipped`.
    """
    files = list(shipped(project).values())
    lock = _sound(project)
    outlines = [outline_path(project, name) for name, module in lock["modules"].items() if "sha256" in module]
    return sorted([*files, *outlines, project.settings, project.lock, *_inputs(project)])


def _inputs(project: Project) -> list[Path]:
    return [path for path in project.input_files() if path.is_file()]


def _sound(project: Project) -> Lock:
    try:
        lock = locks.load(project.lock, project.shown(project.lock))
        problems = list(_problems(project, lock))
    except PatchkitError as error:
        lock, problems = (
            None,
            [f"{f.generated or f.manifest or ''}: {f.message}".removeprefix(": ") for f in error.findings],
        )
    if problems or lock is None:
        raise NotReady("\n  ".join(["the generated modules cannot be shipped:", *problems, f"{HELP} ({project.root})"]))
    return lock


def _problems(project: Project, lock: Lock | None) -> Iterator[str]:
    if lock is None:
        yield f"{project.shown(project.lock)} is not there"
        return
    for pin, version in sorted(lock.get("overrides", {}).items()):
        yield f"they were generated for {pin} {version}, which is not the pinned version"
    for found in check_files(project, lock, complete=True):
        yield f"{found.generated}: {found.message}"
    if project.pins.is_file():  # a source distribution may lack the manifests: then digests are all there is
        yield from (
            f"{name} changed since they were generated" for name in stale_inputs(lock, locks.current_inputs(project))
        )
