"""What the ubatches of a model did, in order; the model reports each step of an exchange before it is done."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """One step of an exchange, done by Python: a replayed graph leaves no marks.

    Attributes:
        ubatch: which ubatch.
        layer: which layer.
        step: `compute`, `dispatch`, `expert` or `combine`.
    """

    ubatch: int
    layer: int
    step: str


class Trace:
    """The marks of a process, in order.

    Attributes:
        marks: those since the last `clear`.
        hook: called with each mark before its step is done; may raise.
    """

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.hook: Callable[[Mark], None] | None = None

    def add(self, mark: Mark) -> None:
        """Note a step that is about to be done."""
        self.marks.append(mark)
        if self.hook is not None:
            self.hook(mark)

    def clear(self) -> None:
        """Forget the marks."""
        self.marks.clear()


TRACE = Trace()


@contextlib.contextmanager
def hooked(hook: Callable[[Mark], None]) -> Iterator[None]:
    """Call `hook` at each step of an exchange in the block."""
    before, TRACE.hook = TRACE.hook, hook
    try:
        yield
    finally:
        TRACE.hook = before


def overlap(marks: Sequence[Mark]) -> float:
    """The share of the exchanges of two ubatches during which the other one ran: 0 if there is only one ubatch."""
    met = total = 0
    for at, mark in enumerate(marks):
        if mark.step in {"compute", "expert"}:
            rest = marks[at + 1 :]
            between = list(itertools.takewhile(lambda other, own=mark.ubatch: other.ubatch != own, rest))  # type: ignore[misc]
            total += 1
            met += bool(between)
    return met / total if total else 0.0
