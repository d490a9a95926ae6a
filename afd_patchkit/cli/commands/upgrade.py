"""`afd-patchkit upgrade`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.engine import pin_options, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting_as
from afd_patchkit.findings.errors import EXIT_USAGE, ManifestError
from afd_patchkit.reports.upgrade.render import FORMATS

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.report import Progress
    from afd_patchkit.project import Project
    from afd_patchkit.queries.pins import Releases
    from afd_patchkit.reports.layout import Style
    from afd_patchkit.upgrade.result import UpgradeResult
    from afd_patchkit.upstream.options import SourceOptions


@click.command("upgrade", short_help="Re-apply everything on another release, and say what needs eyes.")
@pin_options(
    vllm="Move to this version of vllm (short for --pin vllm=V), to the `latest` one, or to each `newer` one. Repeatable.",
    vllm_ascend="Move to this version or commit of vllm-ascend. Repeatable.",
    pins="Move the pin, or the target pin of the distribution, NAME to version or commit V. Repeatable.",
    multiple=True,
)
@click.option("--write", is_flag=True, help="Move pin, lock and modules for what is clean or accepted.")
@click.option(
    "--report",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write report.html, report.md, report.json and report.sarif into DIR as well.",
)
@source_options
@reporting_as(*FORMATS)
@pass_session
def command(
    session: Session,
    vllm: tuple[str, ...],
    vllm_ascend: tuple[str, ...],
    pins: Sequence[tuple[str, str]],
    write: bool,
    folder: Path | None,
    sources: Sequence[tuple[str, str]],
    offline: bool,
) -> int:
    """Re-apply every delta on another release, classify what happened, and report.

    Each entry and delta is unchanged, clean, review, conflict, absorbed, moved, missing or retire. Nothing is written
    without --write; with it, pin, lock and modules move together or not at all.

    With several versions of one pin, a matrix of entries and releases comes first. Without any, the pins are listed, and
    what each can move to.
    """
    from afd_patchkit.api import wanted_releases

    named = [("vllm", v) for v in vllm] + [("vllm-ascend", v) for v in vllm_ascend] + list(pins)
    if not named and (write or folder is not None or session.format != "text"):
        raise click.UsageError(
            "Say where to: --vllm V, or --pin NAME=V. `afd-patchkit upgrade` alone lists what there is."
        )
    if not named:
        return print_releases(session, offline=offline)
    if several := sorted({name for name, _ in named} - {named[0][0]}):
        raise click.UsageError(
            f"An upgrade moves one pin, not {named[0][0]} and {' and '.join(several)}: one after the other."
        )
    if write and len(set(named)) > 1:
        raise click.UsageError("--write takes one release: the pin can move to one only.")
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = upstreams(session, bars, offline=offline, sources=paths)
        targets = [{name: version} for name, version in wanted_releases(project, named, options)]
        if write and len(targets) > 1:
            raise click.UsageError(
                f"--write takes one release, and {len(targets)} are newer: the pin can move to one only."
            )
        results = run_upgrades(project, targets, options, write=write, progress=bars.work if bars else None)
    given = (*(["--offline"] if offline else []), *(f"--source={name}={path}" for name, path in paths.items()))
    results = [replace(result, given=given) for result in results]
    if folder is not None:
        write_reports(session, results, folder, project.marker)
    return print_upgrade(session, results, project.marker)


def print_releases(session: Session, *, offline: bool) -> int:
    """Print the pins, and what each can move to; the exit code is that of what kept the index from being asked."""
    from afd_patchkit.api import Report, releases_of

    project = session.load_project()
    with progress_for(session) as bars:
        found = releases_of(project, upstreams(session, bars, offline=offline))
    report = Report(findings=tuple(dict.fromkeys(item for pin in found for item in pin.findings)))
    return session.report(report, text=lambda context: releases_text(found, context.style, offline=offline))


def releases_text(found: Sequence[Releases], style: Style, *, offline: bool) -> str:
    """One paragraph for each pin, and how to go on."""
    from afd_patchkit.reports.layout import printable, wrap

    lines = []
    for item in found:
        newer = ", ".join(item.newer or ()) or "none"
        if item.newer is None:
            newer = "not known: --offline" if offline else "not known"
            newer = f"name a commit: it is read at {item.pin.identity}" if item.pin.source_commit else newer
        head = (
            f"{style.paint(printable(item.name), 'bold')} ({item.pin.distribution} {item.pin.version}, {item.pin.role})"
        )
        lines += wrap(printable(newer), style, first=f"{head}  newer: ", rest="    ")
    movable = next((item for item in found if item.newer), None)
    if movable is not None and movable.newer:
        moved = f"afd-patchkit upgrade --pin {movable.name}={movable.newer[-1]}"
        lines += [
            "",
            *wrap(
                f"See what a release means: {moved} (`=latest`, or `=newer` for all of them, will do)", style, rest="  "
            ),
        ]
    return "\n".join(lines) + "\n"


def run_upgrades(
    project: Project,
    targets: Sequence[Mapping[str, str]],
    options: SourceOptions,
    *,
    write: bool,
    progress: Progress | None,
) -> list[UpgradeResult]:
    """One result per target; one that cannot be had is a result with the findings that say why.

    Args:
        project: what to work on.
        targets: per upgrade, pin name to version or commit.
        options: where upstreams may come from.
        write: move pin, lock and modules for what is clean or accepted.
        progress: told about entries; None when nobody waits.

    Raises:
        ManifestError: manifests or settings are wrong, whatever the release.
    """
    from afd_patchkit.api import upgrades
    from afd_patchkit.reports.upgrade.view import moved_findings

    results = upgrades(project, targets, options=options, write=write, progress=progress)
    for result in results:
        if result.exit_code == EXIT_USAGE and not result.entries:  # the same whatever the release
            raise ManifestError.collect(result.findings)
    return [moved_findings(result, project.root, Path()) for result in results]


def write_reports(session: Session, results: Sequence[UpgradeResult], folder: Path, marker: str) -> None:
    """Write each file of `--report`.

    Args:
        session: the command line that is running.
        results: one per target.
        folder: where the files go; made if need be.
        marker: what fences begin with.
    """
    from afd_patchkit.files import write_atomically
    from afd_patchkit.reports.context import Context
    from afd_patchkit.reports.upgrade.render import FILES, render_upgrade

    folder.mkdir(parents=True, exist_ok=True)
    for name, form in FILES.items():
        context = Context(session.command, Path(), verbosity=0)
        write_atomically(folder / name, render_upgrade(results, form, context, marker=marker))
    session.log(f"written: {', '.join(str(folder / name) for name in FILES)}")


def print_upgrade(session: Session, results: Sequence[UpgradeResult], marker: str) -> int:
    """Print the upgrade in the session's format; the exit code is the most serious one."""
    from afd_patchkit.reports.upgrade.render import render_upgrade
    from afd_patchkit.reports.upgrade.view import overall

    session.write(render_upgrade(results, session.format, session.context(), marker=marker))
    return overall(results)
