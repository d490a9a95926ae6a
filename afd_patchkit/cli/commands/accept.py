"""`afd-patchkit accept`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.complete import complete_topics
from afd_patchkit.cli.engine import overrides, pin_options, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.reports.layout import Style
    from afd_patchkit.upgrade.accepting import Accepted


@click.command("accept", short_help="Record that a person has reviewed a finding of an upgrade.")
@click.argument("references", metavar="ENTRY[/DELTA]...", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("--why", required=True, metavar="TEXT", help="The reason, for those who read it later.")
@click.option("--who", default="", metavar="NAME", help="The reviewer, if it shall be recorded.")
@click.option("--date", default="", metavar="DAY", help="The day, if it shall be recorded.")
@pin_options(
    vllm="The upgrade that it is about (default: the last one that was run).",
    vllm_ascend="The same for vllm-ascend.",
    pins="The same for any pin.",
)
@source_options
@reporting
@pass_session
def command(
    session: Session,
    references: Sequence[str],
    why: str,
    who: str,
    date: str,
    vllm: str | None,
    vllm_ascend: str | None,
    pins: Sequence[tuple[str, str]],
    sources: Sequence[tuple[str, str]],
    offline: bool,
) -> int:
    """Record that a person has reviewed what an upgrade says about ENTRY, or about one DELTA of it; several at once, or none.

    Any part of a name that is unique will do: `step`, `Runner.step`, `runner.py::Runner.step`, `step/delta name`.

    An acceptance is bound to the digests it was made for: when upstream changes the place again, it is open again. It
    stands in a file beside the manifests, to be committed; `upgrade --write` takes what is clean or accepted.
    """
    from afd_patchkit.api import Report, accept

    target = overrides(vllm, vllm_ascend, pins)
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        done = accept(project, references, why, pin_overrides=target or None, options=options, who=who, date=date)
    file = os.path.relpath(project.root / done.file) if done.file else ""
    written = (Path(file).as_posix(),) if done.recorded else ()
    return session.report(
        Report(done.findings, written=written), text=lambda context: accepted_text(done, file, context.style)
    )


def accepted_text(done: Accepted, file: str, style: Style) -> str:
    """What was recorded, one line each."""
    from afd_patchkit.reports.layout import printable

    if not done.recorded:
        return ""
    lines = [
        f"{style.paint('accepted', 'green')} {printable(item.subject)}: {item.code} at {printable(item.target)}"
        for item in done.recorded
    ]
    return "\n".join([*lines, f"recorded in {printable(Path(file).as_posix())}"]) + "\n"
