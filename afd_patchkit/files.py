"""Write a file in one step."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Put `text` at `path`, UTF-8 with LF: the file is the old one or the new one, never a part of either.

    A link is followed; something that is no regular file (a pipe, `/dev/stdout`) is written to directly.
    """
    data = text.encode("utf-8", "backslashreplace")
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        # 0o666: the umask decides, as for any new file
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
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
