"""The functions of one file as entries without deltas, each judged by the oracle and by the second proof."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Severity
from tools.oracles.sweep.engine import GROUP, Engine
from tools.oracles.sweep.judge import Function, UpstreamFile, judge

BRANCHES = 50
"""Definitions of one name that are tried."""


@dataclass
class Outcome:
    """What became of some functions; outcomes add up.

    Attributes:
        counts: functions by `verbatim`, `rebound`, `wrong`, `crashed`, or the code of the finding that refused them.
        refusals: code, function, message.
        faults: function and what is wrong with it.
        once: functions that libcst cannot read, and so cannot prove.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[str, str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    once: int = 0

    def add(self, other: Outcome) -> None:
        """Add another outcome to this one."""
        self.counts += other.counts
        self.refusals += other.refusals
        self.faults += other.faults
        self.once += other.once


class FileSweep:
    """Sweeps the functions of one file."""

    def __init__(self, engine: Engine, module: str, *, group: bool) -> None:
        self.engine, self.module, self.group = engine, module, group
        source = engine.upstream.read(module)
        self.file = UpstreamFile(module, source.text, source.is_package)
        self.outcome = Outcome()

    def names(self) -> list[str]:
        """Qualified names, each once, in order."""
        return list(dict.fromkeys(f.qualname for f in self.file.functions))

    def run(self, only: set[str] | None = None) -> Outcome:
        """Sweep all functions, or some."""
        for qualname in self.names():
            if only is None or qualname in only:
                self._symbol(qualname, [f for f in self.file.functions if f.qualname == qualname])
        return self.outcome

    def _symbol(self, qualname: str, functions: list[Function]) -> None:
        """One name: as it is, or branch by branch where several definitions bind it; each function once."""
        left = {f.first_line: f for f in functions}
        again = self._one(qualname, None, left)
        branch = 0
        while again and left and branch < BRANCHES:  # a branch may also be an assignment
            branch += 1
            again = self._one(qualname, branch, left)
        for function in left.values():
            where = f"{self.module}:{qualname}"
            self._fault("wrong", where, f"line {function.first_line}: no entry gives this definition", 1)

    def _one(self, qualname: str, branch: int | None, left: dict[int, Function]) -> bool:
        """Judge one entry and take its functions out of `left`; whether further branches should be tried."""
        where = f"{self.module}:{qualname}" + (f" (branch {branch})" if branch else "")
        try:
            made = self.engine.make(self.module, qualname, branch, group=self.group and "." in qualname)
        except PatchkitError as error:
            found = next((f for f in error.findings if f.severity is Severity.ERROR), error.findings[0])
            if found.code == "PK206":
                return branch is None
            several = len(left) if branch is None else 1
            for line in sorted(left)[:several]:
                del left[line]
            self.outcome.counts[found.code] += several
            self.outcome.refusals.append((found.code, where, found.message))
            return branch is not None
        except Exception as error:
            count = len(left) if branch is None else 1
            for line in sorted(left)[:count]:
                del left[line]
            self._fault("crashed", where, crash(error), count)
            return branch is not None
        claimed = [left.pop(line) for line in made.lines if line in left]
        if len(claimed) != len(made.lines) or (not claimed and branch is None):
            self._fault(
                "wrong", where, f"it holds lines {made.lines}, which are not (or no more) definitions of that name", 1
            )
            return False
        if not claimed:
            return branch is not None
        container = GROUP if self.group and "." in qualname else None
        verdict = judge(self.file, claimed, made.text, made.facts, container=container)
        errors = [f for f in made.second if f.severity is Severity.ERROR]
        if verdict.status == "wrong":
            self._fault("wrong", where, verdict.detail, len(claimed))
        elif errors:
            self._fault("wrong", where, " ".join([errors[0].message, *errors[0].details]), len(claimed))
        else:
            self.outcome.counts["rebound" if made.declared else "verbatim"] += len(claimed)
            self.outcome.once += len(claimed) if made.second else 0
        return branch is not None

    def _fault(self, kind: str, where: str, detail: str, count: int) -> None:
        self.outcome.counts[kind] += count
        self.outcome.faults.append(f"{kind}: {where}: {detail}")


def crash(error: Exception) -> str:
    """An exception in one line, with the place that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
