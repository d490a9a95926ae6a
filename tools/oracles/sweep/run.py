"""The sweep: every function of a release becomes an entry without deltas, and the oracle judges what comes out."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError
from afd_patchkit.model import Pin
from afd_patchkit.upstream.resolve import SourceOptions, open_upstream
from tools.oracles.progress import progress
from tools.oracles.sweep.engine import Engine
from tools.oracles.sweep.file import FileSweep, Outcome, crash
from tools.oracles.sweep.report import report

# ---- workers ----------------------------------------------------------------------------------------------------

_engine: Engine | None = None


def _start(name: str, pin: Pin, options: SourceOptions) -> None:
    global _engine  # noqa: PLW0603 - one engine per worker process
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
        outcome.faults.append(f"crashed: {module}: {crash(error)}")
        return outcome


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
    parser.add_argument(
        "--at", choices=["class", "module"], default="class", help="methods become members of a class, or functions"
    )
    parser.add_argument(
        "--source", type=Path, metavar="PATH", help="a tree, sdist or wheel, instead of the package index"
    )
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
        chosen = (
            sample(pool, modules, options.sample, options.seed, group) if options.sample else dict.fromkeys(modules)
        )
        tasks = [pool.submit(_sweep, module, chosen[module], group) for module in modules if module in chosen]
        with progress(len(tasks), f"sweeping {options.release}") as done:
            for future in as_completed(tasks):
                outcome.add(future.result())
                done()
    print(f"{options.release}: {len(tasks):,} modules of {upstream.artifact.file}, methods at {options.at} level")
    return report(outcome, time.monotonic() - started, verbose=options.verbose)
