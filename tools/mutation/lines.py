"""Which tests reach a line of a generated module: recorded by running them once, with instruments in the modules."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.mutation.hits import HITS
from tools.mutation.phases import TOLD

Line = tuple[str, int]


def instrumented(text: str, module: str) -> str:
    """A module that reports its lines; on the level of the module only that it is there."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            statements = vars(node).get(block)
            if isinstance(statements, list) and not isinstance(node, (ast.Module, ast.ClassDef)):
                reporting: list[ast.stmt] = []
                for statement in statements:
                    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                        reporting += ast.parse(f"__hit__.line = {statement.lineno}").body
                    reporting.append(statement)
                vars(node)[block] = reporting
    start = next(n for n, statement in enumerate(tree.body) if not _first(statement))
    tree.body[start:start] = ast.parse(
        f"from tools.mutation.hits import Hit\n__hit__ = Hit({module!r})\n__hit__.line = 0"
    ).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _first(statement: ast.stmt) -> bool:
    """Whether a statement has to stay in front: the docstring, an import from the future."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@dataclass
class Record:
    """What running some test files has told.

    Attributes:
        lines: those that each test or fixture has reached itself; line 0 is the import of a module.
        seconds: how long each took by itself.
        fixtures: those of each test.
        failed: tests that fail with the instruments.
    """

    lines: dict[str, set[Line]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)
    fixtures: dict[str, list[str]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path) -> Record:
        """What a run has left in its folder."""
        told = json.loads((folder / TOLD).read_text(encoding="utf-8"))
        names, record = told["names"], cls(fixtures=told["fixtures"], failed=set(told["failed"]))
        for number, seconds in told["seconds"].items():
            name = names[int(number)]
            record.seconds[name] = record.seconds.get(name, 0.0) + seconds
        for hit in (folder / HITS).read_text(encoding="utf-8").splitlines():
            phase, line, module = hit.split(" ", 2)
            record.lines[names[int(phase)]].add((module, int(line)))
        for test in record.fixtures:  # what is imported with the tests
            record.lines[test] |= record.lines.get("", set())
        return record

    def dump(self) -> dict[str, Any]:
        """The record as JSON."""
        lines = {name: sorted(lines) for name, lines in self.lines.items()}
        return {"lines": lines, "seconds": self.seconds, "fixtures": self.fixtures, "failed": sorted(self.failed)}

    def add(self, dumped: Mapping[str, Any]) -> None:
        """Another one, as `dump` gave it."""
        for name, lines in dumped["lines"].items():
            self.lines[name] |= {(module, line) for module, line in lines}
        for name, seconds in dumped["seconds"].items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.fixtures |= dumped["fixtures"]
        self.failed |= set(dumped["failed"])


@dataclass(frozen=True)
class Choice:
    """The tests that a mutation is shown to.

    Attributes:
        tests: in the order in which they are run.
        left_out: how many would take too long.
    """

    tests: tuple[str, ...]
    left_out: int


def reaching(record: Record, lines: Iterable[Line], first: Sequence[str], seconds: float) -> Choice:
    """The tests that reach any of some lines, themselves or through a fixture: likely ones first, then short ones.

    Args:
        record: of all tests.
        lines: lines of a module.
        first: tests to begin with, if they are among them.
        seconds: how long all of them may take.
    """
    wanted = set(lines)
    reached = {name for name, found in record.lines.items() if found & wanted}
    chosen = [test for test, fixtures in record.fixtures.items() if test in reached or reached.intersection(fixtures)]
    chosen += [test for test in record.failed if test not in reached and record.lines.get(test)]
    early = [test for test in first if test in chosen]
    order, left, paid = list(early), seconds, set[str]()
    for test in early:
        left -= _cost(record, test, paid)
    rest = sorted(set(chosen) - set(early), key=lambda test: (_cost(record, test, set()), test))
    for limit in (1.0, 5.0, seconds):  # those of a file together: its fixtures are made once
        files: dict[str, list[str]] = {}
        for test in [test for test in rest if test not in order and _cost(record, test, set(paid)) <= limit]:
            cost = _cost(record, test, paid)
            left -= cost
            if left > 0:
                files.setdefault(test.partition("::")[0], []).append(test)
        order += [test for tests in files.values() for test in tests]
    return Choice(tuple(order), len(set(chosen) - set(order)))


def _cost(record: Record, test: str, paid: set[str]) -> float:
    """Seconds of a test, with those of its fixtures that are not paid yet; afterwards they are."""
    new = set(record.fixtures.get(test, ())) - paid
    paid |= new
    return record.seconds.get(test, 0.0) + sum(record.seconds.get(name, 0.0) for name in new)


class Records:
    """Records of test files by the digest of all that decides them; kept between runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, digest: str) -> dict[str, Any] | None:
        """What an earlier run recorded under the digest; None when there is nothing."""
        try:
            found: dict[str, Any] = json.loads((self.folder / f"lines-{digest}.json").read_text(encoding="utf-8"))
            return found
        except (OSError, ValueError):
            return None

    def put(self, digest: str, record: Record) -> None:
        """Keep a record for later runs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"lines-{digest}.json").write_text(json.dumps(record.dump()), encoding="utf-8")


def digest(parts: Iterable[str]) -> str:
    """Combine several digests to one."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
