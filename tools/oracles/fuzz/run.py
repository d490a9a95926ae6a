"""The run: cases drawn one after the other, each in a project of its own, and the command."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.oracles.fuzz import child, project
from tools.oracles.fuzz.draw import KINDS, OFFLINE, Case, draw
from tools.oracles.fuzz.server import Server
from tools.oracles.fuzz.values import NOWHERE
from tools.oracles.progress import progress

_CODES = frozenset({0, 1, 2, 3})
_SPARSE = 3 * 2**30


@dataclass(frozen=True)
class Tried:
    """One case, and how it went.

    Attributes:
        number: of the case.
        case: what was tried.
        outcome: how the command ended.
        fault: what is wrong with that; empty when nothing is.
    """

    number: int
    case: Case
    outcome: child.Outcome
    fault: str


class Field:
    """Where cases are tried: a folder, a sound project with its generated state, and an index."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="afd-fuzz-"))
        self.folder = self.root / "deep" / "er" / "project"
        self.canary = self.folder.parent / "canary"
        self.server = Server(self.root / "replies")
        os.environ.update(
            HOME=str(self.root / "home"),
            XDG_STATE_HOME=str(self.root / "state"),
            XDG_CACHE_HOME=str(self.root / "home"),
            AFD_PATCHKIT_CACHE=str(self.root / "cache"),
            PIP_CONFIG_FILE=os.devnull,
            PIP_INDEX_URL=f"{self.server.url}/simple",
            NETRC=os.devnull,
            NO_PROXY="*",
        )
        child.warm()
        self.sound = self._sound()

    def close(self) -> None:
        """Remove it."""
        self.server.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def _sound(self) -> dict[str, bytes]:
        files = {
            "afd-patchkit.toml": project.toml_of(project.SETTINGS),
            "manifests/pins.yaml": project.yaml_of(project.PINS),
            "manifests/acme_set/runner.yaml": project.yaml_of(project.RUNNER),
            "manifests/acme_set/parts/own.py": project.OWN.encode(),
            **{f"one/{path}": text.encode() for path, text in project.UPSTREAM.items()},
            **{f"two/{path}": text.encode() for path, text in project.NEXT.items()},
        }
        self._write(files)
        done = child.run(["regen", *OFFLINE], self.folder)
        if done.code:
            raise RuntimeError(f"the sound project is not: {done.output}")
        return {p.relative_to(self.folder).as_posix(): p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}

    def _write(self, files: Mapping[str, bytes]) -> None:
        shutil.rmtree(self.root / "deep", ignore_errors=True)
        shutil.rmtree(self.root / "cache", ignore_errors=True)
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.canary.write_bytes(b"canary")

    def _link(self, name: str, what: str) -> None:
        path = self.folder / name
        path.unlink(missing_ok=True)
        if what == "pipe":
            os.mkfifo(path)
        elif what == "folder":
            path.mkdir()
        elif what == "sparse":
            with path.open("wb") as file:
                file.truncate(_SPARSE)
        elif what != "gone":
            path.symlink_to(what)

    def put(self, case: Case) -> None:
        """Make the project of a case."""
        self._write({**self.sound, **case.files})
        for name, what in case.links.items():
            self._link(name, what)
        self.server.replies(case.replies)

    def run(self, number: int, case: Case) -> Tried:
        """Try it."""
        self.put(case)
        outcome = child.run(case.arguments, self.folder)
        return Tried(number, case, outcome, self._fault(outcome))

    def _fault(self, outcome: child.Outcome) -> str:
        if outcome.hung:
            return "did not end, and did nothing"
        if outcome.code < 0:
            return f"ended by signal {-outcome.code} after {outcome.cpu:.0f} s"
        if outcome.code not in _CODES:
            return f"exit code {outcome.code}"
        if "Traceback (most recent" in outcome.output:
            return "a traceback"
        around = sorted(p.name for p in self.folder.parent.iterdir())
        if around != ["canary", "project"] or self.canary.read_bytes() != b"canary" or os.path.lexists(NOWHERE):
            return f"wrote outside the project: {around}"
        return ""


def cases(field: Field, seed: int, numbers: Iterator[int], kinds: Sequence[str]) -> Iterator[Tried]:
    """Try each number whose kind is wanted.

    Args:
        field: where they are tried.
        seed: another seed, other cases.
        numbers: of the cases.
        kinds: those that are wanted.
    """
    for number in numbers:
        case = draw(number, seed, field.sound)
        if case.kind in kinds:
            yield field.run(number, case)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 when there is a fault."""
    parser = argparse.ArgumentParser(
        prog="tools/fuzz",
        description="Hostile settings, pins, manifests, code, locks, archives, index pages and arguments, each through a real command with "
        f"{child.CPU} s of processor time and 1 GiB of address space: exit codes other than 0 to 3, tracebacks and what does not end are faults.",
    )
    parser.add_argument("--count", type=int, default=1000, help="cases (default 1000)")
    parser.add_argument("--seconds", type=float, help="go on for so long instead")
    parser.add_argument("--seed", type=int, default=11, help="another seed, other cases (default 11)")
    parser.add_argument("--start", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this kind; repeatable")
    parser.add_argument("--only", type=int, metavar="N", help="case N alone, with its output")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="with --only: leave the project of the case in DIR")
    options = parser.parse_args(arguments)
    field = Field()
    try:
        return _one(field, options) if options.only is not None else _many(field, options)
    finally:
        field.close()


def _one(field: Field, options: argparse.Namespace) -> int:
    case = draw(options.only, options.seed, field.sound)
    tried = field.run(options.only, case)
    print(_shown(tried, options.seed), tried.outcome.output[-20_000:], sep="\n")
    if options.keep:
        field.put(case)
        shutil.copytree(field.folder, options.keep, symlinks=True)
    return int(bool(tried.fault))


def _many(field: Field, options: argparse.Namespace) -> int:
    begin, kinds = time.monotonic(), options.kind or sorted(KINDS)

    def numbers() -> Iterator[int]:
        number = options.start
        while time.monotonic() - begin < options.seconds if options.seconds else number - options.start < options.count:
            yield number
            number += 1

    counts: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    faults, slowest, largest = 0, 0.0, 0
    with progress(options.count, "trying") as done:
        for tried in cases(field, options.seed, numbers(), kinds):
            done()
            counts[tried.case.kind] += 1
            codes[tried.outcome.code] += 1
            slowest, largest = max(slowest, tried.outcome.cpu), max(largest, tried.outcome.memory)
            if tried.fault:
                faults += 1
                print(_shown(tried, options.seed), file=sys.stderr, flush=True)
    print(f"{counts.total()} cases: {', '.join(f'{count} {kind}' for kind, count in sorted(counts.items()))}")
    print(f"exit codes: {', '.join(f'{code}: {count}' for code, count in sorted(codes.items()))}")
    print(
        f"at most {slowest:.1f} s of processor time and {largest / 2**20:.0f} MiB; seed {options.seed}, {time.monotonic() - begin:.0f} s"
    )
    print(f"faults: {faults}")
    return int(faults > 0)


def _shown(tried: Tried, seed: int) -> str:
    case, last = tried.case, [line for line in tried.outcome.output.splitlines() if line.strip()]
    what = [*case.files, *(f"{name} ({kind})" for name, kind in case.links.items()), *case.replies]
    words = " ".join(word if len(word) < 80 else f"{word[:80]!a}..." for word in case.arguments)
    said = next((line for line in reversed(last) if "Error" in line or "exit" in line), last[-1] if last else "")
    return (
        f"{tried.number} {case.kind} (tools/fuzz --seed {seed} --only {tried.number}): {tried.fault}\n"
        f"  {words!a}; {', '.join(what)}; {tried.outcome.cpu:.1f} s, {tried.outcome.memory / 2**20:.0f} MiB\n  {said[:300]!a}"
    )
