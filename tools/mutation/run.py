"""The mutation run: each delta of a patch set is left out, or its own code changed, one at a time, and some test has to notice."""

from __future__ import annotations

import argparse
import os
import queue
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from afd_patchkit.findings.errors import PatchkitError
from tools import pinned
from tools.environments import ROOT, cache_folder
from tools.mutation.code import CodeMutation, code_mutations
from tools.mutation.deltas import CannotDrop, Mutation, mutations, own_code, upstream_scopes, without
from tools.mutation.judge import Judge, LineJudge, Verdict
from tools.mutation.lines import Records
from tools.mutation.page import PAGE, REASONS, code_page, page, read_page, read_reasons, with_part
from tools.mutation.scratch import Generator, Results, Scratch, copied, scratch_folder
from tools.mutation.tests import Sight
from tools.run_tests import DONOR, DONOR_VARIABLE, VLLM, VLLM_TESTS, Session, last_line

SET = "vllm_v026_mrv2_dbo"
PYTHON_VARIABLE = "AFD_PATCHKIT_VLLM_PYTHON"
ASCEND_VARIABLE = "AFD_VLLM_ASCEND_SOURCE"

Verdicts = list[tuple[Mutation, Verdict]]
CodeVerdicts = list[tuple[CodeMutation, Verdict]]


class Broken(Exception):
    """The run cannot go on; the message says why."""


@dataclass(frozen=True)
class Mutant:
    """A mutation and what is generated with it."""

    mutation: Mutation | CodeMutation
    modules: Mapping[str, str]


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


def found_code(generator: Generator, name: str, modules: Mapping[str, str]) -> list[CodeMutation]:
    """All mutations of the code of a set that is no upstream text."""
    package, result = generator.project.package, []
    for file, data in generator.manifests(name):
        module, upstream = upstream_scopes(data, file)
        path = f"{package}/{module}"
        result += code_mutations(modules[path], path, upstream)
    if not result:
        raise Broken(f"there is no set {name} with code of its own")
    return result


def own_codes(generator: Generator, name: str) -> dict[str, str]:
    """Of each module of a set that has code of its own, a digest of that."""
    root = generator.project.root
    codes = (own_code(data, file, (root / file).parent) for file, data in generator.manifests(name))
    return {Path(module).stem: code for module, code in codes if code}


def chosen(mutation: Mutation | CodeMutation, modules: Sequence[str], only: Sequence[str]) -> bool:
    """Whether a mutation is asked for."""
    stem = Path(mutation.module).stem
    return (not modules or stem in modules) and (not only or any(text in mutation.name for text in only))


class Run:
    """Workers that take mutants from a queue, each with a copy of the project.

    Attributes:
        verdicts: by name of the mutation.
        problem: why it could not go on.
    """

    def __init__(self, judge: Judge | LineJudge, package: str, total: int) -> None:
        self.judge, self.package, self.total = judge, package, total
        self.verdicts: dict[str, Verdict] = {}
        self.problem: BaseException | None = None
        self._queue: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        self._print = threading.Lock()

    def add(self, mutant: Mutant) -> None:
        """Count one more mutation to be judged."""
        self._queue.put(mutant)

    def say(self, mutation: Mutation | CodeMutation, verdict: Verdict, seconds: float) -> None:
        """Take note of a verdict and print it."""
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
                verdict = self.judged(mutant, scratch)
                self.say(mutant.mutation, verdict, time.monotonic() - start)
        except BaseException as error:
            self.problem = error

    def all(self, scratches: Sequence[Scratch]) -> None:
        """Judge all mutants.

        Raises:
            Broken: some tests fail without a mutation.
        """
        workers = [threading.Thread(target=self.work, args=[scratch]) for scratch in scratches]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self.problem is not None:
            raise self.problem
        if self.judge.useless:
            print(
                f"\n{sum(v.noticed for v in self.verdicts.values())} of {self.total} mutations are noticed by the other tests."
            )
            raise Broken(
                "\n  ".join(
                    ["these fail without a mutation:", *(f"{test}: {why}" for test, why in self.judge.useless.items())]
                )
            )

    def judged(self, mutant: Mutant, scratch: Scratch) -> Verdict:
        """The verdict on a mutant: whether `regen` or a test notices."""
        if isinstance(self.judge, Judge):
            assert isinstance(mutant.mutation, Mutation)
            return self.judge.verdict(
                mutant.mutation, f"{self.package}/{mutant.mutation.module}", mutant.modules, scratch
            )
        assert isinstance(mutant.mutation, CodeMutation)
        return self.judge.verdict(mutant.mutation, mutant.modules, scratch)


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


@dataclass(frozen=True)
class Place:
    """Where mutants are made and judged; it is gone with its stack.

    Attributes:
        stack: ends what was begun.
        folder: a folder for copies.
        root: a copy of the project: the working tree may change meanwhile.
        generator: generates in another one.
        modules: the generated modules without a mutation.
        options: the command line.
    """

    stack: ExitStack
    folder: Path
    root: Path
    generator: Generator
    modules: Mapping[str, str]
    options: argparse.Namespace

    @classmethod
    def make(cls, stack: ExitStack, root: Path, options: argparse.Namespace) -> Place:
        """Copy and generate.

        Raises:
            Broken: nothing can be generated.
        """
        folder = stack.enter_context(scratch_folder())
        for name in ("project", "generator"):
            (folder / name).mkdir()
        copied(root, folder / "project")
        root = folder / "project"
        generator = Generator(root, folder / "generator", pinned.options(options.source, offline=options.offline))
        base = generator.generate({})
        if base.refused:
            raise Broken(f"the manifests as they are: {base.said}")
        return cls(stack, folder, root, generator, base.modules, options)

    @property
    def kept(self) -> Path:
        """The folder in which results are kept between runs."""
        return self.folder / "results" if self.options.fresh else cache_folder() / "mutations"

    @property
    def decides(self) -> tuple[str, ...]:
        """What decides results beside the files."""
        return VLLM, str(bool(os.environ.get(ASCEND_VARIABLE)))

    def scratches(self) -> list[Scratch]:
        """Copies that run tests; they begin to import vLLM."""
        python, variables = environment(self.options.python)
        result = []
        for n in range(self.options.jobs):
            (self.folder / str(n)).mkdir()
            result.append(Scratch(self.root, self.folder / str(n), self.modules, python, variables))
            self.stack.callback(result[-1].close)
        return result


def judged(place: Place) -> Verdicts:
    """Verdicts on deltas, in the order of the manifests; to be written, with those on the page that were not asked for.

    Raises:
        Broken, CannotDrop, PatchkitError: the run cannot go on.
    """
    options, generator = place.options, place.generator
    wanted = [
        item
        for item in found(generator, options.set, entries=options.entries)
        if chosen(item[0], options.module, options.only)
    ]
    if options.list:
        print("\n".join(mutation.name for mutation, _, _ in wanted))
        return []
    sight = Sight(place.root, place.modules, VLLM_TESTS)
    page_says = read_page(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
    known = {name: verdict.by for name, verdict in page_says.items() if verdict.outcome == "killed"}
    judge = Judge(sight, Results(place.kept), known, place.decides, options.limit)
    run = Run(judge, generator.project.package, len(wanted))
    scratches = place.scratches()
    for mutation, file, data in wanted:  # while they import vLLM
        start = time.monotonic()
        made = generator.generate({file: data})
        if made.refused:
            run.say(mutation, Verdict("refused", " ".join(made.refused), made.said), time.monotonic() - start)
        else:
            run.add(Mutant(mutation, made.modules))
    run.all(scratches)
    if options.write:
        every = [mutation for mutation, _, _ in found(generator, options.set, entries=False)]
        says = {**page_says, **run.verdicts}
        if unknown := [
            m.name for m in every if m.name not in says or (m.name not in run.verdicts and not says[m.name].noticed)
        ]:
            raise Broken(
                "\n  ".join(["these are not on the page, or not noticed there, and are not asked for:", *unknown])
            )
        return [(mutation, says[mutation.name]) for mutation in every]
    return [(mutation, run.verdicts[mutation.name]) for mutation, _, _ in wanted]


def code_judged(place: Place) -> CodeVerdicts:
    """Verdicts on changes of the code that is no upstream text, in the order of the modules.

    Raises:
        Broken, PatchkitError: the run cannot go on.
    """
    options = place.options
    wanted = [
        m for m in found_code(place.generator, options.set, place.modules) if chosen(m, options.module, options.only)
    ]
    if options.sample and options.sample < len(wanted):
        wanted = [wanted[n] for n in sorted(random.Random(options.seed).sample(range(len(wanted)), options.sample))]
    if options.list:
        print("\n".join(mutation.name for mutation in wanted))
        return []
    sight = Sight(place.root, place.modules, VLLM_TESTS)
    if unknown := sorted({*options.tests} - {*sight.files}):
        raise Broken(f"no test files: {', '.join(unknown)}")
    judge = LineJudge(sight, Results(place.kept), place.decides, limit=options.limit, seconds=options.seconds)
    run = Run(judge, place.generator.project.package, len(wanted))
    scratches = place.scratches()
    judge.look(Records(place.kept), scratches[0], print, options.tests)
    for mutation in wanted:
        run.add(Mutant(mutation, {**place.modules, mutation.module: mutation.apply(place.modules[mutation.module])}))
    run.all(scratches)
    return [(mutation, run.verdicts[mutation.name]) for mutation in wanted]


def summary(verdicts: Verdicts) -> int:
    """Print the counts and what nobody noticed; 1 when there is any."""
    print(f"\n{counted(verdicts)}")
    missed = [(m, v) for m, v in verdicts if not v.noticed]
    for mutation, verdict in missed:
        print(f"  {verdict.outcome}  {mutation.where}  {mutation.name}")
    return int(bool(missed))


def code_summary(verdicts: CodeVerdicts, reasons: Mapping[str, str], *, whole: bool) -> int:
    """Print the counts, what nobody noticed, and reasons without a survivor when all were judged; 1 when something has to be done."""
    print(f"\n{counted(verdicts)}")
    missed = [(m, v) for m, v in verdicts if not v.noticed and m.name not in reasons]
    for mutation, verdict in missed:
        print(f"  {verdict.outcome}  {mutation.module}:{mutation.line}  {mutation.name}")
    noticed = {m.name for m, v in verdicts if v.noticed}
    stale = sorted(name for name in reasons if name in noticed or (whole and name not in {m.name for m, _ in verdicts}))
    for name in stale:
        print(f"  {REASONS.relative_to(ROOT)} says why nobody notices this, but somebody does, or it is gone: {name}")
    return int(bool(missed or stale))


def counted(verdicts: Sequence[tuple[object, Verdict]]) -> str:
    """How many there are of each outcome."""
    counts = Counter(v.outcome for _, v in verdicts)
    return f"{len(verdicts)} mutations: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def command_line() -> argparse.ArgumentParser:
    """What `tools/mutate` can be told."""
    parser = argparse.ArgumentParser(
        prog="tools/mutate",
        description="Leave out each delta of a patch set, one at a time, generate into a scratch copy of the project, and run the tests that see "
        "the module until one fails. With --code: change the set's own code, one place at a time, and run the tests that reach the line. "
        "Exit code 1: something is noticed neither by a test nor by regen.",
    )
    parser.add_argument("set", nargs="?", default=SET, help=f"folder below manifests/ (default: {SET})")
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="NAME",
        help="only this generated module, such as dispatch; may be repeated",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only mutations with this in `module.py::entry/delta`; may be repeated",
    )
    parser.add_argument(
        "--entries", action="store_true", help="leave out whole entries and members of classes instead of deltas"
    )
    parser.add_argument(
        "--code",
        action="store_true",
        help="change the code that is no upstream text instead: comparisons, constants, conditions, calls",
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="with --code: only so many, by chance")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="with --sample: another number, another sample (default: 0)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        metavar="N",
        help="with --code: tests of one place that take longer together are left out (default: 60)",
    )
    parser.add_argument(
        "--tests",
        action="append",
        default=[],
        metavar="FILE",
        help="with --code: only tests of this file, such as tests/dbo/test_scopes.py; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="print the mutations and do nothing")
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="copies of the project that run tests at the same time (default: 1)",
    )
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one test file (default: 600)")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="forget the results of earlier runs; they count while all that they depend on is the same",
    )
    parser.add_argument(
        "--python",
        default="",
        metavar="PATH",
        help=f"interpreter with the real vLLM (default: ${PYTHON_VARIABLE}, else that of tools/vllm_env)",
    )
    parser.add_argument(
        "--source", action="append", default=[], metavar="PIN=PATH", help="take a pin's sources from here"
    )
    parser.add_argument("--offline", action="store_true", help="use cached and installed upstreams only")
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write {PAGE.relative_to(ROOT)}; what it says of others than those asked for stays",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `tools/mutate`: 0 all are noticed, 1 some are not, 2 command line, 3 it cannot run."""
    parser = command_line()
    options = parser.parse_args(arguments)
    partly = options.only or options.entries or options.sample
    if options.write and (options.entries or options.sample or options.list or (options.only and options.code)):
        parser.error(
            "--write is for deltas, or with --code for whole modules; it stands without --entries, --sample, --list and --code --only"
        )
    if options.code and options.entries:
        parser.error("--entries and --code exclude each other")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # copies and processes are cleared away
    deltas: Verdicts = []
    code: CodeVerdicts = []
    all_of: Mapping[str, int] = {}
    own: Mapping[str, str] = {}
    try:
        with ExitStack() as stack:
            place = Place.make(stack, ROOT, options)
            if options.code:
                code = code_judged(place)
                all_of = Counter(Path(m.module).stem for m in found_code(place.generator, options.set, place.modules))
                own = own_codes(place.generator, options.set)
            else:
                deltas = judged(place)
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
    old = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    with_ascend = bool(os.environ.get(ASCEND_VARIABLE))
    if options.code:
        reasons = read_reasons(REASONS)
        result = code_summary(code, reasons, whole=not (partly or options.module))
        part = code_page(code, reasons, ascend=with_ascend, all_of=all_of, own=own, old=old)
    else:
        result = summary(deltas)
        part = page(deltas, vllm=VLLM, ascend=with_ascend)
    if options.write:
        PAGE.write_text(with_part(old, part), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} written")
    return result
