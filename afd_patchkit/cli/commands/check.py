"""`afd-patchkit check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.engine import engine_options, run_engine
from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("check", short_help="Find any drift; write nothing.")
@engine_options
@reporting
@pass_session
def command(session: Session, **options: Any) -> int:
    """Compare manifests, upstreams, lock, outlines and generated modules; write nothing.

    Exits 1 and says what moved when `regen` would change anything, or when a generated file was edited by hand.
    """
    return session.report(run_engine(session, check=True, **options))
