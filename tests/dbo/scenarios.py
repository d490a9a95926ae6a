"""Requests that several tests of split steps play, and what is looked at in their outcomes."""

from __future__ import annotations

import dataclasses

from tests.dbo.graphs import DBO, GRAPHS
from tests.sim.config import Dbo
from tests.sim.scenario import Outcome, Prompt, Scenario

FEW = ({"a": Prompt((3, 5, 7, 9, 11)), "d": Prompt((8, 9))}, {"b": Prompt(tuple(range(10, 31))), "c": Prompt((40, 41))})
MANY = (
    {
        "a": Prompt((3, 5, 7)),
        "b": Prompt((8, 9)),
        "c": Prompt(tuple(range(20, 31)), step=2),
        "d": Prompt((9,), tokens=2),
    },
    {"e": Prompt(tuple(range(10, 31))), "f": Prompt((40, 41)), "g": Prompt((42, 43, 44), step=3)},
)
EVEN = (
    {"a": Prompt((3, 5, 7, 9, 11)), "d": Prompt((8, 9)), "e": Prompt(tuple(range(21, 32)))},
    {"b": Prompt(tuple(range(10, 31))), "c": Prompt((40, 41)), "f": Prompt((22, 23, 24))},
)
IDLE = ({"a": Prompt((3, 5, 7)), "b": Prompt((8, 9))}, {})
FOUR = ({name: Prompt((3, 5)) for name in "abcd"}, {name: Prompt((4, 6)) for name in "efgh"})

EAGER = {
    "few requests": Scenario(FEW, dbo=Dbo()),
    "requests come and go": Scenario(MANY, dbo=Dbo()),
    "chunked prefill": Scenario(FEW, chunk=4, dbo=Dbo()),
    "one rank is idle": Scenario(IDLE, dbo=Dbo()),
    "decode below the threshold": Scenario(EVEN, dbo=Dbo(decode=4)),
}
SPLIT = {name for name in EAGER if name != "one rank is idle"}

GRAPHED = {
    "decode": Scenario(EVEN, dbo=DBO, graphs=GRAPHS, races=True),
    "below the threshold": Scenario(EVEN, dbo=dataclasses.replace(DBO, decode=4), graphs=GRAPHS),
    "one rank is idle": Scenario(IDLE, dbo=DBO, graphs=GRAPHS),
    "second ubatch would be empty": Scenario(FOUR, dbo=DBO, graphs=dataclasses.replace(GRAPHS, sizes=(2, 8))),
    "not captured": Scenario(EVEN, dbo=DBO, graphs=dataclasses.replace(GRAPHS, sizes=(1, 2))),
}

Counts = tuple[int, int]
"""Requests of each of two ranks."""

STEPS = 16
"""Steps of the exchanges of a split forward pass: two stages, two layers, four each."""


def replays(outcome: Outcome) -> dict[tuple[int, int], int]:
    """The graphs that were replayed, by tokens and number of ubatches, and how often."""
    return {key: count for key, count in outcome.replays.items() if count}
