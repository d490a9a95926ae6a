"""The mutation run: each delta of a patch set is left out, one at a time, and some test has to notice."""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError
from tools import pinned
from tools.environments import ROOT, cache_folder
from tools.mutation_deltas import CannotDrop, Mutation, mutations, without
from tools.mutation_judge import Judge, Verdict
from tools.mutation_page import PAGE, page, read_page
from tools.mutation_scratch import Generated, Generator, Results, Scratch, copied, scratch_folder
from tools.mutation_tests import Sight
from tools.run_tests import DONOR, DONOR_VARIABLE, VLLM, VLLM_TESTS, Session, last_line

SET = "vllm_v026_mrv2_dbo"
PYTHON_VARIABLE = "AFD_PATCHKIT_VLLM_PYTHON"
ASCEND_VARIABLE = "AFD_VLLM_ASCEND_SOURCE"

Verdicts = list[tuple[Mutation, Verdict]]


class Broken(Exception):
    """The run cannot go on; the message says why."""


@dataclass(frozen=True)
class Mutant:
    """A mutation and what is generated with it."""

    mutation: Mutation
    generated: Generated


def found(generator: Generator, name: str, *, entries: bool) -> list[tuple[Mutation, str, bytes]]:
    """All mutations of a set, each with its manifest and that file's text without it."""
    result = [
        (mutation, file, without(data, file, mutation))
        for file, data in generator.manifests(name)
        for mutation in mutations(data, file, entries=entries)
    ]
    if not result:
        raise Broken(f"there is no set {name} with deltas")
    return result


def chosen(mutation: Mutation, modules: Sequence[str], only: Sequence[str]) -> bool:
    """Whether a mutation is asked for."""
    stem = Path(mutation.module).stem
    return (not modules or stem in modules) and (not only or any(text in mutation.name for text in only))


class Run:
    """Workers that take mutants from a queue, each with a copy of the project.

    Attributes:
        verdicts: by name of the mutation.
        problem: why it could not go on.
    """

    def __init__(self, judge: Judge, package: str, total: int) -> None:
        self.judge, self.package, self.total = judge, package, total
        self.verdicts: dict[str, Verdict] = {}
        self.problem: BaseException | None = None
        self._queue: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        self._print = threading.Lock()

    def add(self, mutant: Mutant) -> None:
        """One more to be judged."""
        self._queue.put(mutant)

    def say(self, mutation: Mutation, verdict: Verdict, seconds: float) -> None:
        """Note a verdict."""
        with self._print:
            self.verdicts[mutation.name] = verdict
            done = f"[{len(self.verdicts)}/{self.total}]"
            print(f"{done:<9} {verdict.outcome:<8} {seconds:5.1f} s  {mutation.name}", flush=True)
            print("\n".join(f"{' ' * 10}{text[:160]}" for text in (verdict.by, verdict.said) if text), flush=True)

    def work(self, scratch: Scratch) -> None:
        """Judge until nothing is left, or one worker has a problem."""
        try:
            while self.problem is None:
                try:
                    mutant = self._queue.get_nowait()
                except queue.Empty:
                    return
                start = time.monotonic()
                path = f"{self.package}/{mutant.mutation.module}"
                verdict = self.judge.verdict(mutant.mutation, path, mutant.generated.modules, scratch)
                self.say(mutant.mutation, verdict, time.monotonic() - start)
        except BaseException as error:
            self.problem = error


def environment(python: str) -> tuple[Path, dict[str, str]]:
    """The interpreter with the real vLLM, and variables of the tests.

    Raises:
        Broken: it cannot be made.
    """
    session = Session(Path(sys.executable))
    python = python or os.environ.get(PYTHON_VARIABLE, "") or last_line(session, "tools/vllm_env")
    tree = os.environ.get(DONOR_VARIABLE, "") or last_line(session, "tools/pin_tree", DONOR)
    if not python or not tree:
        raise Broken(f"{'tools/pin_tree' if python else 'tools/vllm_env'} failed")
    return Path(python), {DONOR_VARIABLE: tree}


def judged(root: Path, options: argparse.Namespace) -> Verdicts:
    """All verdicts, in the order of the manifests.

    Raises:
        Broken, CannotDrop, PatchkitError: the run cannot go on.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        for name in ("project", "generator"):
            (folder / name).mkdir()
        copied(root, folder / "project")
        root = folder / "project"  # the working tree may change meanwhile
        generator = Generator(root, folder / "generator", pinned.options(options.source, offline=options.offline))
        base = generator.generate({})
        if base.refused:
            raise Broken(f"the manifests as they are: {base.said}")
        wanted = [item for item in found(generator, options.set, entries=options.entries) if chosen(item[0], options.module, options.only)]
        if options.list:
            print("\n".join(mutation.name for mutation, _, _ in wanted))
            return []
        sight = Sight(root, base.modules, VLLM_TESTS)
        known = read_page(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
        ascend = str(bool(os.environ.get(ASCEND_VARIABLE)))
        results = Results(cache_folder() / "mutations" if not options.fresh else folder / "results")
        judge = Judge(sight, results, known, (VLLM, ascend), options.limit)
        run = Run(judge, generator.project.package, len(wanted))
        python, variables = environment(options.python)
        scratches = []
        for n in range(options.jobs):
            (folder / str(n)).mkdir()
            scratches.append(Scratch(root, folder / str(n), base.modules, python, variables))
            stack.callback(scratches[-1].close)
        for mutation, file, data in wanted:  # while they import vLLM
            start = time.monotonic()
            made = generator.generate({file: data})
            if made.refused:
                run.say(mutation, Verdict("refused", " ".join(made.refused), made.said), time.monotonic() - start)
            else:
                run.add(Mutant(mutation, made))
        workers = [threading.Thread(target=run.work, args=[scratch]) for scratch in scratches]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if run.problem is not None:
            raise run.problem
        if judge.useless:
            print(f"\n{sum(v.noticed for v in run.verdicts.values())} of {len(wanted)} mutations are noticed by the other tests.")
            raise Broken("\n  ".join(["these fail without a mutation:", *(f"{file}: {why}" for file, why in judge.useless.items())]))
        return [(mutation, run.verdicts[mutation.name]) for mutation, _, _ in wanted]


def summary(verdicts: Verdicts) -> int:
    """Print the counts and what nobody noticed; 1 when there is any."""
    counts = Counter(v.outcome for _, v in verdicts)
    print(f"\n{len(verdicts)} mutations: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    missed = [(m, v) for m, v in verdicts if not v.noticed]
    for mutation, verdict in missed:
        print(f"  {verdict.outcome}  {mutation.where}  {mutation.name}")
    return int(bool(missed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/mutate`: 0 all are noticed, 1 some are not, 2 command line, 3 it cannot run."""
    parser = argparse.ArgumentParser(
        prog="tools/mutate",
        description="Leave out each delta of a patch set, one at a time, generate into a scratch copy of the project, and run the tests that see "
        "the module until one fails. Exit code 1: something is noticed neither by a test nor by regen.",
    )
    parser.add_argument("set", nargs="?", default=SET, help=f"folder below manifests/ (default: {SET})")
    parser.add_argument("--module", action="append", default=[], metavar="NAME", help="only this generated module, such as dispatch; may be repeated")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only mutations with this in `module.py::entry/delta`; may be repeated")
    parser.add_argument("--entries", action="store_true", help="leave out whole entries and members of classes instead of deltas")
    parser.add_argument("--list", action="store_true", help="print the mutations and do nothing")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="copies of the project that run tests at the same time (default: 1)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one test file (default: 600)")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs; they count while all that they depend on is the same")
    parser.add_argument("--python", default="", metavar="PATH", help=f"interpreter with the real vLLM (default: ${PYTHON_VARIABLE}, else that of tools/vllm_env)")
    parser.add_argument("--source", action="append", default=[], metavar="PIN=PATH", help="take a pin's sources from here")
    parser.add_argument("--offline", action="store_true", help="use cached and installed upstreams only")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}; only for a whole set")
    options = parser.parse_args(arguments)
    if options.write and (options.module or options.only or options.entries or options.list):
        parser.error("--write is for a whole set, so it stands without --module, --only, --entries and --list")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # copies and processes are cleared away
    try:
        verdicts = judged(ROOT, options)
    except PatchkitError as error:
        for said in error.findings:
            print(f"{said.code}: {said.message}", *said.details, sep="\n  ", file=sys.stderr)
        return 3
    except (Broken, CannotDrop, RuntimeError) as error:
        print(f"tools/mutate: {error}", file=sys.stderr)
        return 3
    finally:
        signal.signal(signal.SIGTERM, before)
    if options.list:
        return 0
    code = summary(verdicts)
    if options.write:
        PAGE.write_text(page(verdicts, vllm=VLLM, ascend=bool(os.environ.get(ASCEND_VARIABLE))), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} written")
    return code
