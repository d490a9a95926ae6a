"""The sweep: every function of a release becomes an entry without deltas, and the oracle judges what comes out."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.findings.finding import Severity
from afd_patchkit.model import Pin
from afd_patchkit.upstream.resolve import SourceOptions, open_upstream
from tools.oracles.progress import progress
from tools.oracles.sweep.judge import Function, UpstreamFile, judge

if TYPE_CHECKING:
    from tools.oracles.sweep.engine import Engine

LIMIT = 0.02
"""Share of functions that may be refused."""
SHOWN = 20
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
            self._fault("crashed", where, _crash(error), count)
            return branch is not None
        claimed = [left.pop(line) for line in made.lines if line in left]
        if len(claimed) != len(made.lines) or (not claimed and branch is None):
            self._fault("wrong", where, f"it holds lines {made.lines}, which are not (or no more) definitions of that name", 1)
            return False
        if not claimed:
            return branch is not None
        container = None
        if self.group and "." in qualname:
            from tools.oracles.sweep.engine import GROUP

            container = GROUP
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


# ---- workers ----------------------------------------------------------------------------------------------------

_engine: Engine | None = None


def _start(name: str, pin: Pin, options: SourceOptions) -> None:
    global _engine  # noqa: PLW0603 - one engine per worker process
    from tools.oracles.sweep.engine import Engine

    _engine = Engine(open_upstream(name, pin, options), pin)


def _names(module: str, group: bool) -> tuple[str, list[str]]:
    assert _engine is not None
    return module, FileSweep(_engine, module, group=group).names()


def _sweep(module: str, only: set[str] | None, group: bool) -> Outcome:
    assert _engine is not None
    try:
        return FileSweep(_engine, module, group=group).run(only)
    except Exception as error:
        outcome = Outcome()
        outcome.counts["crashed"] += 1
        outcome.faults.append(f"crashed: {module}: {_crash(error)}")
        return outcome


def _crash(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


# ---- the run ------------------------------------------------------------------------------------------------------


def sample(pool: ProcessPoolExecutor, modules: Sequence[str], size: int, seed: int, group: bool) -> dict[str, set[str]]:
    """Draw names from all modules; the same ones for the same seed.

    Args:
        pool: the worker processes.
        modules: modules to draw from.
        size: number of names.
        seed: another seed, other names.
        group: whether methods become members of a class.
    """
    everything: list[tuple[str, str]] = []
    with progress(len(modules), "reading") as done:
        for future in as_completed([pool.submit(_names, module, group) for module in modules]):
            module, names = future.result()
            everything += [(module, name) for name in names]
            done()
    everything.sort()
    chosen: dict[str, set[str]] = {}
    for module, name in random.Random(seed).sample(everything, min(size, len(everything))):
        chosen.setdefault(module, set()).add(name)
    return chosen


def report(outcome: Outcome, seconds: float, *, verbose: bool) -> int:
    """Print the counts; 0 when nothing is wrong and few are refused."""
    from afd_patchkit.findings.finding import page

    total = sum(outcome.counts.values())
    refused = {code: n for code, n in outcome.counts.items() if code.startswith("PK")}
    rows = [
        ("verbatim", outcome.counts["verbatim"], ""),
        ("verbatim with declared rebindings", outcome.counts["rebound"], ""),
        ("refused", sum(refused.values()), ""),
        *((f"  {code}", n, page(code).title) for code, n in sorted(refused.items(), key=lambda item: -item[1])),
        ("wrong", outcome.counts["wrong"], ""),
        ("crashed", outcome.counts["crashed"], ""),
        ("of these unread by libcst", outcome.once, ""),
    ]
    print(f"{'functions':<34} {total:>7,}")
    for label, number, note in rows:
        print(f"{label:<34} {number:>7,} {number / max(total, 1):>8.2%}  {note}".rstrip())
    print(f"{seconds:.0f} s, {total / max(seconds, 0.001):,.0f} functions per second")
    shown: Counter[str] = Counter()
    for code, where, message in sorted(outcome.refusals):
        shown[code] += 1
        if verbose or shown[code] <= 3:
            print(f"refused {code} {where}: {message}")
    for fault in sorted(outcome.faults)[: None if verbose else SHOWN]:
        print(fault)
    if len(outcome.faults) > SHOWN and not verbose:
        print(f"and {len(outcome.faults) - SHOWN} more (--verbose)")
    many = sum(refused.values()) > LIMIT * total
    if many:
        print(f"more than {LIMIT:.0%} refused")
    return 1 if outcome.faults or many or not total else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/sweep`."""
    parser = argparse.ArgumentParser(
        prog="tools/sweep",
        description="Turn every function of a release into an entry without deltas, and compare with upstream's own.",
    )
    parser.add_argument("release", help="distribution==version, for instance vllm==0.26.0")
    parser.add_argument("--sample", type=int, metavar="N", help="only N names, chosen by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="PREFIX", help="only modules that start with this")
    parser.add_argument("--at", choices=["class", "module"], default="class", help="methods become members of a class, or functions")
    parser.add_argument("--source", type=Path, metavar="PATH", help="a tree, sdist or wheel, instead of the package index")
    parser.add_argument("--offline", action="store_true", help="use the cache only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true", help="list every refusal and fault")
    options = parser.parse_args(arguments)
    distribution, _, version = options.release.partition("==")
    if not distribution or not version:
        parser.error("write distribution==version")
    pin = Pin(distribution=distribution, version=version)
    name = distribution
    sources = {name: options.source} if options.source else {}
    started = time.monotonic()
    try:
        upstream = open_upstream(name, pin, SourceOptions(sources=sources, offline=options.offline))
        size = dict.fromkeys(upstream.modules(), 0)
        for path, data in upstream.package_files():
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            if module in size:
                size[module] = len(data)
    except PatchkitError as error:
        for found in error.findings:
            print(f"{found.code}: {found.message}", *found.details, sep="\n  ", file=sys.stderr)
        return error.exit_code
    modules = sorted((m for m in size if m.startswith(options.only or "")), key=lambda m: (-size[m], m))
    group = options.at == "class"
    setting = SourceOptions(sources=sources, offline=not sources)
    context = multiprocessing.get_context("spawn")
    outcome = Outcome()
    with ProcessPoolExecutor(options.jobs, context, _start, (name, pin, setting)) as pool:
        chosen = sample(pool, modules, options.sample, options.seed, group) if options.sample else dict.fromkeys(modules)
        tasks = [pool.submit(_sweep, module, chosen[module], group) for module in modules if module in chosen]
        with progress(len(tasks), f"sweeping {options.release}") as done:
            for future in as_completed(tasks):
                outcome.add(future.result())
                done()
    print(f"{options.release}: {len(tasks):,} modules of {upstream.artifact.file}, methods at {options.at} level")
    return report(outcome, time.monotonic() - started, verbose=options.verbose)
