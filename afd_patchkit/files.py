"""Write a file in one step."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

LONGEST = 512 * 2**20
"""Bytes of the longest file of a project that is read; no lock or module comes near."""
LONGEST_INPUT = 8 * 2**20
"""Bytes of the longest file that persons write: settings, pins, a manifest."""


def read_regular(path: Path, longest: int = LONGEST) -> bytes:
    """The bytes of a regular file of bounded length; a pipe or a device would be waited for without end.

    Raises:
        OSError: it cannot be read, is no regular file, or is absurdly long.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if facts.st_size > longest:
            raise OSError(errno.EFBIG, "it is absurdly long", str(path))
        return stream.read()


def write_atomically(path: Path, text: str) -> None:
    """Put `text` at `path`, UTF-8 with LF, as `replace_file` does.

    A link is followed; something that is no regular file (a pipe, `/dev/stdout`) is written to directly.
    """
    data = text.encode("utf-8", "backslashreplace")
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    replace_file(path, data)


def replace_file(path: Path, data: bytes, *, private: bool = False, durable: bool = True) -> None:
    """Put `data` at `path`: the file is the old one or the new one, never a part of either.

    Args:
        path: where; a link there is replaced, not followed. A file that was there hands on its permissions.
        data: what.
        private: a new file is for its owner alone, whatever the umask says.
        durable: wait until the disk has it, so that a power cut cannot leave an empty file.

    Raises:
        OSError: it cannot be written; it names `path`, and the old file is intact.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            # the user knows the file, not the temporary one beside it
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
