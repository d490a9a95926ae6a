"""`afd-patchkit share`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.engine import engine_options, run_engine
from afd_patchkit.cli.session import pass_session, reporting
from afd_patchkit.findings.errors import EXIT_USAGE

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.report import Report


@click.command("share", short_help="Print how much of upstream stands verbatim.")
@engine_options
@reporting
@pass_session
def command(session: Session, **options: Any) -> int:
    """Print the share of upstream's lines that stand verbatim in each module, indentation aside.

    Drift is not this command's business: see `check`.
    """
    from afd_patchkit.reports.text import render_share

    report = without_drift(run_engine(session, check=True, **options))
    return session.report(report, text=lambda context: render_share(report, context))


DRIFT = ("lock", "note")
"""What `check` is for: differences between lock, files and what `regen` would write; and notes."""


def without_drift(report: Report) -> Report:
    """The report without what only `check` is asked for; where nothing could be generated, with the reason."""
    if not report.modules:
        return report
    kept = tuple(f for f in report.findings if f.exit_code >= EXIT_USAGE or f.family not in DRIFT)
    return replace(report, findings=kept)
