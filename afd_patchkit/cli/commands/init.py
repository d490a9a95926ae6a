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
@click.option("--ci", is_flag=True, help="Also write workflows for GitHub and the configuration of pre-commit.")
@common
@pass_session
def command(session: Session, folder: Path | None, ci: bool) -> int:
    """Write a small project into FOLDER (the current one by default) that regenerates at once.

    In a project that is there, copies of the schemas and the rules in .gitignore are brought up to date. Other files that are there
    already are never touched.
    """
    from afd_patchkit.manifest.scaffold import PACKAGE, scaffold

    target = folder or session.project or Path()
    written = scaffold(target, ci=ci)
    if session.verbosity >= 0 and not written:
        session.write("nothing to do: the project is up to date\n")
    elif session.verbosity >= 0:
        lines = [f"  {os.path.relpath(path)}" for path in written]
        settings = next((path for path in written if path.suffix == ".toml"), None)
        if settings is not None:
            lines.append(
                f"generated modules are imported from `{PACKAGE}`: {settings.name} says how to choose another name"
            )
        step = "" if target.resolve() == Path.cwd() else f"cd {target} && "
        session.write("\n".join(["written:", *lines, f"next: {step}afd-patchkit regen"]) + "\n")
    return 0
