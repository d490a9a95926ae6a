"""What is printed and written when the tool itself is at fault."""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
import tempfile
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.files import replace_file
from afd_patchkit.version import __version__

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session

_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_PACKAGES = ("click", "libcst", "pydantic", "PyYAML", "httpx", "packaging", "rich")


def report_bug(session: Session, error: Exception) -> None:
    """Write the full report to a file and say shortly, on standard error, what happened and where the report is."""
    text = bug_report(session.arguments, error)
    path = save(text)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"afd_patchkit{os.sep}" in f.filename] or frames
    where = f" ({Path(ours[-1].filename).name}:{ours[-1].lineno} in {ours[-1].name})" if ours else ""
    message = f"{type(error).__name__}: {error}".split("\n", 1)[0][:300]
    lines = [f"afd-patchkit: internal error: {_clean(message)}{where}"]
    if session.verbosity > 0 and path is not None:
        lines.append(text)
    lines.append(
        "This is a bug in afd-patchkit, not in your project. Please report it" + (":" if path is None else " with")
    )
    if path is not None:
        lines.append(f"  {path}")
    else:
        lines.append(text)
    click.echo("\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8"), err=True)


def bug_report(arguments: list[str], error: Exception) -> str:
    """Everything a maintainer asks for; credentials in URLs are blanked."""
    installed = [f"{d.name} {d.version}" for name in _PACKAGES for d in metadata.Distribution.discover(name=name)]
    text = "\n".join(
        (
            f"afd-patchkit {__version__}",
            f"python       {platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
            f"platform     {platform.platform()}",
            f"packages     {', '.join(installed)}",
            f"command      afd-patchkit {shlex.join(arguments)}",
            f"folder       {_folder()}",
            f"time         {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}",
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    return _clean(text)


def _clean(text: str) -> str:
    return _CREDENTIALS.sub("***@", text)


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError as error:
        return f"gone ({error})"


def save(text: str) -> Path | None:
    """Write the report to the user's log folder, else to the temporary one; None when neither takes it."""
    name = f"bug-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}.txt"
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # private: the report holds paths and the command line
            replace_file(folder / name, text.encode("utf-8", "backslashreplace"), private=True)
        except OSError:
            continue
        return folder / name
    return None


def _folders() -> list[Path]:
    folders = []
    try:
        from platformdirs import user_log_path

        folders.append(user_log_path("afd-patchkit", appauthor=False))
    except (ImportError, OSError, RuntimeError):  # RuntimeError: no home folder
        pass
    folders.append(Path(tempfile.gettempdir()))
    return folders
