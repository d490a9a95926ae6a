"""The proof: random deltas through `upgrade`, their places judged by an alignment that the engine does not use."""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Finding
from afd_patchkit.source.locate import Symbol
from afd_patchkit.upgrade.result import DeltaResult, EntryResult
from tools.proof_deltas import OPERATIONS, Sample, elided, sample
from tools.proof_engine import BASE, MARKER, RELEASES, Engine, remember
from tools.proof_judge import SAME, Alignment, Unit, Verdict, judge
from tools.sweep_run import progress

SYMBOLS = Path(__file__).with_name("drift_symbols.txt")
SILENT = frozenset({"unchanged", "clean", "moved"})
"""Statuses that no person looks at (`moved`: only at the new place of the symbol)."""
STATUSES = ("unchanged", "clean", "moved", "absorbed", "review", "conflict", "missing")
_DRAWS = 6
_CHUNK = 40


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


def symbols(path: Path = SYMBOLS) -> list[str]:
    """The functions and classes to draw from."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def draw_runs(count: int, seed: int, names: Sequence[str], releases: Sequence[str] = RELEASES) -> list[Run]:
    """Symbol and release of each delta."""
    draw = random.Random(f"{seed}")
    return [Run(n, draw.choice(names), draw.choice(releases)) for n in range(count)]


# ---- one delta ----------------------------------------------------------------------------------------------------


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
        """The symbol, or one of its methods when it is a class."""
        symbol = self.engine.symbol(name)
        if not isinstance(symbol.node, ast.ClassDef):
            return name
        methods = [
            n.name for n in symbol.node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and not n.decorator_list
        ]
        return f"{name}.{draw.choice(methods)}" if methods else None


def _shown(unit: Unit, limit: int = 60) -> str:
    line = unit.text.split("\n")[0]
    return f"line {unit.first}: {line if len(line) <= limit else line[: limit - 3] + '...'}"


# ---- workers ------------------------------------------------------------------------------------------------------

_prover: Prover | None = None


def _start(seed: int) -> None:
    global _prover  # noqa: PLW0603 - one per worker process
    remember()
    _prover = Prover(Engine(), seed)


def _prove(runs: Sequence[Run]) -> list[Case] | tuple[Finding, ...]:
    assert _prover is not None
    try:
        return [_prover.prove(run) for run in runs]
    except PatchkitError as error:  # as data: exceptions with attributes do not travel between processes
        return error.findings


def _chunks(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Runs of one module together, so that a worker parses a file once."""
    ordered = sorted(runs, key=lambda r: (r.symbol, r.release, r.number))
    for start in range(0, len(ordered), _CHUNK):
        yield ordered[start : start + _CHUNK]


def prove_all(runs: Sequence[Run], seed: int, jobs: int) -> list[Case]:
    """Prove every run, in worker processes; in order of their numbers.

    Raises:
        UpstreamError: a release cannot be had.
    """
    chunks = list(_chunks(runs))
    context = multiprocessing.get_context("spawn")
    cases: list[Case] = []
    with ProcessPoolExecutor(jobs, context, _start, (seed,)) as pool, progress(len(runs), "proving") as done:
        for future in as_completed([pool.submit(_prove, chunk) for chunk in chunks]):
            found = future.result()
            if isinstance(found, tuple):
                raise UpstreamError(*found)
            cases += found
            for _ in found:
                done()
    return sorted(cases, key=lambda c: c.run.number)


# ---- known cases --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A real change that a pattern alone does not notice."""

    name: str
    symbol: str
    release: str
    yaml: str


KNOWN = (
    Known(
        "the assignment from get_computed_blocks is another one",
        "vllm.v1.core.sched.scheduler:Scheduler.schedule",
        "0.28.0",
        '- name: probe\n  after: |\n    ... = self.kv_cache_manager.get_computed_blocks(request)\n  insert: |\n    print("probe")\n',
    ),
    Known(
        "logits_idx is loaded from something else",
        "vllm.v1.worker.gpu.structured_outputs:_apply_grammar_bitmask_kernel",
        "0.28.0",
        '- name: probe\n  after: |\n    logits_idx = tl.load(...)\n  insert: |\n    print("probe")\n',
    ),
    Known(
        "the pause state that must hold around it is another one",
        "vllm.v1.core.sched.scheduler:Scheduler.schedule",
        "0.32.0",
        '- name: probe\n  after: |\n    ... = request_queue.peek_request()\n  insert: |\n    print("probe")\n',
    ),
    Known(
        "the test of the pause state is another one",
        "vllm.v1.core.sched.scheduler:Scheduler.schedule",
        "0.32.0",
        "- name: probe\n  expr: |\n    self._pause_state == PauseState.UNPAUSED\n  with: |\n    __upstream__ and bool(1)\n",
    ),
)
"""Anchors that match exactly once in both releases: two find another statement (design, section 10), one stands under another
condition than before, one finds the old condition at another place."""


def known_problem(known: Known) -> str:
    """Why a known case is not shown to a person; empty when it is."""
    remember()
    carried = Engine().carry(known.symbol, known.yaml, known.release)
    if carried.result is None:
        return f"it cannot be generated at the base: {', '.join(carried.why)}"
    status = carried.result.deltas[0].status
    return "" if status in ("review", "conflict") else f"status {status}"


# ---- the report ---------------------------------------------------------------------------------------------------


def _table(title: str, groups: Sequence[tuple[str, Sequence[Case]]]) -> Iterator[str]:
    yield f"{title:10} {'deltas':>6}" + "".join(f" {s:>9}" for s in STATUSES) + f" {'B abstains':>11}"
    for name, cases in groups:
        counts = Counter(c.status for c in cases)
        shares = "".join(f" {counts[s] / len(cases):9.1%}" for s in STATUSES)
        merged = [c for c in cases if c.status not in ("unchanged", "conflict", "missing")]
        abstained = f"{sum(c.abstained for c in merged) / len(merged):11.1%}" if merged else f"{'-':>11}"
        yield f"{name:10} {len(cases):6}{shares} {abstained}"


def report(cases: Sequence[Case], seed: int) -> Iterator[str]:
    """Shares by release and operation, and every misplacement."""
    judged = [c for c in cases if c.sample is not None]
    without = len(cases) - len(judged)
    yield f"{len(judged):,} deltas over {len({c.run.symbol for c in judged})} symbols" + (f"; {without} without a delta" if without else "")
    yield ""
    yield from _table("release", [(r, own) for r in RELEASES if (own := [c for c in judged if c.run.release == r])])
    yield ""
    operations = [(o, own) for o in OPERATIONS if (own := [c for c in judged if c.sample and c.sample.operation == o])]
    yield from _table("operation", [*operations, ("all", judged)] if judged else [])
    yield ""
    silent = [c for c in judged if c.status in SILENT and c.verdict is not None]
    verdicts = Counter(str(c.verdict) for c in silent)
    yield f"placed without a word: {len(silent):,}; the judge says {', '.join(f'{v} {n:,}' for v, n in verdicts.most_common())}"
    seen = Counter(str(c.verdict) for c in judged if c.status == "review" and c.verdict)
    yield f"placed and shown (review): {sum(seen.values()):,}; the judge says {', '.join(f'{v} {n:,}' for v, n in seen.most_common())}"
    faults = [c for c in judged if c.misplaced]
    yield f"silently misplaced: {len(faults)}"
    for case in faults:
        assert case.sample is not None
        yield ""
        yield f"{case.symbol} {BASE} -> {case.run.release}: {case.status} (entry {case.entry_status}), judge: {case.verdict}"
        yield f"again: tools/proof --seed {seed} --count {case.run.number + 1} --only {case.run.number}"
        yield elided(case.sample.yaml).rstrip()
        yield case.detail


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proof; an upstream that cannot be had is exit code 3."""
    try:
        return _main(arguments)
    except PatchkitError as error:
        for said in error.findings:
            print(f"{said.code}: {said.message}", *said.details, sep="\n  ", file=sys.stderr)
        return error.exit_code


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="tools/proof", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="number of deltas (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other deltas")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    parser.add_argument("--only", type=int, metavar="N", help="delta number N alone, in full")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    failures = [f"{known.name}: {problem}" for known in KNOWN if (problem := known_problem(known))] if options.only is None else []
    runs = draw_runs(options.count, options.seed, symbols())
    if options.only is not None:
        runs = [run for run in runs if run.number == options.only]
        remember()
        cases = [Prover(Engine(), options.seed).prove(run) for run in runs]
        for case in cases:
            print(case.symbol, case.run.release, case.status, *case.codes, f"judge: {case.verdict}", f"B abstained: {case.abstained}")
            print(case.sample.yaml if case.sample else "no delta", case.detail, sep="\n")
    else:
        cases = prove_all(runs, options.seed, options.jobs)
    print("\n".join(report(cases, options.seed)))
    print(f"known mis-anchorings and changed header: {'; '.join(failures) or 'all shown as review or conflict'}")
    print(f"seed {options.seed}, {time.monotonic() - started:.0f} s")
    return int(bool(failures) or any(c.misplaced for c in cases))
