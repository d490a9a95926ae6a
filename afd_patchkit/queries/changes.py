"""What `diff` shows: a change of upstream's, of ours, or of the generated code."""

from __future__ import annotations

from dataclasses import replace

from afd_patchkit.findings.errors import EXIT_USAGE, ManifestError, PatchkitError
from afd_patchkit.findings.finding import finding
from afd_patchkit.manifest.load import load_manifests
from afd_patchkit.project import Project
from afd_patchkit.queries.entries import entries_by_label, pick_entry
from afd_patchkit.queries.preview import preview, project_at
from afd_patchkit.reports.diffs import Change, change, module_changes
from afd_patchkit.reports.unified import level
from afd_patchkit.reports.upgrade.diff import LABELS, View, absent, entry_diff
from afd_patchkit.run.ownership import module_path
from afd_patchkit.upgrade.upgrading import upgrade
from afd_patchkit.upstream.options import SourceOptions


def diff(
    project: Project,
    entry: str | None = None,
    *,
    view: View = "delta",
    against: str | None = None,
    base: str | None = None,
    sources: SourceOptions | None = None,
    context: int = 3,
) -> list[Change]:
    """One change of one entry, or of all; generated in memory, whatever the files say.

    Args:
        project: what to look at.
        entry: `module.py::name`, or its end where that is enough; all entries by default.
        view: `delta`: what our deltas make of upstream's text. `generated`: what `regen` would change in the files, or,
            with `against`, what changes in the generated text. `upstream`: what upstream changed, with `against`.
        against: `[NAME=]V`: version or commit of the pin to compare with.
        base: a git revision: what the generated code has changed since; neither `view` nor `against` counts.
        sources: where upstreams may come from.
        context: lines around each change.

    Raises:
        PatchkitError: something cannot be generated, or there is no such entry, pin or revision.
    """
    options = sources or SourceOptions()
    if base is not None:
        return _since(project, base, entry, options, context)
    if against is not None:
        return _at_release(project, view, against, entry, options, context)
    return _now(project, view, entry, options, context)


def _since(project: Project, revision: str, topic: str | None, options: SourceOptions, context: int) -> list[Change]:
    """What the generated code of the working tree has changed since a git revision.

    Raises:
        PatchkitError: one of the two cannot be generated.
    """
    new = preview(project, options=options)
    with project_at(project, revision) as there:
        try:
            old = preview(there, options=options, lenient=True)
        except PatchkitError as error:
            raise type(error)(*(replace(f, message=f"at {revision}: {f.message}") for f in error.findings)) from error
    if topic is None:
        return module_changes(old.modules, new.modules, project.shown(project.package_folder), context=context)
    ref = pick_entry({*old.entries, *new.entries}, topic)
    before, after = old.entries.get(ref), new.entries.get(ref)
    texts = (before.generated if before else None, after.generated if after else None)
    item = change(ref, *texts, f"{ref} ({revision})", ref, context=context)
    return [item] if item.lines else []


def _now(project: Project, view: View, topic: str | None, options: SourceOptions, context: int) -> list[Change]:
    """Our deltas at the pins, or what regen would change in the files."""
    made = preview(project, options=options)
    if view == "generated":
        wanted = None if topic is None else pick_entry(made.entries, topic).partition("::")[0]
        new = {name: text for name, text in made.modules.items() if wanted in {None, name}}
        files = {name: module_path(project, name) for name in new}
        # bytes that are no UTF-8 were put there by hand: they show as what they are not, and so differ
        old = {name: path.read_bytes().decode("utf-8", "replace") for name, path in files.items() if path.is_file()}
        return module_changes(old, new, project.shown(project.package_folder), context=context)
    chosen = [made.entries[pick_entry(made.entries, topic)]] if topic is not None else list(made.entries.values())
    changes = []
    for item in chosen:
        before, after = (f"{item.ref} ({side.partition(',')[0]})" for side in LABELS["delta"])
        if item.upstream is None:
            changes += [Change(item.ref, note="owned: it has no upstream")] if topic is not None else []
        else:
            changes.append(
                change(item.ref, level(item.upstream, item.generated), item.generated, before, after, context=context)
            )
    return [c for c in changes if c.lines or c.note]


def _at_release(
    project: Project, view: View, against: str, topic: str | None, options: SourceOptions, context: int
) -> list[Change]:
    """The changes that an upgrade to another release would make."""
    loaded = load_manifests(project)
    labels = entries_by_label(loaded.manifests)
    ref = pick_entry(labels, topic) if topic is not None else None
    name, equals, version = against.partition("=")
    if not equals:
        used = {entry.pin or manifest.pin for label, (manifest, entry, _) in labels.items() if ref in {None, label}} - {
            None
        }
        targets = [n for n, pin in loaded.pins.pins.items() if n in used and (pin.role == "target" or ref is not None)]
        if len(targets) != 1:
            known = ", ".join(targets) or "none of them is a target pin"
            raise ManifestError(
                finding(
                    "PK095", f"{against} of which pin?", help=f"Say NAME={against}. Pins of these entries: {known}."
                )
            )
        name, version = targets[0], against
    result = upgrade(project, pin_overrides={name: version}, options=options)
    if result.exit_code >= EXIT_USAGE and not result.entries:
        raise PatchkitError(*result.findings)
    changes = []
    for entry in result.entries:
        if ref is not None and entry.ref != ref:
            continue
        lines = entry_diff(entry, view, context=context)
        why = "" if lines else absent(entry, view)
        if lines or (why and (ref is not None or entry.status != "unchanged")):
            changes.append(Change(entry.ref, tuple(lines), why))
    return changes
