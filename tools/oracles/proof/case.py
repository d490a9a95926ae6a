"""One random delta: drawn, carried by the real `upgrade`, judged by an alignment that the engine does not use."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

from afd_patchkit.fence import MARKER
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upgrade.result import DeltaResult, EntryResult
from tools.oracles.proof.draw import Sample, sample
from tools.oracles.proof.engine import Engine
from tools.oracles.proof.judge import SAME, Alignment, Unit, Verdict, judge

SILENT = frozenset({"unchanged", "clean", "moved"})
"""Statuses that no person looks at (`moved`: only at the new place of the symbol)."""
STATUSES = ("unchanged", "clean", "moved", "absorbed", "review", "conflict", "missing")
_DRAWS = 6
_CLASSES = 0.15
"""Share of the deltas of a class itself, where one is drawn."""


@dataclass(frozen=True)
class Run:
    """One of the run's deltas: its number, symbol and release. The rest follows from seed and number."""

    number: int
    symbol: str
    release: str


@dataclass(frozen=True)
class Case:
    """One delta, carried and judged.

    Attributes:
        run: which one.
        symbol: what it changed: the symbol, or a method of it.
        sample: the delta; None when none was found.
        status: of the delta.
        entry_status: of the entry.
        codes: of its reasons.
        abstained: method B had no answer.
        verdict: of the judge; None where there is nothing to place.
        detail: where it was and where it is.
    """

    run: Run
    symbol: str
    sample: Sample | None
    status: str = ""
    entry_status: str = ""
    codes: tuple[str, ...] = ()
    abstained: bool = False
    verdict: Verdict | None = None
    detail: str = ""

    @property
    def misplaced(self) -> bool:
        """Whether nobody is told, and the delta stands somewhere else.

        A changed call keeps what upstream does to its other arguments: there the statement may have another text.
        """
        if self.status not in SILENT or self.verdict is None or self.sample is None:
            return False
        return self.verdict not in SAME and not (self.verdict == "rewritten" and self.sample.operation == "call")


class Prover:
    """Carries and judges deltas, in one process."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine, self.seed = engine, seed
        self._alignments: dict[tuple[str, str], Alignment] = {}

    def prove(self, run: Run) -> Case:
        """Draw a delta, carry it, judge it."""
        draw = random.Random(f"{self.seed}:{run.number}")
        reference = self._function(draw, run.symbol)
        if reference is None:
            return Case(run, run.symbol, None)
        symbol = self.engine.symbol(reference)
        for _ in range(_DRAWS):
            made = sample(draw, self.engine, symbol)
            if made is None:
                break
            case = self.carried(run, symbol, made)
            if case is not None:
                return case
        return Case(run, reference, None)

    def carried(self, run: Run, symbol: Symbol, made: Sample) -> Case | None:
        """One delta, carried and judged; None when its entry cannot be generated at the base."""
        carried = self.engine.carry(symbol.reference, made.yaml, run.release)
        result = carried.result
        if result is None:
            return None
        delta = result.deltas[0] if result.deltas else DeltaResult("probe", result.status)
        codes = tuple(dict.fromkeys(f.code for f in (*delta.reasons, *result.reasons)))
        verdict, detail = self._judge(result, made) if delta.status in (*SILENT, "review") else (None, "")
        return Case(run, symbol.reference, made, delta.status, result.status, codes, carried.abstained, verdict, detail)

    def _judge(self, result: EntryResult, made: Sample) -> tuple[Verdict | None, str]:
        if result.base is None or result.new is None or result.ours_new is None:
            return None, ""
        if MARKER not in result.ours_new:
            return None, ""
        key = (result.base, result.new)
        if key not in self._alignments:
            self._alignments[key] = Alignment(result.base, result.new)
        alignment = self._alignments[key]
        worst: Verdict = "same"
        lines = []
        for anchor in made.anchors:
            old = next(n for n, u in enumerate(alignment.old.units) if (u.first, u.kind) == (anchor.line, anchor.kind))
            verdict, now = judge(alignment, old, result.ours_new, result.new, anchor.place, anchor.kind, MARKER)
            if verdict == "same":
                continue
            worst = verdict if worst in SAME else worst
            there = alignment.there.get(old)
            lines.append(f"{anchor.place}: {verdict}")
            lines += [f"  was at {_shown(alignment.old.units[old])}"]
            lines += [f"  aligned to {_shown(alignment.new.units[there])}"] if there is not None else []
            lines += [f"  stands at {_shown(alignment.new.units[now])}"] if now is not None else []
        return worst, "\n".join(lines)

    def _function(self, draw: random.Random, name: str) -> str | None:
        """The symbol, or mostly one of its methods when it is a class."""
        symbol = self.engine.symbol(name)
        if not isinstance(symbol.node, ast.ClassDef):
            return name
        methods = [
            n.name
            for n in symbol.node.body
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and not n.decorator_list
        ]
        if not methods or draw.random() < _CLASSES:
            return name
        return f"{name}.{draw.choice(methods)}"


def _shown(unit: Unit, limit: int = 60) -> str:
    line = unit.text.split("\n")[0]
    return f"line {unit.first}: {line if len(line) <= limit else line[: limit - 3] + '...'}"
