"""The one place where errors end: a message and an exit code; a report to paste for what should not happen."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.findings.errors import EXIT_BUG, EXIT_OK, EXIT_USAGE, PatchkitError

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session

EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""As for a program that SIGPIPE ends: 1 would mean "findings"."""

_ENVIRONMENT = {
    getattr(errno, name)
    for name in (
        "EACCES", "EPERM", "ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO",
        "EMFILE", "ENFILE", "ENOMEM", "ELOOP", "ENAMETOOLONG", "EBUSY", "ETXTBSY", "ESTALE", "ENODEV", "ENXIO", "EXDEV",
        "ENOLCK", "ENOTSUP",
    )
    if hasattr(errno, name)
}  # fmt: skip


class PipeClosed(Exception):
    """Whoever read our output has stopped reading."""


def open_streams() -> None:
    """Give standard streams that the caller has closed somewhere to go, before another file gets their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole run


def guarded(session: Session, call: Callable[[], Any]) -> int:
    """Run `call` and turn whatever comes out of it into an exit code.

    Args:
        session: how to print.
        call: the command; an int that it returns is the exit code.
    """
    try:
        code = _reported(session, call)
        sys.stdout.flush()
    except (PipeClosed, BrokenPipeError):
        return _pipe_closed()
    except (click.Abort, KeyboardInterrupt):
        return _say("Interrupted.", EXIT_INTERRUPTED)
    except click.ClickException as error:
        error.show(sys.stderr)
        return EXIT_USAGE
    except OSError as error:  # also while the report was being written
        if error.errno in _ENVIRONMENT:
            return _say(f"afd-patchkit: error: {os_message(error)}", EXIT_USAGE)
        return _bug(session, error)
    except Exception as error:
        return _bug(session, error)
    return code


def _reported(session: Session, call: Callable[[], Any]) -> int:
    """Run `call`; errors that the user can mend are printed like any findings."""
    from afd_patchkit.findings.report import Report

    try:
        result = call()
    except PatchkitError as error:
        report = Report(findings=error.findings)
        return session.report(report, max(error.exit_code, report.exit_code))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno not in _ENVIRONMENT:
            raise
        from traceback import format_exc

        from afd_patchkit.findings.finding import finding

        session.log(format_exc(), level=1)
        return session.report(
            Report(
                findings=(
                    finding(
                        "PK090",
                        os_message(error),
                        help="Generated modules and the lock are as they were. Mend the cause and run the command again.",
                    ),
                )
            )
        )
    return result if isinstance(result, int) else EXIT_OK


def os_message(error: OSError) -> str:
    """`No space left on device: generated/patchkit.lock`."""
    files = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return ": ".join([error.strerror or str(error), " -> ".join(files)] if files else [error.strerror or str(error)])


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True)
    return code


def _pipe_closed() -> int:
    # what is still buffered has nowhere to go; without this the interpreter would complain at exit
    with contextlib.suppress(OSError, ValueError):
        descriptor = sys.stdout.fileno()
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), descriptor)
    return EXIT_PIPE


def _bug(session: Session, error: Exception) -> int:
    from afd_patchkit.cli.bugreport import report_bug

    with contextlib.suppress(OSError, ValueError):
        report_bug(session, error)
    return EXIT_BUG
