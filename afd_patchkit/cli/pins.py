"""`afd-patchkit pins`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("pins")
@reporting
@pass_session
def command(session: Session) -> int:
    """Print the pinned upstreams: identity, artifact, and the evidence for it."""
    return 0
