"""Deltas inside deltas: of what one wraps, and of what one takes from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from afd_patchkit.model import Delta, Take, TakeBody


def takes_of(delta: Delta) -> tuple[Take, ...]:
    """What a delta itself takes from other symbols."""
    return tuple(body.take for body in (delta.insert, delta.with_) if isinstance(body, TakeBody))


def inside(delta: Delta) -> tuple[Delta, ...]:
    """The deltas directly inside a delta: those that it wraps, then those of what it takes."""
    return delta.deltas + tuple(inner for take in takes_of(delta) for inner in take.deltas)


def nested(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """All of the deltas with those inside them, at any depth, each before what is inside it."""
    for delta in deltas:
        yield delta
        yield from nested(inside(delta))
