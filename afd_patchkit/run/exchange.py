"""Write the generated folder in one step: after a crash, a kill or a full disk the old state stands, or the new one.

The new state is prepared in a folder beside the old one and the two are exchanged. Linux and macOS can exchange two
folders in one atomic call; elsewhere two renames do it, and `recover` ends what a kill between them left.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from afd_patchkit.digests import short
from afd_patchkit.files import replace_file
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.project import Project

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
WAIT = 600.0
"""Seconds that a run waits for another one that writes the same project."""


def staging(folder: Path) -> Path:
    """Where the new state of `folder` is prepared; behind the exchange, the old state until it is removed."""
    return folder.with_name(f".{folder.name}.patchkit-new")


def retired(folder: Path) -> Path:
    """Where the old state of `folder` waits to be removed, on systems that cannot exchange two folders."""
    return folder.with_name(f".{folder.name}.patchkit-old")


def interrupted(folder: Path) -> bool:
    """Whether a killed run left something for `recover`."""
    return any(os.path.lexists(place) for place in (staging(folder), retired(folder)))


def recover(folder: Path) -> None:
    """End what a killed run left: bring the old state back if it was moved away, drop unfinished work.

    The caller holds `exclusive`: what another run prepares must not be taken for what a killed one left.
    """
    if retired(folder).is_dir() and not folder.exists():
        os.replace(retired(folder), folder)
    for leftover in (staging(folder), retired(folder)):
        _drop(leftover)


def replace_files(folder: Path, files: Mapping[str, bytes], removed: Collection[str]) -> None:
    """Write `files` into `folder` and take `removed` out, all or nothing; other files stay as they are.

    The caller holds `exclusive`.

    Args:
        folder: the generated folder.
        files: path below `folder` to content.
        removed: paths below `folder`.

    Raises:
        PatchkitError: it cannot be written (PK111); the old state is intact.
    """
    new = staging(folder)
    seen: dict[str, tuple[int, int]] = {}
    try:
        _writable(folder, [*files, *removed])
        recover(folder)
        if folder.is_dir():
            seen = _stamps(folder)
            shutil.copytree(folder, new, symlinks=True, copy_function=_link)
        else:
            new.mkdir(parents=True)
        for name in removed:
            _remove(new, new / name)
        for name, data in sorted(files.items()):
            _write(new / name, data)
        _sync(new)
        _exchange(new, folder)
    except OSError as error:
        _drop(new)
        raise PatchkitError(
            finding(
                "PK111",
                f"{folder.name}/ cannot be written: {error.strerror or error}",
                generated=Position(str(error.filename or folder)),
                help="Nothing was changed. Free the disk or mend the permissions and run it again.",
            )
        ) from error
    for old in (new, retired(folder)):
        if old.is_dir():
            _rescue(old, folder, seen, {*files, *removed})
        _drop(old)


def _writable(folder: Path, names: Collection[str]) -> None:
    """Refuse a folder that is meant to be read only: its copy would be, too, and could not be removed."""
    places = {folder, *(folder.joinpath(name).parent for name in names)}
    for place in sorted(places):
        if place.is_dir() and not (os.access(place, os.W_OK) and place.stat().st_mode & stat.S_IWUSR):
            raise PermissionError(errno.EACCES, "it is read only", str(place))


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of change of every file: what tells that somebody else wrote it meanwhile."""
    found = {}
    for current, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(current, name)
            facts = os.lstat(path)
            found[os.path.relpath(path, folder)] = (facts.st_ino, facts.st_mtime_ns)
    return found


def _rescue(old: Path, folder: Path, seen: Mapping[str, tuple[int, int]], ours: Collection[str]) -> None:
    """Take over what somebody saved in the old folder while the new one was prepared."""
    for name, stamp in _stamps(old).items():
        if name.replace(os.sep, "/") not in ours and seen.get(name) != stamp:
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(old / name, place)


def _drop(path: Path) -> None:
    """Remove a folder of the tool's own beside the generated one, whatever its permissions; a link is only unlinked."""
    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    if path.is_dir():
        for current, _, _ in os.walk(path):
            with suppress(OSError):
                os.chmod(current, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _link(source: str, target: str) -> str:
    """Hard-link an unchanged file; copy it where links do not work. Files are never changed in place."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)  # a new file: what is there may be a link to the old state's


def _remove(root: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == root or any(parent.iterdir() if parent.is_dir() else ()):
            return
        parent.rmdir()


def _sync(folder: Path) -> None:
    if os.name != "posix":
        return
    for current, _, _ in os.walk(folder):
        handle = os.open(current, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _exchange(new: Path, folder: Path) -> None:
    """Put `new` where `folder` is; `new` holds the old state afterwards, or is gone."""
    if not folder.exists():
        os.replace(new, folder)
        return
    if _swapped(new, folder):
        return
    os.replace(folder, retired(folder))
    os.replace(new, folder)


def _swapped(one: Path, other: Path) -> bool:
    """Exchange two folders in one call, where the system can."""
    if not sys.platform.startswith(("linux", "darwin")):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            return bool(libc.renamex_np(a, b, ctypes.c_uint(_RENAME_SWAP)) == 0)
        return bool(libc.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, ctypes.c_uint(_RENAME_EXCHANGE)) == 0)
    except AttributeError:
        return False


@contextmanager
def exclusive(project: Project) -> Iterator[None]:
    """One writing run at a time for one project; reading takes nothing.

    Whatever a run decides on, above all the lock, it reads in here. The project's folder itself is what is locked, where
    the system can do that: no file is left anywhere. Elsewhere it is a file in the user's state folder.

    Raises:
        PatchkitError: another run holds it for long (PK112).
    """
    folder = project.root
    take, release = _folder_lock(folder) if fcntl is not None else _file_lock(folder)
    deadline = time.monotonic() + WAIT
    try:
        while not take():
            if time.monotonic() > deadline:
                raise PatchkitError(
                    finding(
                        "PK112",
                        f"another run is writing {project.generated.name}/",
                        generated=Position(project.shown(project.generated)),
                        help="Wait for it, or end it: a run that is killed lets go of the project.",
                    )
                )
            time.sleep(0.05)
        yield
    finally:
        release()


_Lock = tuple[Callable[[], bool], Callable[[], None]]


def _folder_lock(folder: Path) -> _Lock:
    descriptor = os.open(folder, os.O_RDONLY)

    def take() -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    try:
        if take():
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    except OSError:  # a file system, for instance NFS, on which folders cannot be locked
        os.close(descriptor)
        return _file_lock(folder)
    return take, lambda: os.close(descriptor)


def _file_lock(folder: Path) -> _Lock:
    import platformdirs
    from filelock import FileLock, Timeout

    place = Path(platformdirs.user_state_dir("afd-patchkit", appauthor=False))
    place.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place / f"{short(str(folder.resolve()), 16)}.lock")

    def take() -> bool:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    return take, lock.release
