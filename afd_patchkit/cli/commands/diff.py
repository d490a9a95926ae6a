"""`afd-patchkit diff`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.complete import complete_entries
from afd_patchkit.cli.engine import overrides, pin_options, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting_as

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.reports.diffs import Change
    from afd_patchkit.reports.upgrade.diff import View

VIEWS = ("upstream", "delta", "generated")


@click.command("diff", short_help="Show a change: upstream's, ours, or of the generated code.")
@click.argument("entry", required=False, metavar="[ENTRY]", shell_complete=complete_entries)
@click.option("--view", type=click.Choice(VIEWS), help="Which change (default: delta).")
@click.option(
    "--against", metavar="[NAME=]V", help="Compare with version or commit V of the pin (NAME, where there are several)."
)
@pin_options(
    vllm="Compare with this version of vllm (short for --against vllm=V).",
    vllm_ascend="Compare with this version or commit of vllm-ascend.",
    pins="Compare with version or commit V of the pin NAME: the same as --against NAME=V.",
)
@click.option("--base", "revision", metavar="REV", help="What changed in the generated code since git revision REV.")
@click.option(
    "-U", "context", type=click.IntRange(min=0), default=3, metavar="N", help="Lines of context (default: 3)."
)
@source_options
@reporting_as("text", "markdown", "json")
@pass_session
def command(
    session: Session,
    entry: str | None,
    view: View | None,
    against: str | None,
    vllm: str | None,
    vllm_ascend: str | None,
    pins: Sequence[tuple[str, str]],
    revision: str | None,
    context: int,
    sources: Sequence[tuple[str, str]],
    offline: bool,
) -> int:
    """Show a change of one ENTRY, or of all.

    \b
    --view delta                  what our deltas make of upstream's text
    --view generated              what regen would change in the files
    --view upstream --against V   what upstream changed from the pin to V
    --view delta --against V      what our deltas make of V's text
    --view generated --against V  what changes in the generated text
    --base REV                    what changed in generated code since REV

    `--pin NAME=V` and `--vllm V` say the same as `--against`. ENTRY is any part of MODULE::NAME that is unique.

    For --base, manifests and lock of both states are generated in memory: a pull request can review what git does not
    hold.
    """  # noqa: D301 - \b is click's
    from afd_patchkit.api import diff

    named = [*([against] if against else []), *map("=".join, overrides(vllm, vllm_ascend, pins).items())]
    if len(dict.fromkeys(named)) > 1:
        raise click.UsageError(f"diff compares with one release, not with {' and '.join(named)}.")
    against = named[0] if named else None
    if revision is not None and (view or against):
        raise click.UsageError(
            "--base compares generated code with generated code; it takes neither --view nor another release."
        )
    if view == "upstream" and against is None:
        raise click.UsageError("--view upstream needs --against V: the release to compare with.")
    chosen: View = view or "delta"
    if revision is not None:
        names = (revision, "the working tree")
    elif against is not None:
        names = (f"{chosen} of the pins", against)
    else:
        names = ("upstream", "generated") if chosen == "delta" else ("the generated files", "what regen writes")
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        changes = diff(project, entry, view=chosen, against=against, base=revision, sources=options, context=context)
    _print(session, changes, names)
    return 0


def _print(session: Session, changes: Sequence[Change], names: tuple[str, str]) -> None:
    from afd_patchkit.reports import diffs

    if session.format == "json":
        session.write(diffs.render_diff_json(changes, *names))
    elif session.format == "markdown":
        session.write(diffs.render_diff_markdown(changes, *names))
    else:
        session.write(diffs.render_diff_text(changes, session.style()))
        for item in changes:
            if not item.lines and item.note:
                session.log(f"{item.name}: {item.note}")
        if not any(item.lines or item.note for item in changes):
            session.log("no difference")
