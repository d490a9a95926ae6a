"""`afd-patchkit aliases`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from afd_patchkit.cli.engine import overrides, pin_options, source_options, source_paths
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting_as
from afd_patchkit.findings.errors import PatchkitError

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.finding import Finding
    from afd_patchkit.model import Pin, Pins
    from afd_patchkit.names.aliases import Alias, Aliases
    from afd_patchkit.reports.layout import Style
    from afd_patchkit.upstream.options import SourceOptions


@click.command("aliases", short_help="List the modules that hold a symbol by name.")
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
    """List the modules that hold SYMBOL (`package.module:name`) by name, because they import it so.

    Such a module keeps the object that it found at import: who patches the symbol's own module must rebind it there too.
    Imports inside functions see a patched module, and are listed to be told apart. All Python files of the target pins
    are searched, so the first run fetches them.

    With --rebound, a module that is left out (PK319), or that holds no such name (PK320), gives exit code 1.
    """
    from afd_patchkit.findings.report import Report
    from afd_patchkit.manifest.load import load_manifests
    from afd_patchkit.run.pins import overridden
    from afd_patchkit.upstream.options import SourceOptions

    module, colon, name = symbol.partition(":")
    if not (colon and module and name):
        raise click.UsageError(f"{symbol!r} is not of the form package.module:name.")
    versions = overrides(vllm, vllm_ascend, pins)
    paths = source_paths(sources)
    project = session.load_project()
    known, _ = overridden(load_manifests(project).pins, versions)
    chosen = _chosen(known, names)
    with progress_for(session) as bars:
        options = SourceOptions(sources=paths, offline=offline, progress=bars.downloads if bars else None)
        found, problems = search(chosen, options, module, name)
    problems = problems or rebound_problems(found, rebound)
    _print(session, symbol, found.found, {pin: item.version for pin, item in chosen.items()})
    for path in found.unreadable:
        session.log(f"not searched, this Python cannot parse it: {path}")
    if problems:
        report = Report(findings=tuple(problems))
        session.log("\n".join(f"{f.severity.value} {f.code}: {f.message}" for f in problems))
        return report.exit_code
    return 0


def _chosen(pins: Pins, names: Sequence[str]) -> dict[str, Pin]:
    for name in names:
        if name not in pins.pins:
            raise click.UsageError(f"pins.yaml has no pin {name!r}; it has {', '.join(pins.pins)}.")
    return {n: pin for n, pin in pins.pins.items() if (n in names if names else pin.role == "target")}


def search(pins: Mapping[str, Pin], options: SourceOptions, module: str, name: str) -> tuple[Aliases, list[Finding]]:
    """The aliases, and why a pin could not be searched, or that none has such a module."""
    from afd_patchkit.assemble.workspace import import_packages
    from afd_patchkit.findings.finding import finding
    from afd_patchkit.names.aliases import Scanner
    from afd_patchkit.upstream.resolve import open_upstream

    opened = []
    problems: list[Finding] = []
    for pin_name, pin in pins.items():
        try:
            opened.append((open_upstream(pin_name, pin, options), import_packages(pin)))
        except PatchkitError as error:
            problems += error.findings
    found = Scanner(opened, options.store).aliases(module, name)
    problems += found.problems
    if not problems and not found.known:
        problems.append(finding("PK405", f"no pin that was searched ({', '.join(pins)}) has a module {module}"))
    return found, problems


def rebound_problems(found: Aliases, rebound: Sequence[str]) -> list[Finding]:
    """What a list of rebound modules lacks, and what should not be on it; nothing without a list."""
    from afd_patchkit.findings.finding import finding

    if not rebound:
        return []
    left_out = [
        finding("PK319", f"{a.module} holds {found.symbol} as `{a.name}` ({a.place}), and is not rebound", upstream=a.place)
        for a in found.left_out(rebound)
    ]
    stale = [
        finding("PK320", f"{module} is rebound, but does not hold {found.symbol}: what is set there is never read")
        for module in found.stale(rebound)
    ]
    return [*left_out, *stale]


def _print(session: Session, symbol: str, found: Sequence[Alias], versions: Mapping[str, str]) -> None:
    if session.format == "json":
        data = {"format": "afd-patchkit/aliases/1", "symbol": symbol, "pins": dict(versions), "aliases": [_data(a) for a in found]}
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
    """The table, and how many modules must be rebound."""
    from afd_patchkit.names.aliases import MEANINGS
    from afd_patchkit.reports.layout import plural, table
    from afd_patchkit.reports.markdown import code

    static = len({alias.module for alias in found if alias.static})
    closing = f"{plural(static, 'module holds', 'modules hold')} {code(symbol) if markdown else symbol} by name"
    header = ("module", "name", "kind", "imported from", "line", "pin")
    cells = [(a.module, a.name, a.kind, a.source, str(a.place.line), a.pin) for a in found]
    if markdown:
        lines = [" | ".join(("", *header, "")).strip(), "|---|---|---|---|---:|---|"]
        lines += ["| " + " | ".join((*map(code, row[:2]), row[2], code(row[3]), row[4], code(row[5]))) + " |" for row in cells]
        return "\n".join([f"{closing}.", "", *lines] if found else [f"{closing}."]) + "\n"
    kinds = [f"  {kind}: {MEANINGS[kind]}" for kind in MEANINGS if any(a.kind == kind for a in found)]
    return "\n".join([*(table(header, cells, style, right=(4,)) if found else []), *kinds, closing]) + "\n"
