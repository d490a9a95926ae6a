"""Which test notices a mutation: the tests that see the mutated module, likely ones first, until one fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tools.mutation.code import CodeMutation
from tools.mutation.deltas import Mutation
from tools.mutation.lines import Record, Records, digest, instrumented, reaching
from tools.mutation.scratch import Result, Results, Scratch
from tools.mutation.tests import Sight

Outcome = Literal["killed", "refused", "survived", "timeout"]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation.

    Attributes:
        outcome: `killed` by a test, `refused` by regen; `survived`: all tests pass; `timeout`: the tests did not end, and
            no time-out of their own has reported it. The last two are failures.
        by: the test; codes of regen's findings.
        said: the error's message.
    """

    outcome: Outcome
    by: str = ""
    said: str = ""

    @property
    def noticed(self) -> bool:
        """Whether a test, or `regen`, notices the mutation."""
        return self.outcome in ("killed", "refused")


class Judge:
    """Finds the test that notices a mutation.

    Attributes:
        sight: which tests see what, and the generated modules without a mutation.
        results: what is known from earlier runs.
        known: name of a mutation to the test that noticed it before.
        environment: what else decides results.
        limit: seconds for one test file.
        useless: test files that fail without a mutation, too, and how; they notice nothing.
    """

    def __init__(
        self, sight: Sight, results: Results, known: Mapping[str, str], environment: Sequence[str], limit: float
    ) -> None:
        self.sight, self.results, self.known, self.environment, self.limit = sight, results, known, environment, limit
        self.useless: dict[str, str] = {}
        self._noticed: Counter[tuple[str, str]] = Counter()

    def verdict(self, mutation: Mutation, path: str, modules: Mapping[str, str], scratch: Scratch) -> Verdict:
        """Run tests until one fails.

        Args:
            mutation: it.
            path: the module that it changes, below the generated root.
            modules: the generated modules with it.
            scratch: where to run.
        """
        base = self.sight.generated
        changed = {name: text for name, text in modules.items() if text != base.get(name)}
        if modules.keys() == base.keys() and all(
            self.sight.meaning(text) == self.sight.meaning(base[name]) for name, text in changed.items()
        ):
            return Verdict("survived", said="the generated code is the same without it")
        known = self.known.get(mutation.name, "")
        files = self.sight.about(path)
        for file in sorted(
            (f for f in files if f not in self.useless),
            key=lambda f: (f != known.partition("::")[0], -self._noticed[path, f]),
        ):
            result = self._result(file, modules, changed, scratch, known if known.startswith(f"{file}::") else "")
            if result.timeout:
                return Verdict("timeout", file, f"not done within {self.limit:g} s")
            if result.failed and self._passes_without(file, scratch):
                self._noticed[path, file] += 1
                return Verdict("killed", *result.failed)
        return Verdict("survived", said=f"{len(files)} test files pass")

    def _result(
        self, file: str, modules: Mapping[str, str], changed: Mapping[str, str], scratch: Scratch, first: str = ""
    ) -> Result:
        """All of one test file; `first` is the test that is run first, alone."""
        digest = self.sight.digest(file, modules, self.environment)
        result = self.results.get(digest)
        if result is not None:
            return result
        result = scratch.run([first], changed, self.limit) if first else Result()
        if not (result.failed or result.timeout) or "pytest ended with" in "".join(result.failed):
            result = scratch.run([file], changed, self.limit)
        self.results.put(digest, result)
        return result

    def _passes_without(self, file: str, scratch: Scratch) -> bool:
        result = self._result(file, self.sight.generated, {}, scratch)
        if result.failed or result.timeout:
            self.useless[file] = ": ".join(result.failed) or "it does not end"
        return file not in self.useless


class LineJudge:
    """Finds the test that notices a mutation of a line, among those that reach the line.

    Attributes:
        sight: which tests see what, and the generated modules without a mutation.
        results: what is known from earlier runs.
        record: which tests reach which lines.
        environment: what else decides results.
        limit: seconds for the tests of one mutation, at most.
        seconds: how long they take together, as far as that is known; tests that take longer are left out.
        useless: tests that fail without a mutation, too, and how; they notice nothing.
    """

    def __init__(
        self, sight: Sight, results: Results, environment: Sequence[str], *, limit: float, seconds: float
    ) -> None:
        self.sight, self.results, self.environment, self.limit, self.seconds = (
            sight,
            results,
            environment,
            limit,
            seconds,
        )
        self.record = Record()
        self.useless: dict[str, str] = {}
        self._noticed: Counter[tuple[str, str]] = Counter()

    def look(
        self, records: Records, scratch: Scratch, say: Callable[[str], object], only: Collection[str] = ()
    ) -> None:
        """Record which lines the tests reach, as far as that is not known from an earlier run.

        Args:
            records: what is known, and becomes known.
            scratch: where to run.
            say: is told which file is run.
            only: test files to be looked at, if not all; what others notice is not found out.
        """
        generated = {path: text for path, text in self.sight.generated.items() if not path.endswith("__init__.py")}
        modules = {path: instrumented(text, path) for path, text in generated.items()}
        for file in self.sight.files:
            if (only and file not in only) or not generated.keys() & self.sight.seen(file):
                continue
            key = self.sight.digest(file, self.sight.generated, [*self.environment, "lines"])
            found = records.get(key)
            if found is None:
                say(f"which lines does {file} reach?")
                record = scratch.record(file, modules, self.limit)
                if record is None:
                    self.useless[file] = "it does not end"
                    continue
                records.put(key, record)
                found = record.dump()
            self.record.add(found)

    def verdict(self, mutation: CodeMutation, modules: Mapping[str, str], scratch: Scratch) -> Verdict:
        """Run tests until one fails, with these generated modules."""
        path = mutation.module
        module = {line for lines in self.record.lines.values() for line in lines if line[0] == path}
        lines = {(path, mutation.reached)} if mutation.reached else module
        likely = sorted(
            (test for scope, test in self._noticed if scope == mutation.scope),
            key=lambda test: -self._noticed[mutation.scope, test],
        )
        choice = reaching(self.record, lines, [test for test in likely[:3] if test not in self.useless], self.seconds)
        tests = [test for test in choice.tests if test not in self.useless]
        if not tests:
            return Verdict("survived", said="no test reaches it")
        changed = {path: modules[path]}
        files = sorted({test.partition("::")[0] for test in tests})
        key = digest([*(self.sight.digest(file, modules, self.environment) for file in files), *sorted(tests)])
        result = self.results.get(key)
        if result is None:
            result = scratch.run(tests, changed, self.limit)
            self.results.put(key, result)
        if result.timeout:
            return Verdict("timeout", said=f"not done within {self.limit:g} s")
        if not result.failed:
            left = f"; {choice.left_out} that take longer are left out" if choice.left_out else ""
            return Verdict("survived", said=f"{len(tests)} tests pass{left}")
        test = result.failed[0]
        if test in self.record.failed:
            without = scratch.run([test], {}, self.limit)
            if without.failed or without.timeout:
                self.useless[test] = ": ".join(without.failed) or "it does not end"
                return self.verdict(mutation, modules, scratch)
        self._noticed[mutation.scope, test] += 1
        return Verdict("killed", *result.failed)
