"""Split steps on vllm-ascend with dense attention; needs its source tree (`AFD_VLLM_ASCEND_SOURCE`)."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ascend
from tests.dbo.graphs import DBO, GRAPHS
from tests.dbo.scenarios import EAGER, EVEN, SPLIT
from tests.sim.environments import ASCEND_VARIABLE, Environment
from tests.sim.environments import ascend as ascend_environment
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Scenario, assert_equal
from tests.sim.trace import overlap

pytestmark = pytest.mark.vllm

SCENARIOS = {name: dataclasses.replace(s, races=True) for name, s in EAGER.items()}

Pairs = list[dict[str, tuple[Outcome, Outcome]]]


@pytest.fixture(scope="module")
def tree() -> Environment:
    environment = ascend_environment()
    if environment is None:
        pytest.skip(f"{ASCEND_VARIABLE} is not set: the stand-in for vllm-ascend has no dense attention")
    return environment


@pytest.fixture(scope="module")
def pairs(tree: Environment) -> Pairs:
    return run_ranks(ascend.play_off_and_on, SCENARIOS, environment=tree)


@pytest.mark.parametrize("name", SCENARIOS)
def test_outputs_are_those_of_single_batches(pairs: Pairs, name: str) -> None:
    assert_equal([pair[name][0] for pair in pairs], [pair[name][1] for pair in pairs])
    wanted = {0, 1} if name in SPLIT else {0}
    assert all((pair[name][0].ubatches, pair[name][1].ubatches) == ({0}, wanted) for pair in pairs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_races_but_those_of_vllm_ascend(pairs: Pairs, name: str) -> None:
    for pair in pairs:
        off, on = ({(race.first, race.second) for race in outcome.races} for outcome in pair[name])
        assert on <= off


def test_the_ubatches_interleave(pairs: Pairs) -> None:
    for pair in pairs:
        off, on = pair["few requests"]
        assert overlap(off.marks) == 0
        assert overlap(on.marks) > 0.7


def test_twins_of_dense_attention(tree: Environment) -> None:
    # Validation does not accept it, as nobody has tried it on a device; the parameters are found and updated all the same.
    graphs = {"graphs": Scenario(EVEN, dbo=DBO, graphs=GRAPHS, races=True)}
    for pair in run_ranks(ascend.play_off_and_on, graphs, ascend.unvalidated, environment=tree):
        off, on = pair["graphs"]
        assert_equal([off], [on])
        assert [replays for replays in on.replays.items() if replays[1]] == [((4, 2), 5)]
        assert on.races == on.capture_races == ()
