"""`afd-patchkit adopt`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.engine import given_pin_option, given_pins, source_options, source_paths, upstreams
from afd_patchkit.cli.progress import progress_for
from afd_patchkit.cli.session import pass_session, reporting

if TYPE_CHECKING:
    from afd_patchkit.adopt.result import Adopted, Adoption
    from afd_patchkit.cli.session import Session
    from afd_patchkit.findings.report import CopyReport
    from afd_patchkit.reports.context import Context


@click.command("adopt", short_help="Derive a manifest from the hand copies of a file.")
@click.argument("target", metavar="FILE[::QUALNAME]")
@click.option("--symbol", metavar="S", help="What QUALNAME is a copy of, `package.module:Qual.name`.")
@given_pin_option
@source_options
@click.option("--set", "folder", metavar="NAME", default="adopted", help="Folder of the manifests (default: adopted).")
@click.option("--write", is_flag=True, help="Write the manifests into the project.")
@click.option("--replace", is_flag=True, help="With --write: let FILE import the functions from the generated module.")
@reporting
@pass_session
def command(
    session: Session,
    target: str,
    symbol: str | None,
    pins: Sequence[tuple[str, str]],
    sources: Sequence[tuple[str, str]],
    offline: bool,
    folder: str,
    write: bool,
    replace: bool,
) -> int:
    """Derive the deltas that make the hand copies in FILE of upstream's functions, and prove them.

    Each entry is generated and compared with its copy, name for name; what cannot be proved is refused. A change that
    no fence explains becomes a delta called UNEXPLAINED, about which `check` complains until a person has named or
    deleted it. Without --write nothing is written, and the manifests are shown.
    """
    from afd_patchkit.adopt.adopting import not_replaceable, replace_file, write_manifests
    from afd_patchkit.api import AuditOptions, Report, adopt
    from afd_patchkit.project import load_project

    name, _, function = target.partition("::")
    path = Path(name)
    if not path.is_file():
        raise click.UsageError(f"there is no file {name}.")
    if symbol is not None and (not function or ":" not in symbol):
        raise click.UsageError("--symbol package.module:Qual.name needs FILE::QUALNAME.")
    if replace and not write:
        raise click.UsageError("--replace needs --write.")
    if not folder.isidentifier():
        raise click.UsageError(f"--set {folder!r} is no name of a Python package.")
    places = source_paths(sources)
    project = load_project(session.project) if write else None
    chosen = given_pins(session, pins, places)
    with progress_for(session) as bars:
        options = AuditOptions(pins=chosen, sources=upstreams(session, bars, offline=offline, sources=places))
        package = project.package if project is not None else "afd_backports"
        done = adopt(path, options, function=function or None, symbol=symbol, folder=folder, package=package)
    refused = not_replaceable(done) if replace else None
    if refused is not None:
        done.findings.append(refused)
    elif project is not None and done.files:
        write_manifests(done, project.manifests)
        if replace:
            replace_file(done, path)
    report = Report(
        findings=tuple(done.findings),
        copies=tuple(_row(item) for item in done.copies),
        written=tuple(p.as_posix() for p in done.written),
    )
    return session.report(report, text=lambda context: adoption_text(done, context))


def _row(item: Adopted) -> CopyReport:
    from afd_patchkit.findings.report import CopyReport

    pair = item.pair
    place = (pair.hand.file.shown, pair.hand.node.lineno, pair.hand.qualname, pair.symbol.reference, pair.evidence)
    kind = "delegate" if pair.delegates else "copy"
    return CopyReport(
        *place, kind, round(pair.likeness, 3), item.deltas - item.unexplained, item.unexplained, dict(item.differs)
    )


def adoption_text(done: Adoption, context: Context) -> str:
    """What was derived: a row for each copy, and the files, or where they were written."""
    from afd_patchkit.reports.layout import plural, printable, table

    rows = [
        (
            item.pair.hand.qualname,
            item.pair.symbol.reference,
            str(item.deltas) if item.proved else "-",
            str(item.unexplained) if item.proved else "-",
            ", ".join(f"{n} {what}" for what, n in item.differs.items()) or "-",
            "proved" if item.proved else "refused",
        )
        for item in done.copies
    ]
    header = ("function", "upstream", "deltas", "unexplained", "not carried over", "round trip")
    lines = [*table(header, [tuple(map(printable, r)) for r in rows], context.style, right=(2, 3)), ""] if rows else []
    if done.written:
        lines += [f"written: {path.as_posix()}" for path in done.written]
        lines += ["next: afd-patchkit regen"]
    else:
        for name, text in done.files.items():
            lines += [context.style.paint(f"# {name}", "bold"), text]
        if done.files:
            lines.append(f"{plural(len(done.files), 'file')} to write: --write")
    return "\n".join(lines) + "\n" if lines else ""
