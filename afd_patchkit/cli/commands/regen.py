"""`afd-patchkit regen`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.engine import engine_options, run_engine
from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("regen", short_help="Generate the modules from manifests and upstreams.")
@engine_options
@click.option("--check", is_flag=True, help="Write nothing; compare with the lock and the files (the same as `check`).")
@reporting
@pass_session
def command(session: Session, check: bool, **options: Any) -> int:
    """Generate the modules from their manifests and the pinned upstreams.

    MODULE is a module as its manifest names it, for instance `acme_backport/runner.py`; without any, all are generated.
    Either everything that was asked for is written, with the lock, or nothing is.

    With another version than the pinned one, modules are written only when every entry is unchanged, clean or retired, and
    into a folder of their own beside the generated one, or into DIR: `upgrade --write` moves the pin.
    """
    if check:
        session.command = "check"
    return session.report(run_engine(session, check=check, **options))
