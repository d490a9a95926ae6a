"""`afd-patchkit diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.complete import complete_topics
from afd_patchkit.cli.engine import source_options, source_paths
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting_as
from afd_patchkit.findings.errors import EXIT_USAGE, PatchkitError

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.project import Project
    from afd_patchkit.reports.diffs import Change
    from afd_patchkit.reports.upgrade.diff import View
    from afd_patchkit.upstream.options import SourceOptions

VIEWS = ("upstream", "delta", "generated")


@click.command("diff", short_help="Show a change: upstream's, ours, or of the generated code.")
@click.argument("entry", required=False, metavar="[ENTRY]", shell_complete=complete_topics)
@click.option("--view", type=click.Choice(VIEWS), help="Which change (default: delta).")
@click.option("--against", metavar="[NAME=]V", help="Compare with version or commit V of the pin (NAME, where there are several).")
@click.option("--base", "revision", metavar="REV", help="What changed in the generated code since git revision REV.")
@click.option("-U", "context", type=click.IntRange(min=0), default=3, metavar="N", help="Lines of context (default: 3).")
@source_options
@reporting_as("text", "markdown", "json")
@pass_session
def command(
    session: Session,
    entry: str | None,
    view: View | None,
    against: str | None,
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

    For --base, manifests and lock of both states are generated in memory: a pull request can review what git does not
    hold.
    """  # noqa: D301 - \b is click's
    from afd_patchkit.upstream.options import SourceOptions

    if revision is not None and (view or against):
        raise click.UsageError("--base compares generated code with generated code; it takes neither --view nor --against.")
    if view == "upstream" and against is None:
        raise click.UsageError("--view upstream needs --against V: the release to compare with.")
    paths = source_paths(sources)
    project = session.load_project()
    with progress_for(session) as bars:
        options = SourceOptions(sources=paths, offline=offline, progress=bars.downloads if bars else None)
        if revision is not None:
            names = (revision, "the working tree")
            changes = since(project, revision, entry, options, context)
        elif against is not None:
            chosen: View = view or "delta"
            names = (f"{chosen} of the pins", against)
            found = at_release(session, project, chosen, against, entry, options, context)
            if isinstance(found, int):
                return found
            changes = found
        else:
            chosen = view or "delta"
            names = ("upstream", "generated") if chosen == "delta" else ("the generated files", "what regen writes")
            changes = now(project, chosen, entry, options, context)
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


def since(project: Project, revision: str, topic: str | None, options: SourceOptions, context: int) -> list[Change]:
    """What the generated code of the working tree has changed since a git revision.

    Raises:
        PatchkitError: one of the two cannot be generated.
    """
    from afd_patchkit.queries.entries import pick_entry
    from afd_patchkit.queries.preview import preview, project_at
    from afd_patchkit.reports.diffs import change, module_changes

    new = preview(project, options=options)
    try:
        with project_at(project, revision) as there:
            old = preview(there, options=options)
    except PatchkitError as error:
        raise type(error)(
            *(f if f.code == "PK098" else replace(f, message=f"at {revision}: {f.message}") for f in error.findings)
        ) from error
    if topic is None:
        return module_changes(old.modules, new.modules, project.shown(project.generated / project.package), context=context)
    ref = pick_entry({*old.entries, *new.entries}, topic)
    before, after = old.entries.get(ref), new.entries.get(ref)
    texts = (before.generated if before else None, after.generated if after else None)
    item = change(ref, *texts, f"{ref} ({revision})", ref, context=context)
    return [item] if item.lines else []


def now(project: Project, view: View, topic: str | None, options: SourceOptions, context: int) -> list[Change]:
    """Our deltas at the pins, or what regen would change in the files."""
    from afd_patchkit.queries.entries import pick_entry
    from afd_patchkit.queries.preview import preview
    from afd_patchkit.reports.diffs import Change, change, module_changes
    from afd_patchkit.reports.upgrade.diff import LABELS, level
    from afd_patchkit.run.compare import module_path

    made = preview(project, options=options)
    if view == "generated":
        wanted = None if topic is None else pick_entry(made.entries, topic).partition("::")[0]
        new = {name: text for name, text in made.modules.items() if wanted in {None, name}}
        files = {name: module_path(project, name) for name in new}
        # bytes that are no UTF-8 were put there by hand: they show as what they are not, and so differ
        old = {name: path.read_bytes().decode("utf-8", "replace") for name, path in files.items() if path.is_file()}
        return module_changes(old, new, project.shown(project.generated / project.package), context=context)
    chosen = [made.entries[pick_entry(made.entries, topic)]] if topic is not None else list(made.entries.values())
    changes = []
    for item in chosen:
        before, after = (f"{item.ref} ({side.partition(',')[0]})" for side in LABELS["delta"])
        if item.upstream is None:
            changes += [Change(item.ref, note="owned: it has no upstream")] if topic is not None else []
        else:
            changes.append(change(item.ref, level(item.upstream, item.generated), item.generated, before, after, context=context))
    return [c for c in changes if c.lines or c.note]


def at_release(
    session: Session, project: Project, view: View, against: str, topic: str | None, options: SourceOptions, context: int
) -> list[Change] | int:
    """A view of an upgrade; where there is none, its findings are printed and the result is the exit code."""
    from afd_patchkit.findings.report import Report
    from afd_patchkit.manifest.load import load_manifests
    from afd_patchkit.queries.entries import entries_by_label, pick_entry
    from afd_patchkit.reports.diffs import Change
    from afd_patchkit.reports.upgrade.diff import absent, entry_diff
    from afd_patchkit.upgrade.upgrading import upgrade

    loaded = load_manifests(project)
    labels = entries_by_label(loaded.manifests)
    ref = pick_entry(labels, topic) if topic is not None else None
    name, equals, version = against.partition("=")
    if not equals:
        used = {entry.pin or manifest.pin for label, (manifest, entry, _) in labels.items() if ref in {None, label}} - {None}
        targets = [n for n, pin in loaded.pins.pins.items() if n in used and (pin.role == "target" or ref is not None)]
        if len(targets) != 1:
            known = ", ".join(targets) or "none of them is a target pin"
            raise click.UsageError(f"Say which pin: --against NAME={against} (pins of these entries: {known}).")
        name, version = targets[0], against
    result = upgrade(project, pin_overrides={name: version}, options=options)
    if result.exit_code >= EXIT_USAGE and not result.entries:
        return session.report(Report(findings=result.findings))
    changes = []
    for entry in result.entries:
        if ref is not None and entry.ref != ref:
            continue
        lines = entry_diff(entry, view, context=context)
        why = "" if lines else absent(entry, view)
        if lines or (why and (ref is not None or entry.status != "unchanged")):
            changes.append(Change(entry.ref, tuple(lines), why))
    return changes


