"""Requests that several tests use."""

from __future__ import annotations

from tests.sim.config import Dbo, Graphs
from tests.sim.scenario import Prompt, Scenario

SHORT = Prompt((3, 5, 7, 9, 11))
LONG = Prompt(tuple(range(10, 31)))
TWO = Prompt((40, 41))
PAIR = Prompt((8, 9))

THREE = ({"short": SHORT, "long": LONG, "two": TWO},)
"""One rank."""

FOUR = ({"short": SHORT, "pair": PAIR}, {"long": LONG, "two": TWO})
"""Two ranks with as many requests, of different lengths: an uneven prefill, then even decodes."""

UNEVEN = (
    {"short": Prompt(SHORT.ids, 3), "pair": Prompt(PAIR.ids, 2, step=2)},
    {"long": Prompt(LONG.ids, 7), "two": Prompt(TWO.ids, 4, step=1), "late": Prompt((50, 3, 1, 60), 2, step=5)},
)
"""Two ranks whose requests come and go: prefills meet decodes, rank 0 is idle from step 4 on, both from step 8."""

PLAIN = Scenario(FOUR)
DBO = Scenario(FOUR, dbo=Dbo())
GRAPHS = Scenario(FOUR, graphs=Graphs((2, 4, 8)))
DBO_GRAPHS = Scenario(FOUR, dbo=Dbo(), graphs=Graphs((2, 4, 8)))
