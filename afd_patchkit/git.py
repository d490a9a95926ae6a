"""Run git: nothing of the caller's environment decides what it does, and it speaks English."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class GitError(Exception):
    """git cannot be run, or does not end; the text says why."""


def run_git(
    arguments: Sequence[str],
    folder: Path | str,
    *,
    stdin: bytes = b"",
    kept: Callable[[str], bool] = lambda _: False,
    more: Mapping[str, str] | None = None,
    timeout: float | None = None,
    waits: Callable[[bool], None] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run `git ARGUMENTS` in a folder.

    Args:
        arguments: the command and what follows it.
        folder: where.
        stdin: what it reads.
        kept: which `GIT_...` variables of the environment it sees; none by default.
        more: variables that it sees besides.
        timeout: seconds until it is given up.
        waits: told True when it takes longer than a second, and False when that is over.

    Returns:
        what it wrote, and its exit status, whatever that is.

    Raises:
        GitError: there is no git, it cannot be started, or it did not end in time.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or kept(name)}
    environ |= {"GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C", **(more or {})}
    try:
        with subprocess.Popen(
            ["git", *arguments],
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                out, err = _patient(process, stdin, timeout, waits)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)
    except FileNotFoundError:
        raise GitError("there is no git command") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]} did not end within {timeout:g} s") from None
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror or error}") from None


def _patient(
    process: subprocess.Popen[bytes], stdin: bytes, timeout: float | None, waits: Callable[[bool], None] | None
) -> tuple[bytes, bytes]:
    if waits is None:
        return process.communicate(stdin, timeout)
    try:
        return process.communicate(stdin, 1.0 if timeout is None else min(1.0, timeout))
    except subprocess.TimeoutExpired:
        waits(True)
    try:
        return process.communicate(timeout=timeout)
    finally:
        waits(False)


def complaint(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What git said on standard error, without blank lines."""
    return [line for line in done.stderr.decode("utf-8", "replace").split("\n") if line.strip()]
