"""`afd-patchkit aliases`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.engine import overrides, pin_options, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting_as

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.names.aliases import Alias
    from afd_patchkit.reports.layout import Style


@click.command("aliases", short_help="List the modules that hold a symbol.")
@click.argument("symbol", metavar="SYMBOL")
@pin_options(
    vllm="Look in this version of vllm instead of the pinned one.",
    vllm_ascend="Look in this version or commit of vllm-ascend.",
    pins="Look in version or commit V of the pin, or of the target pin of the distribution, NAME. Repeatable.",
)
@click.option("--in", "names", metavar="PIN", multiple=True, help="Look in this pin only (default: all target pins).")
@click.option(
    "--rebound",
    metavar="MODULE",
    multiple=True,
    help="A module where the symbol is rebound: fail unless all that hold it are named so, and no other. Repeatable.",
)
@source_options
@reporting_as("text", "markdown", "json")
@pass_session
def command(
    session: Session,
    symbol: str,
    vllm: str | None,
    vllm_ascend: str | None,
    pins: Sequence[tuple[str, str]],
    names: tuple[str, ...],
    rebound: tuple[str, ...],
    sources: Sequence[tuple[str, str]],
    offline: bool,
) -> int:
    """List the modules that hold SYMBOL (`package.module:name`): import it by name, assign it, or put it somewhere.

    Such a module keeps the object that it found at import, by its name, as `g = m.f`, as a class attribute, in a dict, as a
    default, in a `partial` or `staticmethod`: who patches the symbol's own module must rebind it there too. Imports
    inside functions see a patched module, and are listed to be told apart. All Python files of the target pins are
    searched, so the first run fetches them.

    With --rebound, a module that is left out (PK319), or that holds no such name (PK320), gives exit code 1.
    """
    from afd_patchkit.api import Report, aliases

    module, colon, name = symbol.partition(":")
    if not (colon and module and name):
        raise click.UsageError(f"{symbol!r} is not of the form package.module:name.")
    versions = overrides(vllm, vllm_ascend, pins)
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        done = aliases(project, module, name, overrides=versions, pins=names, rebound=rebound, sources=options)
    _print(session, symbol, done.found.found, done.versions)
    for path in done.found.unreadable:
        session.log(f"not searched, this Python cannot parse it: {path}")
    if done.findings:
        session.log("\n".join(f"{f.severity.value} {f.code}: {f.message}" for f in done.findings))
        return Report(findings=done.findings).exit_code
    return 0


def _print(session: Session, symbol: str, found: Sequence[Alias], versions: Mapping[str, str]) -> None:
    if session.format == "json":
        data = {
            "format": "afd-patchkit/aliases/1",
            "symbol": symbol,
            "pins": dict(versions),
            "aliases": [_data(a) for a in found],
        }
        session.write(json.dumps(data, indent=2) + "\n")
    else:
        session.write(aliases_text(symbol, found, session.style(), markdown=session.format == "markdown"))


def _data(alias: Alias) -> dict[str, Any]:
    return {
        "pin": alias.pin,
        "module": alias.module,
        "name": alias.name,
        "kind": alias.kind,
        "static": alias.static,
        "source": alias.source,
        "file": alias.place.file,
        "line": alias.place.line,
    }


def aliases_text(symbol: str, found: Sequence[Alias], style: Style, *, markdown: bool) -> str:
    """The table, and how many modules must be rebound.

    Args:
        symbol: what was asked for, `package.module:name`.
        found: the modules that hold it.
        style: colours and width.
        markdown: a Markdown table instead of one for a terminal.
    """
    from afd_patchkit.names.aliases import MEANINGS
    from afd_patchkit.reports.layout import plural, table
    from afd_patchkit.reports.markdown import code

    static = len({alias.module for alias in found if alias.static})
    closing = f"{plural(static, 'module holds', 'modules hold')} {code(symbol) if markdown else symbol} from import on"
    header = ("module", "name", "kind", "imported from", "line", "pin")
    cells = [(a.module, a.name, a.kind, a.source, str(a.place.line), a.pin) for a in found]
    if markdown:
        lines = [" | ".join(("", *header, "")).strip(), "|---|---|---|---|---:|---|"]
        lines += [
            "| " + " | ".join((*map(code, row[:2]), row[2], code(row[3]), row[4], code(row[5]))) + " |" for row in cells
        ]
        return "\n".join([f"{closing}.", "", *lines] if found else [f"{closing}."]) + "\n"
    kinds = [f"  {kind}: {MEANINGS[kind]}" for kind in MEANINGS if any(a.kind == kind for a in found)]
    return "\n".join([*(table(header, cells, style, right=(4,)) if found else []), *kinds, closing]) + "\n"
