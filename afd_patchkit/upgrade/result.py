"""What an upgrade has to say: plain data between classification, renderers and `--write`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from afd_patchkit.findings.finding import Finding, Position

Status = Literal["unchanged", "clean", "absorbed", "moved", "review", "conflict", "missing", "retire"]

ORDER: tuple[Status, ...] = ("missing", "conflict", "review", "absorbed", "moved", "clean", "unchanged", "retire")
"""From what needs most attention to what needs least."""

NEEDS_PERSON: frozenset[Status] = frozenset({"missing", "conflict", "review", "absorbed", "moved"})
"""Statuses that keep the old pin until a person has accepted or mended them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new anchor found by alignment, offered as a manifest edit.

    Attributes:
        where: the pattern scalar in the manifest.
        key: what it replaces, for instance `replace` or `before`.
        old: the pattern as it is.
        new: the pattern proposed.
        confidence: similarity of the aligned statements, 0 to 1.
        place: where it would match.
    """

    where: Position
    key: str
    old: str
    new: str
    confidence: float
    place: Position


@dataclass(frozen=True, slots=True)
class DeltaResult:
    """What happened to one delta.

    Attributes:
        name: the delta.
        status: its own status.
        reasons: findings (PK5xx) that made it so; empty for `clean` and `unchanged`.
        accepted: every reason is covered by a valid acceptance.
        old_lines: upstream lines of its anchor at the base; (0, 0) when unknown.
        new_lines: upstream lines it applies to now; (0, 0) when it does not.
        proposal: a new anchor, where one was found.
    """

    name: str
    status: Status
    reasons: tuple[Finding, ...] = ()
    accepted: bool = False
    old_lines: tuple[int, int] = (0, 0)
    new_lines: tuple[int, int] = (0, 0)
    proposal: Proposal | None = None


@dataclass(frozen=True, slots=True)
class EntryResult:
    """What happened to one entry on one axis (its target or its donor).

    Attributes:
        ref: `module.py::name`.
        kind: kind of the entry.
        symbol: `package.module:Qual.name` at the base.
        new_symbol: where it is now, when it moved; else `symbol`.
        axis: `target` or `donor`: which pin moved.
        status: the worst of its deltas and its own reasons.
        reasons: findings of the entry as a whole (signature, decorators, gates, calls).
        accepted: every reason, also of its deltas, is covered by a valid acceptance.
        upstream_changed: in words, for the first column of the table ("body +3/-1; parameter added: x").
        must_do: in words, for the last column.
        deltas: in manifest order.
        successors: likely new homes of a missing symbol, best first, with similarity 0 to 1.
        base: upstream's old text; None when the old upstream is not at hand.
        new: upstream's new text; None when the symbol is missing.
        ours_old: generated text at the base; None when it is not at hand.
        ours_new: generated text now; for a conflict the merged text with conflict markers; None when there is none.
        other: method B's result where it differs from `ours_new`.
        new_digest: digest of `new`, for acceptances.
        base_digest: digest of the old text, for acceptances.
        attributes: attributes of parameters that the new text reads and the old one did not.
        named_at: where the manifest names the symbol, when it has moved with the same text.
        file: the file of `new`, inside the distribution; empty when there is none.
        base_lines: lines of the old file that `base` is, as first and last of each part.
        new_lines: the same of the new file and `new`.
        superfluous: its removal condition holds, as far as one can see; with the status `review` a person must say.
    """

    ref: str
    kind: str
    symbol: str
    new_symbol: str
    axis: Literal["target", "donor"]
    status: Status
    reasons: tuple[Finding, ...] = ()
    accepted: bool = False
    upstream_changed: str = ""
    must_do: str = ""
    deltas: tuple[DeltaResult, ...] = ()
    successors: tuple[tuple[str, float], ...] = ()
    base: str | None = None
    new: str | None = None
    ours_old: str | None = None
    ours_new: str | None = None
    other: str | None = None
    new_digest: str = ""
    base_digest: str = ""
    attributes: tuple[str, ...] = ()
    named_at: Position | None = None
    file: str = ""
    base_lines: tuple[tuple[int, int], ...] = ()
    new_lines: tuple[tuple[int, int], ...] = ()
    superfluous: bool = False

    @property
    def blocks(self) -> bool:
        """Whether it keeps the old pin."""
        return self.status in NEEDS_PERSON and not self.accepted


@dataclass(frozen=True, slots=True)
class AliasChange:
    """Modules that started or stopped to hold a symbol by name (`from module import name`)."""

    symbol: str
    added: tuple[Position, ...] = ()
    removed: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """One upgrade to one release.

    Attributes:
        pin: the pin that moves.
        distribution: its distribution.
        old: version (or commit) before.
        new: version (or commit) after.
        entries: in order of module and manifest.
        retired_modules: modules that vanish wholly.
        stays: entries that stay although others of their set retire, with the reason.
        remarks: what the manifests say in `removal` of entries that retire, as `entry: text`.
        deletions: what to delete from the manifests, as `file:line: entry`.
        aliases: alias sites added or removed.
        findings: everything that concerns no single entry.
        written: files written (with `--write`).
        base_available: whether the old upstream's text was at hand.
        seconds: wall time.
        given: the options that said where upstreams are read from: what is asked again needs them again.
    """

    pin: str
    distribution: str
    old: str
    new: str
    entries: tuple[EntryResult, ...] = ()
    retired_modules: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    deletions: tuple[str, ...] = ()
    aliases: tuple[AliasChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    written: tuple[str, ...] = field(default=())
    base_available: bool = True
    seconds: float = 0.0
    given: tuple[str, ...] = ()

    def count(self, status: Status) -> int:
        """Number of entries with a status."""
        return sum(1 for entry in self.entries if entry.status == status)

    @property
    def exit_code(self) -> int:
        """3 for upstream trouble, 2 for manifests, 1 when a person is needed or something is to be deleted, else 0."""
        worst = max((f.exit_code for f in self.findings), default=0)
        return max(worst, int(any(e.blocks or e.status == "retire" for e in self.entries)))
