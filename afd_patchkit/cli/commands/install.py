"""`afd-patchkit install`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.session import pass_session, reporting_as

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.queries.installs import InstallPlan, PlannedInstall
    from afd_patchkit.reports.layout import Style


@click.command("install", short_help="Say what the generated package replaces in a process, and where.")
@click.option("--explain", is_flag=True, help="Print the plan.")
@reporting_as("text", "json")
@pass_session
def command(session: Session, explain: bool) -> int:
    """Say what the generated package replaces: every name that is bound, what must be in place, and on which release.

    The plan is the lock's, so that nothing is imported and no upstream is read. A process installs the package itself, by
    its `install()`; `verify()` says what is bound in it.
    """
    from afd_patchkit.api import install_plan

    project = session.load_project()
    if not explain:
        raise click.UsageError(
            f"A process installs the package itself: `import {project.package}; {project.package}.install()`. Say --explain to see what that does."
        )
    plan = install_plan(project)
    if session.format == "json":
        session.write(json.dumps({"format": "afd-patchkit/install/1", **asdict(plan)}, indent=2) + "\n")
    else:
        session.write(plan_text(plan, session.style()))
    if plan.stale:
        session.log(
            f"older than the manifests: {', '.join(plan.stale)} changed; `afd-patchkit regen` makes the new plan"
        )
    return 0


def plan_text(plan: InstallPlan, style: Style) -> str:
    """The plan for a person.

    Args:
        plan: what is replaced.
        style: colours and width.
    """
    from afd_patchkit.reports.layout import plural

    if not plan.installs:
        return f"{plan.package} replaces nothing: no manifest has `installs`\n"
    lines: list[str] = []
    for install in plan.installs:
        lines += [style.paint(install.symbol, "bold"), *(f"  {row}" for row in _rows(install)), ""]
    names = sum(1 + len(install.bound) for install in plan.installs if install.mode != "subclass")
    return (
        "\n".join([*lines, f"{plural(len(plan.installs), 'target')}, {plural(names, 'name')} of upstream's bound"])
        + "\n"
    )


def _rows(install: PlannedInstall) -> list[str]:
    rows = [
        f"by        {install.replacement}",
        f"mode      {install.mode}",
        f"only if   {install.gate}",
        *(f"and if    {install.original} has the source {digest[:16]}" for digest in install.digests),
    ]
    rows += [f"also      {name}" for name in install.bound]
    rows += ["also      whatever else in loaded modules and classes is this very object"] if install.everywhere else []
    rows += [f"native    {name}" for name in install.native]
    return rows
