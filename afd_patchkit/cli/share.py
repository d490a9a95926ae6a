"""`afd-patchkit share`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.engine import engine_options, run_engine
from afd_patchkit.cli.session import pass_session, reporting
from afd_patchkit.errors import EXIT_USAGE

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.report import Report


@click.command("share")
@engine_options
@reporting
@pass_session
def command(session: Session, **options: Any) -> int:
    """Print the share of upstream's lines that stand verbatim in each module, indentation aside.

    Drift is not this command's business: see `check`.
    """
    report = without_drift(run_engine(session, check=True, **options))
    if session.format != "text":
        return session.report(report)
    from afd_patchkit.review.text import render_share, render_text

    text = render_share(report, session.context())
    if report.findings:
        text += "\n" + render_text(replace(report, modules=(), pins=()), session.context())
    session.write(text)
    return report.exit_code


DRIFT = ("PK1", "PK6")
"""What `check` is for: differences between lock, files and what `regen` would write; and notes."""


def without_drift(report: Report) -> Report:
    """The report without what only `check` is asked for."""
    kept = tuple(f for f in report.findings if f.exit_code >= EXIT_USAGE or not f.code.startswith(DRIFT))
    return replace(report, findings=kept)
