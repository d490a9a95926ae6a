"""The run of the proof: which deltas are drawn, the workers that carry and judge them, and the command."""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from afd_patchkit.findings.errors import PatchkitError, UpstreamError
from afd_patchkit.findings.finding import Finding
from tools.oracles.meaning.engine import changeable
from tools.oracles.progress import progress
from tools.oracles.proof.around import arounds, table
from tools.oracles.proof.case import Case, Prover, Run
from tools.oracles.proof.engine import Engine, remember
from tools.oracles.proof.known import KNOWN, known_problem
from tools.oracles.proof.report import report
from tools.oracles.releases import RELEASES, read_symbols

_CHUNK = 40


def draw_runs(count: int, seed: int, names: Sequence[str], releases: Sequence[str] = RELEASES) -> list[Run]:
    """Symbol and release of each delta.

    Args:
        count: number of deltas.
        seed: another seed, other deltas.
        names: symbols to draw from.
        releases: releases to draw from.
    """
    draw = random.Random(f"{seed}")
    return [Run(n, draw.choice(names), draw.choice(releases)) for n in range(count)]


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proof; an upstream that cannot be had is exit code 3."""
    try:
        return _main(arguments)
    except PatchkitError as error:
        for said in error.findings:
            print(f"{said.code}: {said.message}", *said.details, sep="\n  ", file=sys.stderr)
        return error.exit_code


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/proof",
        description="Random deltas through `upgrade`, their places judged by an alignment that the engine does not use.",
    )
    parser.add_argument("--count", type=int, default=2000, help="number of deltas (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other deltas")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (default 2)")
    parser.add_argument(
        "--around", type=int, metavar="N", help="changes around deltas instead, made in the pinned release, N of them"
    )
    parser.add_argument("--only", type=int, metavar="N", help="delta number N alone, in full")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    if options.around is not None:
        return _around(options.around, options.seed, options.only)
    failures = (
        [f"{known.name}: {problem}" for known in KNOWN if (problem := known_problem(known))]
        if options.only is None
        else []
    )
    runs = draw_runs(options.count, options.seed, read_symbols())
    if options.only is not None:
        runs = [run for run in runs if run.number == options.only]
        remember()
        cases = [Prover(Engine(), options.seed).prove(run) for run in runs]
        for case in cases:
            print(
                case.symbol,
                case.run.release,
                case.status,
                *case.codes,
                f"judge: {case.verdict}",
                f"B abstained: {case.abstained}",
            )
            print(case.sample.yaml if case.sample else "no delta", case.detail, sep="\n")
    else:
        cases = prove_all(runs, options.seed, options.jobs)
    print("\n".join(report(cases, options.seed)))
    print(f"known mis-anchorings and changed header: {'; '.join(failures) or 'all shown as review or conflict'}")
    print(f"seed {options.seed}, {time.monotonic() - started:.0f} s")
    return int(bool(failures) or any(c.misplaced for c in cases))


def _around(count: int, seed: int, only: int | None) -> int:
    with changeable():
        remember()
        found = list(arounds(Engine(), read_symbols(), count, seed, only))
    print("\n".join(table(found, seed)))
    return int(any(a.wrong for a in found))
