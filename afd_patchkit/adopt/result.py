"""What an adoption found, and would write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from afd_patchkit.adopt.needs import CodeNeeds
from afd_patchkit.copies.pairing import CopyPair
from afd_patchkit.findings.finding import Finding


@dataclass
class Adopted:
    """One hand copy, and what became of it.

    Attributes:
        pair: the copy and its upstream function.
        entry: the entry as a manifest has it; None when it was refused.
        deltas: how many deltas it has.
        unexplained: how many of them no fence or comment explains.
        differs: what is cosmetic and not carried over: what, to how often.
        frozen: how many deltas repeat upstream text that they replace.
        proved: the generated function is the copy, name for name.
        why: why it was refused.
        code: the finding by which the engine refused what was derived; PK718 where it did not.
        seconds: processor time of deriving it, and its share of the proof.
    """

    pair: CopyPair
    entry: dict[str, Any] | None = None
    deltas: int = 0
    unexplained: int = 0
    differs: Mapping[str, int] = field(default_factory=dict)
    frozen: int = 0
    proved: bool = False
    why: str = ""
    code: str = "PK718"
    seconds: float = 0.0
    needs: CodeNeeds = field(default_factory=CodeNeeds)


@dataclass(frozen=True)
class Where:
    """Where the manifests of a file go.

    Attributes:
        folder: the patch set's folder below the manifests.
        stem: name of the module, without its ending.
        package: the import package of generated modules.
    """

    folder: str
    stem: str
    package: str

    @classmethod
    def of(cls, path: Path, folder: str = "adopted", package: str = "afd_backports") -> Where:
        """Where those of a file go: its module is called like it."""
        return cls(folder, re.sub(r"\W", "_", path.stem), package)

    @property
    def module(self) -> str:
        """The generated module as it is imported."""
        return f"{self.package}.{self.folder}.{self.stem}"


@dataclass
class Adoption:
    """What an adoption of one file found, and would write.

    Attributes:
        copies: each copy.
        files: path below the manifests' folder, to text.
        findings: what stands in the way.
        written: files that were written.
        where: where the manifests go.
    """

    copies: list[Adopted] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    where: Where = Where("", "", "")
