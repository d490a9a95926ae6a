"""`afd-patchkit accept`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.complete import complete_deltas
from afd_patchkit.cli.engine import overrides, pin_options, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting
from afd_patchkit.findings.errors import EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.reports.layout import Style
    from afd_patchkit.upgrade.accepting import Accepted, Review


@click.command("accept", short_help="Record that a person has reviewed a finding of an upgrade.")
@click.argument("references", metavar="ENTRY[/DELTA]...", nargs=-1, shell_complete=complete_deltas)
@click.option("--why", default="", metavar="TEXT", help="The reason, for those who read it later.")
@click.option(
    "-i",
    "--interactive",
    is_flag=True,
    help="Walk through what is open (of ENTRY...), and ask for the reason each time.",
)
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
    interactive: bool,
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

    With -i each answer is recorded at once; what is left open gives exit code 1.
    """
    if not interactive and not references:
        raise click.UsageError("Name an ENTRY or an ENTRY/DELTA, or walk through all that is open with -i.")
    if not interactive and not why:
        raise click.UsageError('Say why: --why "...". It stands in the file for those who read it later.')
    if interactive and (session.format != "text" or session.output is not None):
        raise click.UsageError("-i asks in the terminal: it takes neither --format nor --output.")
    from afd_patchkit.api import Report, accept, review

    target = overrides(vllm, vllm_ascend, pins)
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        found = review(project, pin_overrides=target or None, options=options) if interactive else None
    if found is not None:
        return walk(session, found, references, why=why, who=who, date=date)
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        done = accept(project, references, why, pin_overrides=target or None, options=options, who=who, date=date)
    file = os.path.relpath(project.root / done.file) if done.file else ""
    written = (Path(file).as_posix(),) if done.recorded else ()
    return session.report(
        Report(done.findings, written=written), text=lambda context: accepted_text(done, file, context.style)
    )


def walk(session: Session, found: Review, references: Sequence[str], *, why: str, who: str, date: str) -> int:
    """Show each open entry and ask why it may stay; the exit code is 1 when one is left open.

    Args:
        session: the command line that is running.
        found: the upgrade.
        references: only these entries; all that are open when empty.
        why: what an empty answer stands for; empty: the entry stays open.
        who: the reviewer; may be empty.
        date: the day; may be empty.
    """
    from afd_patchkit.reports.layout import plural
    from afd_patchkit.reports.upgrade.text import diffs_text, entry_text
    from afd_patchkit.reports.upgrade.view import title, worst_first
    from afd_patchkit.upgrade.accepted import command, resolve

    result = found.result
    waiting = [resolve(result, name) for name in references] or [(e, "") for e in worst_first(result) if e.blocks]
    session.write(f"{title(result)}: {plural(len(waiting), 'entry is', 'entries are')} open\n")
    left, context = len(waiting), session.context()
    asked = (
        f"Why may it stay? (Enter: {'the reason given' if why else 'leave it open'}, d: differences, s: skip, q: stop)"
    )
    for number, (entry, delta) in enumerate(waiting, 1):
        session.write(f"\n{number} of {len(waiting)}: {entry_text(result, entry, context)}")
        if command(result, entry, delta) is None:
            session.write("  It must be mended: it cannot be accepted as it is.\n")
            continue
        answer = click.prompt(asked, default="", show_default=False)
        while answer.strip() == "d":
            session.write(diffs_text(entry, context.style))
            answer = click.prompt(asked, default="", show_default=False)
        if answer.strip() == "q":
            break
        reason = "" if answer.strip() == "s" else answer.strip() or why
        if reason:
            done = found.accept(entry, reason, delta=delta, who=who, date=date)
            session.write(accepted_text(done, done.file, session.style()))
            left -= 1
    if waiting:
        session.write(f"\n{plural(left, 'entry is', 'entries are')} left open\n")
    return EXIT_FINDINGS if left else EXIT_OK


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
