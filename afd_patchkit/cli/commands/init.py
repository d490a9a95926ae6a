"""`afd-patchkit init`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.session import common, pass_session

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("init", short_help="Write a small project that regenerates at once.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=None, required=False)
@common
@pass_session
def command(session: Session, folder: Path | None) -> int:
    """Write a small project into FOLDER (the current one by default) that regenerates at once.

    Files that are there already are never touched.
    """
    from afd_patchkit.manifest.scaffold import scaffold

    target = folder or session.project or Path()
    written = scaffold(target)
    if session.verbosity >= 0:
        lines = [f"  {os.path.relpath(path)}" for path in written]
        step = "" if target.resolve() == Path.cwd() else f"cd {target} && "
        session.write("\n".join(["written:", *lines, f"next: {step}afd-patchkit regen"]) + "\n")
    return 0
