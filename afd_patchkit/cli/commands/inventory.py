"""`afd-patchkit inventory`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.session import pass_session, printing

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("inventory", short_help="Write docs/inventory.md: every patch, why, and when it can go.")
@printing
@pass_session
def command(session: Session) -> int:
    """Write docs/inventory.md: per patch its upstream symbol, deltas, reason, guard, removal condition and place.

    Where that file is there, `check` fails when it is not what the manifests say. With --output it goes elsewhere (`-`:
    standard output), and nothing is checked.
    """
    from afd_patchkit.files import replace_file
    from afd_patchkit.manifest.load import load_manifests
    from afd_patchkit.queries import inventory
    from afd_patchkit.run.lock import current_inputs

    project = session.load_project()
    if session.output is not None or session.to_stdout:
        target = session.output.resolve() if session.output is not None else None
        session.write(inventory.render(project, load_manifests(project), target).rstrip("\n") + "\n")
        return 0
    path = inventory.path_of(project)
    inventory.check_place(project)
    text = inventory.sealed(inventory.render(project, load_manifests(project)), current_inputs(project))
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode("utf-8", "backslashreplace"))
    session.log(f"written: {os.path.relpath(path)}")
    return 0
