"""Roads to people's doors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Road:
    """A way to a door, and how many knocks it takes until somebody opens (0: nobody is in)."""

    to: str
    length: int
    knocks: int = 1


def shortest(roads: list[Road], to: str) -> Road:
    """The shortest road to a door."""
    return min((road for road in roads if road.to == to), key=lambda road: road.length)
