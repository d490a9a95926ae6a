"""The whole matrix on the real vLLM 0.26.0: what the requests are like, times how they are run, against vLLM's own plain runs.

Every cell: two DP ranks, the same tokens, logits within 1e-4, stages that interleave and do not race, and the graphs that are
replayed. vLLM 0.30.0, which has dual batch overlap of its own, runs the same requests in its own processes: the oracle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import eager
from tests.dbo.scenarios import EVEN, FOUR, IDLE, MANY, replays
from tests.sim import oracle
from tests.sim.config import Dbo, Graphs
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Prompt, Scenario, assert_equal, play_all
from tests.sim.trace import overlap

pytestmark = pytest.mark.vllm

MODES = ("off", "dbo", "graphs", "dbo graphs")
"""With the generated runner; `off` without ubatches and without graphs."""

UNEVEN = (
    {name: Prompt((3 + at, 5)) for at, name in enumerate("abcd")},
    {"e": Prompt(tuple(range(10, 31))), "f": Prompt((40, 41)), "g": Prompt((42, 43, 44))},
)
Replays = Mapping[tuple[int, int], int]
BOTH = ("dbo", "dbo graphs")


@dataclass(frozen=True)
class Row:
    """Requests, and what comes of them.

    Attributes:
        scenario: them, run plainly.
        modes: how they are run.
        split: the modes in which Python runs two ubatches; replayed graphs leave no marks.
        graphs: replays with graphs, by tokens and number of ubatches.
        twins: replays with ubatches and graphs.
        dbo: the thresholds.
        sizes: what is captured.
        races: whether to look for races.
    """

    scenario: Scenario
    modes: tuple[str, ...] = ("dbo", "graphs", "dbo graphs")
    split: tuple[str, ...] = BOTH
    graphs: Replays = field(default_factory=dict)
    twins: Replays = field(default_factory=dict)
    dbo: Dbo = field(default_factory=Dbo)
    sizes: tuple[int, ...] = (2, 4)
    races: bool = False

    def in_mode(self, mode: str) -> Scenario:
        """The scenario as it is run in a mode."""
        return dataclasses.replace(
            self.scenario,
            dbo=self.dbo if "dbo" in mode else None,
            graphs=Graphs(self.sizes, "FULL_DECODE_ONLY") if "graphs" in mode else None,
            eager_ranks=self.scenario.eager_ranks if "graphs" in mode else frozenset(),
            races=self.races and "dbo" in mode,
        )


ROWS = {
    "prefill": Row(Scenario(EVEN, steps=1), MODES, races=True),
    "decode": Row(Scenario(EVEN, steps=4), MODES, graphs={(4, 1): 3}, twins={(4, 2): 3}, races=True),
    "chunked prefill": Row(Scenario(EVEN, steps=7, chunk=4), graphs={(4, 1): 2}, twins={(4, 2): 2}),
    # Its prefills have ranks that bring less than half of the tokens: the second ubatch would be empty there.
    "prefills meet decodes": Row(
        Scenario(MANY, steps=6), MODES, ("dbo",), graphs={(4, 1): 3}, twins={(4, 1): 1, (4, 2): 2}, races=True
    ),
    "uneven ranks": Row(Scenario(UNEVEN, steps=3), split=("dbo",), graphs={(4, 1): 2}, twins={(4, 2): 2}),
    "one rank is idle": Row(Scenario(IDLE, steps=3), MODES, (), graphs={(2, 1): 2}, twins={(2, 1): 2}),
    "decode at the threshold": Row(Scenario(EVEN, steps=2), BOTH, twins={(4, 2): 1}, dbo=Dbo(decode=3)),
    "decode below the threshold": Row(Scenario(EVEN, steps=2), BOTH, twins={(4, 1): 1}, dbo=Dbo(decode=4)),
    "prefill at the threshold": Row(Scenario(EVEN, steps=1), ("dbo",), dbo=Dbo(prefill=18)),
    "prefill below the threshold": Row(Scenario(EVEN, steps=1), ("dbo",), (), dbo=Dbo(prefill=19)),
    "second ubatch would be empty": Row(Scenario(FOUR, steps=3), graphs={(8, 1): 2}, twins={(8, 1): 2}, sizes=(2, 8)),
    "shape that is not captured": Row(Scenario(EVEN, steps=3), sizes=(2,)),
    "a rank cannot use its graphs": Row(Scenario(EVEN, steps=3, eager_ranks=frozenset({1}))),
}

DIFFERENT = {
    "chunked prefill, dbo graphs": "vLLM 0.30 takes a last chunk of one token for prefill, 0.26 for decode",
    "prefills meet decodes, dbo graphs": "the donor keeps a second ubatch that is empty on a rank",
    "uneven ranks, dbo graphs": "the donor keeps a second ubatch that is empty on a rank",
    "second ubatch would be empty, dbo graphs": "the donor keeps a second ubatch that is empty on a rank",
}
"""Where the oracle decides otherwise than the backport, and why; what it computes is the same."""

NOT_ASKED = "a rank cannot use its graphs, dbo graphs"
"""vLLM 0.30 does not look at the votes: one rank replays a graph, the other pads for itself, and the collectives do not meet."""

CELLS = [(name, mode) for name, row in ROWS.items() for mode in row.modes]
SPLITTING = [(name, mode) for name, mode in CELLS if "dbo" in mode]
ASKED = [(name, mode) for name, mode in SPLITTING if f"{name}, {mode}" != NOT_ASKED]

Outcomes = dict[str, list[Outcome]]


def by_name(ranks: list[dict[str, Outcome]]) -> Outcomes:
    return {name: [outcomes[name] for outcomes in ranks] for name in ranks[0]}


@pytest.fixture(scope="module")
def plain() -> Outcomes:
    """vLLM 0.26.0, nothing generated."""
    return by_name(run_ranks(play_all, {name: row.in_mode("off") for name, row in ROWS.items()}))


@pytest.fixture(scope="module")
def generated() -> Outcomes:
    """The generated runner in all modes."""
    return by_name(
        run_ranks(eager.play_all_on, {f"{name}, {mode}": ROWS[name].in_mode(mode) for name, mode in CELLS}, timeout=300)
    )


@pytest.fixture(scope="module")
def native() -> Outcomes:
    """vLLM 0.30.0 with its own ubatches and graphs."""
    scenarios = {f"{name}, {mode}": ROWS[name].in_mode(mode) for name, mode in ASKED}
    return oracle.ask({name: dataclasses.replace(scenario, races=False) for name, scenario in scenarios.items()})


def test_the_table_has_every_mode_and_both_kinds_of_replays() -> None:
    assert {mode for _, mode in CELLS} == set(MODES)
    assert {ubatches for row in ROWS.values() for _, ubatches in row.twins} == {1, 2}
    assert set(DIFFERENT) <= {f"{name}, {mode}" for name, mode in ASKED}


@pytest.mark.parametrize(("name", "mode"), CELLS)
def test_outputs_are_those_of_plain_runs(plain: Outcomes, generated: Outcomes, name: str, mode: str) -> None:
    assert_equal(generated[f"{name}, {mode}"], plain[name], tolerance=1e-9 if mode == "off" else 1e-4)
    for outcome, requests in zip(plain[name], ROWS[name].scenario.prompts, strict=True):
        assert bool(outcome.logits) == bool(requests)


@pytest.mark.parametrize(("name", "mode"), CELLS)
def test_steps_are_split_and_graphs_are_replayed_where_they_should(generated: Outcomes, name: str, mode: str) -> None:
    row = ROWS[name]
    for outcome in generated[f"{name}, {mode}"]:
        assert replays(outcome) == {"graphs": row.graphs, "dbo graphs": row.twins}.get(mode, {})
        split = mode in row.split
        assert outcome.ubatches == ({0, 1} if split else {0})
        assert (overlap(outcome.marks) > 0) == split


@pytest.mark.parametrize(("name", "mode"), [cell for cell in SPLITTING if ROWS[cell[0]].races])
def test_the_ubatches_do_not_race(generated: Outcomes, name: str, mode: str) -> None:
    assert [(outcome.races, outcome.capture_races) for outcome in generated[f"{name}, {mode}"]] == [((), ())] * 2


@pytest.mark.parametrize("name", ["prefill", "prefill at the threshold"])
def test_a_split_step_takes_turns_at_each_exchange(generated: Outcomes, name: str) -> None:
    for outcome in generated[f"{name}, dbo"]:
        assert overlap(outcome.marks) == 1
        assert len(outcome.marks) == 2 * 2 * 4, "layers, ubatches, marks of an exchange"


@pytest.mark.parametrize(("name", "mode"), ASKED)
def test_outputs_are_those_of_the_oracle(native: Outcomes, generated: Outcomes, name: str, mode: str) -> None:
    assert_equal(generated[f"{name}, {mode}"], native[f"{name}, {mode}"])


@pytest.mark.parametrize(("name", "mode"), ASKED)
def test_what_is_split_is_what_the_oracle_splits(native: Outcomes, generated: Outcomes, name: str, mode: str) -> None:
    cell = f"{name}, {mode}"
    ours, theirs = (
        [(outcome.ubatches, replays(outcome)) for outcome in outcomes[cell]] for outcomes in (generated, native)
    )
    assert (ours != theirs) == (cell in DIFFERENT), (ours, theirs)
