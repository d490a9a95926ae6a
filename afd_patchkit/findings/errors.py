"""The exceptions a user of the tool can meet; each carries findings and the exit code it leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from afd_patchkit.findings.finding import Finding

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UPSTREAM = 3
EXIT_BUG = 70


class PatchkitError(Exception):
    """Something the user can mend: printed as findings, never as a traceback.

    Attributes:
        findings: what is wrong, each with its place and what to do; never empty.
        exit_code: the exit code of the command (design, section 8).
    """

    exit_code: ClassVar[int] = EXIT_FINDINGS

    def __init__(self, *findings: Finding) -> None:
        self.findings: tuple[Finding, ...] = findings
        super().__init__("; ".join(f"{f.code}: {f.message}" for f in findings))

    def __reduce__(self) -> tuple[type[PatchkitError], tuple[Finding, ...]]:
        """Pickled by its findings, so that it can cross processes."""
        return type(self), self.findings

    @classmethod
    def collect(cls, findings: Iterable[Finding]) -> PatchkitError:
        """The error that carries all of `findings`."""
        return cls(*findings)


class ManifestError(PatchkitError):
    """The command line, the project settings or a manifest is wrong."""

    exit_code = EXIT_USAGE


class UpstreamError(PatchkitError):
    """An upstream cannot be had, or what was had fails verification."""

    exit_code = EXIT_UPSTREAM


class DeltaError(PatchkitError):
    """A delta does not apply to the pinned upstream: a person must look."""


class NameResolutionError(PatchkitError):
    """A name of a generated entry cannot mean what it meant upstream."""
