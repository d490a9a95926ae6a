"""Every point of a step at which something may fail: found by watching a good step, then made to fail one at a time.

The generated modules are imported with a call before each statement that may fail, and the model reports the steps of its
exchanges. What a statement calls fails at its beginning, as far as the statement can tell. Left out is what cleans up: `finally`
and `except` clauses, and functions that end something have nothing to fall back on.

`instrument` has to be called in a process before it imports a generated module.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.machinery
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.sim.trace import TRACE, Mark

PACKAGE = "afd_backports."
ENDS = frozenset({
    "__exit__", "abort", "cancel", "close", "end", "end_run", "raise_failure", "release", "release_twins", "shutdown",
})  # fmt: skip
"""Functions that end something."""
COMPARES = frozenset({"__eq__", "__hash__"})
"""How often a dictionary compares its keys depends on their hashes, which are other ones in each process."""
WAITS = frozenset({"thread.join()", "self.cpu_wait_event.wait()"})
"""Where the caller, or a stage, waits while a stage runs. It does not fail there, it can only be interrupted, on each rank at another
moment of the stage that runs: one may be in a collective that the other never comes to. See `lives.interrupted`."""


class OwnError(Exception):
    """What the tests let fail; it knows when."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.since = time.monotonic()


@dataclass(frozen=True, order=True)
class Point:
    """A place, and a time at it.

    Attributes:
        thread: the caller's, or that of a stage.
        place: module, function and line in the function; or layer and step of an exchange.
        number: the how manyth time that it is reached by this thread, from 1.
    """

    thread: str
    place: str
    number: int

    def __str__(self) -> str:
        return f"{self.thread}, {self.place}, {self.number}"

    @property
    def function(self) -> str:
        """The place without its line."""
        return self.place.partition("+")[0]


_watches: list[Callable[[Point], object]] = []
_counts: Counter[tuple[str, str]] = Counter()
_thread = threading.local()


def _reached(place: str) -> None:
    if not _watches:
        return
    if ".run_ubatch+" in place:
        _thread.name = f"stage {sys._getframe(1).f_locals['ubatch_context'].id}"
    name = vars(_thread).get("name", "caller")
    _counts[name, place] += 1
    _watches[-1](Point(name, place, _counts[name, place]))


@contextlib.contextmanager
def watched(reached: Callable[[Point], object]) -> Iterator[None]:
    """Call `reached` at each point, in the thread that reaches it; it may raise."""

    def marked(mark: Mark) -> None:
        _reached(f"model.layer {mark.layer} {mark.step}")

    _counts.clear()
    _watches.append(reached)
    before, TRACE.hook = TRACE.hook, marked
    try:
        yield
    finally:
        TRACE.hook = before
        _watches.pop()


def record(step: Callable[[], object]) -> list[Point]:
    """The points of a good step, in the order in which they are reached."""
    points: list[Point] = []
    with watched(points.append):
        step()
    return points


@contextlib.contextmanager
def failing(point: Point) -> Iterator[list[OwnError]]:
    """Let a point fail in the block; the error that was raised there."""
    raised: list[OwnError] = []

    def reached(other: Point) -> None:
        if other == point:
            raised.append(OwnError(str(point)))
            raise raised[0]

    with watched(reached):
        yield raised


def at_all(points: Sequence[Sequence[Point]]) -> list[Point]:
    """The points that all ranks reach."""
    common = set(points[0]).intersection(*points[1:])
    return [point for point in points[0] if point in common]


# ---- instruments ----------------------------------------------------------------------------------------------


def instrument() -> None:
    """Let the generated modules report their points, from their import on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        assert not any(name.startswith(PACKAGE) and name.count(".") == 2 for name in sys.modules)
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the generated modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(PACKAGE):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module with its instruments; without the cache of compiled modules."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        tree = ast.parse(path.read_bytes())
        _instrument(tree, path.stem, 0)
        return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__reached__"] = _reached
        super().exec_module(module)


def _instrument(node: Any, name: str, first: int) -> None:
    """Put the calls into a module, class, function or clause."""
    for block in ("body", "orelse"):
        statements = vars(node).get(block)
        if not isinstance(statements, list):
            continue
        reporting: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, ast.ClassDef):
                _instrument(statement, f"{name}.{statement.name}", 0)
            elif isinstance(statement, ast.FunctionDef):
                if statement.name not in ENDS | COMPARES:
                    _instrument(statement, f"{name}.{statement.name}", statement.lineno)
            elif first:
                if _may_fail(statement):
                    call = ast.parse(f"__reached__({f'{name}+{statement.lineno - first}'!r})").body[0]
                    reporting.append(ast.copy_location(call, statement))
                _instrument(statement, name, first)
            reporting.append(statement)
        vars(node)[block] = reporting


def _may_fail(statement: ast.stmt) -> bool:
    """Whether a statement, or the head of one, calls or looks up something; a declaration, such as a docstring, does not."""
    if isinstance(statement, ast.With):
        return True
    if ast.unparse(statement) in WAITS:
        return False
    heads: list[ast.AST] = [statement]
    if isinstance(statement, (ast.If, ast.While)):
        heads = [statement.test]
    elif isinstance(statement, ast.For):
        heads = [statement.iter]
    elif isinstance(statement, ast.Try):
        heads = []
    return any(
        isinstance(part, (ast.Assert, ast.Call, ast.Raise, ast.Subscript)) for head in heads for part in ast.walk(head)
    )
