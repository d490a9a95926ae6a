"""The run: random own code against changed releases, and the command."""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain

from afd_patchkit.findings.errors import PatchkitError
from tools.oracles.meaning.case import Case, cases, set_cases
from tools.oracles.meaning.engine import Folder, changeable, sources
from tools.oracles.meaning.report import report, shown
from tools.oracles.meaning.sources import Sources
from tools.oracles.progress import progress

_BREAKING, _COMPATIBLE = 9, 7
"""Changes that are tried in each project."""
_SET = 40
"""One change in so many is one of what this project's own patch set refers to."""


def run(seed: int, count: int, release: Sources, start: int = 0) -> Iterator[Case]:
    """Cases until there are `count` that break something or differ, and as many that do not.

    Args:
        seed: another seed, other projects.
        count: how many of each.
        release: the pinned release.
        start: number of the first project.
    """
    folder = Folder()
    harmful = same = 0
    project = start
    try:
        with progress(2 * count, "changing") as done:
            while harmful < count or same < count:
                breaking = _BREAKING if harmful < count else 0
                compatible = _COMPATIBLE if same < count else 0
                for case in cases(release, folder, seed, project, breaking, compatible):
                    harmful += case.verdict in ("different", "broken")
                    same += case.change is not None and case.verdict == "same"
                    done()
                    yield case
                project += 1
    finally:
        folder.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 when something was missed or a false alarm. An upstream that cannot be had is exit code 3."""
    parser = argparse.ArgumentParser(
        prog="tools/meaning",
        description="Random own code that calls, reads, catches and derives from what is around in vLLM; one thing that it refers to is "
        "changed at a time, and what `upgrade` says is held against what happens when that code runs.",
    )
    parser.add_argument(
        "--count", type=int, default=2000, help="changes that matter, and as many that do not (default 2000)"
    )
    parser.add_argument("--seed", type=int, default=26, help="another seed, other code and changes (default 26)")
    parser.add_argument("--only", metavar="P:N", help="change N of project P alone, in full")
    options = parser.parse_args(arguments)
    try:
        with changeable():
            return _main(options)
    except PatchkitError as error:
        for said in error.findings:
            print(f"{said.code}: {said.message}", *said.details, sep="\n  ", file=sys.stderr)
        return error.exit_code


def _main(options: argparse.Namespace) -> int:
    started, spent = time.monotonic(), time.process_time()
    release = sources()
    if options.only is not None:
        alone = list(_only(release, options.seed, *options.only.split(":")))
        for case in alone:
            print("\n".join(shown(case, options.seed)))
            print(_difference(case, release))
        return int(any(c.wrong for c in alone))
    found: list[Case] = []
    part = options.count // _SET
    for case in chain(run(options.seed, options.count - part, release), set_cases(release, options.seed, part)):
        found.append(case)
        if case.wrong:
            print(*shown(case, options.seed), sep="\n", file=sys.stderr, flush=True)
    print("\n".join(report(found, options.seed)))
    print(f"seed {options.seed}, {time.monotonic() - started:.0f} s ({time.process_time() - spent:.0f} s of one core)")
    return int(any(c.wrong for c in found))


def _only(release: Sources, seed: int, project: str, number: str) -> Iterator[Case]:
    """One case."""
    if project == "set":
        yield from set_cases(release, seed, int(number), int(number))
        return
    folder = Folder()
    yield from cases(release, folder, seed, int(project), _BREAKING, _COMPATIBLE, int(number))
    folder.close()


def _difference(case: Case, release: Sources) -> str:
    lines: list[str] = []
    for module, text in (case.change.files if case.change is not None else {}).items():
        old = release.listing(module).text.split("\n") if release.has(module) else []
        lines += difflib.unified_diff(old, text.split("\n"), module, module, lineterm="", n=2)
    return "\n".join(lines)
