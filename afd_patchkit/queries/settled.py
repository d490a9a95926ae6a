"""What `regen` says of another release than the pinned one: which entries need a person, how many are fine, what retires, what stays."""

from __future__ import annotations

from collections.abc import Iterator

from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.reports.layout import plural
from afd_patchkit.reports.upgrade.view import condition_lines, tally
from afd_patchkit.upgrade.result import UpgradeResult


def moved_by_hand(result: UpgradeResult, pin: str, to: str) -> Iterator[Finding]:
    """What `upgrade` says of a pin that pins.yaml has moved: an error for each entry that needs a person, and one that says what to do."""
    blocked = [entry.ref for entry in result.entries if entry.blocks]
    errors = [f for f in result.findings if f.exit_code]
    if blocked or errors:
        yield finding(
            "PK117",
            f"pin {pin} was moved from {result.old} to {to} in pins.yaml, and "
            + (
                f"{plural(len(blocked), 'entry needs', 'entries need')} a person"
                if blocked
                else "that cannot be judged"
            ),
            details=tuple(blocked),
            help=f"Nothing is generated at {to} before that: review with `afd-patchkit upgrade --pin {pin}={to}`, mend or `accept`, then "
            "run it with --write.",
        )
    yield from settled(result, pin, to)


def settled(result: UpgradeResult, pin: str, version: str) -> Iterator[Finding]:
    """An error for each entry that needs a person; notes on all the others."""
    yield from (f for f in result.findings if f.exit_code)
    release = f"{result.distribution} {version}"
    for entry in result.entries:
        if entry.blocks:
            yield finding(
                "PK501",
                f"{entry.symbol} is not settled at {release}: {entry.status}",
                entry=entry.ref,
                manifest=next((f.manifest for f in entry.reasons if f.manifest), None),
                details=tuple(line for line in (entry.upstream_changed, entry.must_do) if line),
                help=f"Nothing was written. `afd-patchkit upgrade --pin {pin}={version}` shows the change.",
            )
    if not result.entries:
        return
    yield finding("PK660", f"{release}: {tally(result)}", details=tuple(f"{e.status}: {e.ref}" for e in result.entries))
    for line in condition_lines(result):
        count, _, condition = line.partition(": ")
        yield finding("PK661", f"not generated for {release}, {count}: {condition}")
    for line in result.remarks:
        ref, _, said = line.partition(": ")
        yield finding("PK663", f"this entry retires at {release}: {said}", entry=ref)
    for line in result.stays:
        ref, _, why = line.partition(": ")
        yield finding("PK662", f"this entry stays at {release}: {why}", entry=ref)
