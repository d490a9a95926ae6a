"""`afd-patchkit schema`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.session import pass_session, printing

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session


@click.command("schema", short_help="Print the JSON Schema of manifests.")
@click.option("--pins", "which", flag_value="pins", help="The schema of pins.yaml.")
@click.option("--report", "which", flag_value="report", help="The schema of what `--format json` prints.")
@click.option("--upgrade", "which", flag_value="upgrade", help="The schema of what `upgrade --format json` prints.")
@printing
@pass_session
def command(session: Session, which: str | None) -> int:
    """Print the JSON Schema of manifests, for editors.

    A manifest names it in its first line: `# yaml-language-server: $schema=PATH`.
    """
    if which == "report":
        from afd_patchkit.reports.json_report import report_schema

        text = json.dumps(report_schema(), indent=2) + "\n"
    elif which == "upgrade":
        from afd_patchkit.reports.upgrade.json_report import upgrade_schema

        text = json.dumps(upgrade_schema(), indent=2) + "\n"
    else:
        from afd_patchkit.manifest.schema import manifest_schema, pins_schema, schema_text

        text = schema_text(pins_schema() if which == "pins" else manifest_schema())
    session.write(text)
    return 0
