"""`afd-patchkit audit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.engine import given_pin_option, given_pins, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("audit", short_help="Compare hand copies of upstream functions with their upstream.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@given_pin_option
@source_options
@click.option(
    "--near", metavar="V", multiple=True, help="Say which copies fit version V of the first pin better. Repeatable."
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Report only what FILE does not hold: what is there already gets no worse.",
)
@click.option("--update-baseline", is_flag=True, help="Write what is found now to the file of --baseline.")
@reporting
@pass_session
def command(
    session: Session,
    paths: Sequence[Path],
    pins: Sequence[tuple[str, str]],
    sources: Sequence[tuple[str, str]],
    offline: bool,
    near: tuple[str, ...],
    baseline: Path | None,
    update_baseline: bool,
) -> int:
    """Find hand copies of upstream functions below PATH, and compare each with the pinned upstream.

    Needs neither a project nor a manifest, and runs nothing of what it reads. A copy is known by its fences
    (`# ### PATCH START: x`), by the comment above it, by what it is assigned to (`Class.method = func`), by the class
    whose method it overrides, or by its name and its text. Exits 1 when anything is wrong.
    """
    from afd_patchkit.api import AuditOptions, audit

    if update_baseline and baseline is None:
        raise click.UsageError("--update-baseline needs --baseline FILE.")
    places = source_paths(sources)
    chosen = given_pins(session, pins, places)
    with progress_for(session) as bars:
        options = AuditOptions(
            pins=chosen,
            sources=upstreams(session, bars, offline=offline, sources=places),
            near=near,
            baseline=baseline,
            update=update_baseline,
            progress=bars.work if bars else None,
        )
        report = audit(paths, options)
    return session.report(report)
