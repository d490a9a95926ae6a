"""`afd-patchkit show`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.engine import overrides, pin_options, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting_as

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.queries.show import Shown
    from afd_patchkit.reports.layout import Style


@click.command("show", short_help="Print upstream's text of a symbol.")
@click.argument("symbol", metavar="SYMBOL")
@pin_options(
    vllm="Read this version of vllm instead of the pinned one.",
    vllm_ascend="Read this version or commit of vllm-ascend.",
    pins="Read version or commit V of the pin, or of the target pin of the distribution, NAME. Repeatable.",
)
@click.option(
    "--in", "names", metavar="PIN", multiple=True, help="Look in this pin only (default: all, targets first)."
)
@source_options
@reporting_as("text", "json")
@pass_session
def command(
    session: Session,
    symbol: str,
    vllm: str | None,
    vllm_ascend: str | None,
    pins: Sequence[tuple[str, str]],
    names: tuple[str, ...],
    sources: Sequence[tuple[str, str]],
    offline: bool,
) -> int:
    """Print upstream's text of SYMBOL at the pin, with the line numbers of upstream's file. No entry is needed.

    SYMBOL is `package.module:Qual.name`, the same with dots only, a module, or an end of a qualified name that only one
    symbol has: `Runner.step`, `step`. For such an end all Python files of the pins are searched, if no entry has it, so
    the first run fetches them.
    """
    from afd_patchkit.api import show

    versions = overrides(vllm, vllm_ascend, pins)
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        found = show(project, symbol, overrides=versions, pins=names, sources=options)
    if session.format == "json":
        session.write(
            json.dumps({"format": "afd-patchkit/show/1", "found": [asdict(item) for item in found]}, indent=2) + "\n"
        )
    else:
        session.write(show_text(found, session.style()))
    return 0


def show_text(found: Sequence[Shown], style: Style) -> str:
    """Each definition below a line that says where it stands; a gap between lines is `...`."""
    from afd_patchkit.reports.layout import printable

    blocks = []
    for item in found:
        first, last = item.lines[0][0] if item.lines else 1, item.lines[-1][0] if item.lines else 0
        place = f"{item.file}:{first}{f'-{last}' if last > first else ''} of pin {item.pin} ({item.version})"
        under = f", under {' / '.join(item.conditions)}" if item.conditions else ""
        lines = [f"{style.paint(printable(item.symbol), 'bold')}  {printable(place + under)}"]
        before = first - 1
        for number, text in item.lines:
            if number != before + 1:
                lines.append(style.paint(f"{'...':>6}", "dim"))
            lines.append(f"{style.paint(f'{number:>6}', 'dim')}  {printable(text)}".rstrip())
            before = number
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)
