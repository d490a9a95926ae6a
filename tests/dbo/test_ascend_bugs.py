"""Each bug that is injected into the generated Ascend runner is noticed."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo.ascend_bugs import BUGS, Bug, play_with_bugs, replay_twice
from tests.dbo.graphs import DBO, GRAPHS
from tests.dbo.scenarios import EVEN
from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.environments import ascend_or_stand_in
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Scenario
from tests.sim.scheduler import difference

pytestmark = pytest.mark.vllm

SCENARIO = Scenario(EVEN, steps=4, dbo=DBO, graphs=GRAPHS, model=MLA, engine=ENGINE, races=True)


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Outcome | str]]:
    return run_ranks(play_with_bugs, SCENARIO, environment=ascend_or_stand_in(), timeout=300)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_it_is_noticed(outcomes: list[dict[str, Outcome | str]], bug: Bug) -> None:
    wanted, worst = BUGS[bug], 0.0
    for outcome in outcomes:
        good, bad = outcome["none"], outcome[bug.__name__]
        assert isinstance(good, Outcome)
        assert good.races == good.capture_races == ()
        if isinstance(bad, str):
            assert bad.startswith(wanted)
        else:
            assert wanted == "logits", "nothing was raised"
            worst = max(worst, difference(good.logits, bad.logits))
    assert wanted != "logits" or worst > 0.1


def test_an_update_waits_for_the_replay_before() -> None:
    assert run_ranks(replay_twice, True, environment=ascend_or_stand_in()) == [[], []]
    # Each layer of each stage.
    assert (
        run_ranks(replay_twice, False, environment=ascend_or_stand_in())
        == [[("task group", "task group update")] * 4] * 2
    )
