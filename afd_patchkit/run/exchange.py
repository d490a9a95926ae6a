"""Write the generated folder in one step: after a crash, a kill or a full disk the old state stands, or the new one.

The new state is prepared in a folder beside the old one and the two are exchanged. Linux and macOS can exchange two
folders in one atomic call; elsewhere two renames do it, and `recover` ends what a kill between them left.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from afd_patchkit.digests import short
from afd_patchkit.files import replace_file
from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Position, finding

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2


def staging(folder: Path) -> Path:
    """Where the new state of `folder` is prepared."""
    return folder.with_name(f".{folder.name}.new")


def retired(folder: Path) -> Path:
    """Where the old state of `folder` waits to be removed."""
    return folder.with_name(f".{folder.name}.old")


def recover(folder: Path) -> None:
    """End what a killed run left: bring the old state back if it was moved away, drop unfinished work."""
    if retired(folder).exists() and not folder.exists():
        os.replace(retired(folder), folder)
    for leftover in (staging(folder), retired(folder)):
        if leftover.exists():
            shutil.rmtree(leftover, ignore_errors=True)


def replace_files(folder: Path, files: Mapping[str, bytes], removed: Collection[str]) -> None:
    """Write `files` into `folder` and take `removed` out, all or nothing; other files stay as they are.

    Args:
        folder: the generated folder.
        files: path below `folder` to content.
        removed: paths below `folder`.

    Raises:
        PatchkitError: it cannot be written (PK111); the old state is intact.
    """
    new = staging(folder)
    try:
        recover(folder)
        if folder.is_dir():
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
        shutil.rmtree(new, ignore_errors=True)
        raise PatchkitError(
            finding(
                "PK111",
                f"{folder.name}/ cannot be written: {error.strerror or error}",
                generated=Position(str(error.filename or folder)),
                help="Nothing was changed. Free the disk or mend the permissions and run it again.",
            )
        ) from error
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(retired(folder), ignore_errors=True)


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
def exclusive(folder: Path) -> Iterator[None]:
    """One writing run at a time for one generated folder.

    Raises:
        PatchkitError: another run holds it for more than a minute (PK112).
    """
    import tempfile

    from filelock import FileLock, Timeout

    name = f"afd-patchkit-{short(str(folder.resolve()), 16)}.lock"
    lock = FileLock(os.path.join(tempfile.gettempdir(), name))
    try:
        with lock.acquire(timeout=60):
            yield
    except Timeout as error:
        raise PatchkitError(
            finding(
                "PK112",
                f"another run is writing {folder.name}/",
                generated=Position(str(folder)),
                help=f"Wait for it. If there is none, remove {error.lock_file}.",
            )
        ) from error
