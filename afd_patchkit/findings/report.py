"""What a run of `regen`, `check` or `audit` has to say; plain data for the renderers and for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Protocol

from afd_patchkit.findings.finding import Finding


@dataclass(frozen=True, slots=True)
class ModuleCounts:
    """What is counted of one module, or of several together.

    Attributes:
        entries: number of entries generated.
        deltas: number of deltas applied.
        upstream_lines: lines of the used upstream symbols.
        verbatim_lines: those of them that stand unchanged (indentation aside) in the output.
        lines: lines of the module.
        files: upstream files read; several modules may share them.
    """

    entries: int = 0
    deltas: int = 0
    upstream_lines: int = 0
    verbatim_lines: int = 0
    lines: int = 0
    files: int = 0

    @property
    def share(self) -> float | None:
        """Share of upstream lines kept verbatim, 0 to 1; None for a module without upstream lines."""
        return self.verbatim_lines / self.upstream_lines if self.upstream_lines else None

    @classmethod
    def sum(cls, items: Iterable[ModuleCounts]) -> ModuleCounts:
        """The counts of several modules added up."""
        rows = [astuple(item) for item in items]
        return cls(*(sum(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class ModuleReport:
    """One generated module.

    Attributes:
        module: path below the generated root, for instance `acme_backport/runner.py`.
        status: `written`, `unchanged`, `differs` (with `check`), `retired`, `failed`.
        counts: what is counted of it.
        retired: names of entries whose removal condition holds.
    """

    module: str
    status: str
    counts: ModuleCounts = ModuleCounts()
    retired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PinReport:
    """What one pin was read from in this run; `bytes` counts what came over the network."""

    pin: str
    version: str
    source: str
    file: str
    sha256: str | None
    files: int
    bytes: int
    requests: int


@dataclass(frozen=True, slots=True)
class CopyReport:
    """One hand copy, as `audit` found it.

    Attributes:
        file: where it stands.
        line: the line of its definition.
        function: its qualified name there.
        upstream: what it is a copy of, `package.module:Qual.name`; empty when that is not known.
        evidence: what says so: `assignment`, `override`, `comment`, `name`; empty when nothing does.
        kind: `copy`, or `delegate` when it calls the original in place of its body.
        likeness: share of the statements outside of fences that are upstream's, 0 to 1.
        fenced: changes inside fences.
        unfenced: changes outside of them.
        cosmetic: differences that change nothing: what differs, to how often.
    """

    file: str
    line: int
    function: str
    upstream: str = ""
    evidence: str = ""
    kind: str = "copy"
    likeness: float = 0.0
    fenced: int = 0
    unfenced: int = 0
    cosmetic: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ReferenceCounts:
    """How much of what our own code refers to could be told.

    Attributes:
        resolved: references that lead to something of the trees or of ours.
        bound: calls among them that were seen to fit.
        outside: references to packages that no pin provides.
        unknown: references through values that nothing is known of.
    """

    resolved: int = 0
    bound: int = 0
    outside: int = 0
    unknown: int = 0

    def __add__(self, other: ReferenceCounts) -> ReferenceCounts:
        return ReferenceCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of `regen` or `check` has to say."""

    findings: tuple[Finding, ...] = ()
    modules: tuple[ModuleReport, ...] = ()
    pins: tuple[PinReport, ...] = ()
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    seconds: float = 0.0
    shortcut: bool = False
    """True when digests proved that nothing had to be regenerated."""
    references: ReferenceCounts | None = None
    """What our own code refers to; counted when everything is looked at (`--full`)."""
    copies: tuple[CopyReport, ...] = ()
    """The hand copies that `audit` found."""

    @property
    def exit_code(self) -> int:
        """The most serious exit code of the findings: upstream (3), manifest (2), findings (1), none (0)."""
        return max((f.exit_code for f in self.findings), default=0)


class Progress(Protocol):
    """Told about long work: entries, modules, or the bytes of a download."""

    def start(self, total: int | None) -> None:
        """Work on `total` pieces begins (None: nobody knows how many), or the same begins again after a failure."""

    def advance(self, n: int) -> None:
        """Count `n` more as done."""

    def done(self) -> None:
        """The work ended, well or not."""


class Waits(Protocol):
    """Told about what does not come; from several threads, and for several things at once."""

    def waiting(self, what: str) -> None:
        """`what` has been waited for for a second."""

    def arrived(self, what: str) -> None:
        """It has come, or is given up."""


def tell(waits: Waits | None, what: str, begins: bool) -> None:
    """Say that `what` is waited for, or is not any more, to whoever wants to know."""
    if waits is not None:
        (waits.waiting if begins else waits.arrived)(what)
