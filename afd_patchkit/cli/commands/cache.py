"""`afd-patchkit cache`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from afd_patchkit.cli.session import pass_session, reporting_as
from afd_patchkit.findings.errors import EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    from afd_patchkit.cli.session import Session
    from afd_patchkit.reports.layout import Style
    from afd_patchkit.upstream.upkeep import Pruned, Stored

DAYS = 30.0
"""Days without use after which `prune` removes what no pin needs."""


@click.command("cache", short_help="Print what the cache holds, or remove what nobody needs.")
@click.argument("action", type=click.Choice(("size", "prune")), default="size", required=False)
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help=f"prune: what was not used for so many days (default: {DAYS:.0f}).",
)
@click.option("--all", "everything", is_flag=True, help="prune: remove all, also what the pins of this project need.")
@click.option("--dry-run", is_flag=True, help="prune: only say what would be removed.")
@reporting_as("text", "json")
@pass_session
def command(session: Session, action: str, days: float | None, everything: bool, dry_run: bool) -> int:
    """Print what the cache holds and where it is (`size`), or remove what nobody needs (`prune`).

    What the pins of this project's lock need stays, whatever its age, so that --offline goes on working. Nothing is
    removed while another command is using the cache. What is removed is fetched or made again when something needs it.
    """
    from afd_patchkit.api import SourceOptions, pins_needs
    from afd_patchkit.upstream.upkeep import DAY, contents, needed, prune

    if action == "size" and (days is not None or everything or dry_run):
        raise click.UsageError("--older-than, --all and --dry-run go with `cache prune`.")
    if everything and days is not None:
        raise click.UsageError("--all removes all, whatever its age: it does not go with --older-than.")
    store = SourceOptions().store
    needs = None if everything else pins_needs(session.project)
    if action == "size":
        items = contents(store)
        pinned = needed(store, items, needs) if needs is not None else set()
        print_size(session, store.root or Path(), items, pinned)
        return EXIT_OK
    age = 0.0 if everything else (DAYS if days is None else days) * DAY
    done = prune(store, needs, older_than=age, dry_run=dry_run)
    print_pruned(session, done, dry_run=dry_run)
    return EXIT_USAGE if done.failed else EXIT_OK


def _sum(items: Iterable[Stored]) -> dict[str, int]:
    sizes = [item.size for item in items]
    return {"files": len(sizes), "bytes": sum(sizes)}


def _amount(items: Iterable[Stored]) -> str:
    from afd_patchkit.reports.layout import human_bytes, plural

    found = _sum(items)
    return f"{plural(found['files'], 'file')} ({human_bytes(found['bytes'])})"


def print_size(session: Session, root: Path, items: Collection[Stored], pinned: Collection[Path]) -> None:
    """Print what the cache holds.

    Args:
        session: the command line that is running.
        root: where it is.
        items: what is there.
        pinned: what of it the pins of the project need.
    """
    kinds = {kind: [item for item in items if item.kind == kind] for kind in sorted({item.kind for item in items})}
    held = [item for item in items if item.path in pinned]
    if session.format == "json":
        data = {"format": "afd-patchkit/cache/1", "folder": str(root), "kinds": {k: _sum(v) for k, v in kinds.items()}}
        session.write(json.dumps({**data, "total": _sum(items), "pinned": _sum(held)}, indent=2) + "\n")
        return
    session.write(size_text(root, kinds, session.style()) + f"needed by the pins of this project: {_amount(held)}\n")


def size_text(root: Path, kinds: dict[str, list[Stored]], style: Style) -> str:
    """The table of what the cache holds, by kind."""
    from afd_patchkit.reports.layout import human_bytes, printable, table
    from afd_patchkit.upstream.upkeep import MEANINGS

    def row(name: str, items: Iterable[Stored], meaning: str) -> tuple[str, ...]:
        found = _sum(items)
        return name, f"{found['files']:,}", human_bytes(found["bytes"]), meaning

    rows = [row(printable(kind), items, MEANINGS.get(kind, "of another version")) for kind, items in kinds.items()]
    total = row("total", [item for items in kinds.values() for item in items], "")
    lines = (
        table(("kind", "files", "size", "holds"), rows, style, right=(1, 2), footer=total) if rows else ["it is empty"]
    )
    return "\n".join([printable(str(root)), *lines]) + "\n"


def print_pruned(session: Session, done: Pruned, *, dry_run: bool) -> None:
    """Print what was removed, or would be."""
    if session.format == "json":
        data = {"format": "afd-patchkit/cache-prune/1", "dry_run": dry_run}
        session.write(json.dumps({**data, "removed": _sum(done.removed), "kept": _sum(done.kept)}, indent=2) + "\n")
    else:
        removed, left = ("would remove", "would stay") if dry_run else ("removed", "left")
        session.write(f"{removed} {_amount(done.removed)}; {_amount(done.kept)} {left}\n")
    for path, why in done.failed.items():
        session.log(f"cannot be removed: {path}: {why}")
