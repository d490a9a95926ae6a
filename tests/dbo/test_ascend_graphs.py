"""Split steps with latent attention on vllm-ascend, or on its stand-in: graphs, their parameters, their end."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ascend, graphs
from tests.dbo.graphs import DBO, GRAPHS
from tests.dbo.scenarios import EAGER, EVEN, SPLIT, STEPS, replays
from tests.dbo.scenarios import GRAPHED as GRAPH
from tests.dbo.test_graph_manager import POINTS
from tests.sim.ascend_config import ENGINE, MLA
from tests.sim.environments import Environment, ascend_or_stand_in
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Scenario, assert_equal
from tests.sim.scheduler import Logits, difference

pytestmark = pytest.mark.vllm


def latent(scenario: Scenario) -> Scenario:
    """The same with latent attention, looking for races."""
    return dataclasses.replace(scenario, model=MLA, engine=ENGINE, races=True)


SCENARIOS = {
    **{f"eager, {name}": latent(scenario) for name, scenario in EAGER.items()},
    **{f"graphs, {name}": latent(scenario) for name, scenario in GRAPH.items()},
    "graphs, a rank cannot use them": latent(Scenario(EVEN, dbo=DBO, graphs=GRAPHS, eager_ranks=frozenset({1}))),
    "graphs of single batches": latent(Scenario(EVEN, graphs=GRAPHS)),
}

Pairs = list[dict[str, tuple[Outcome, Outcome]]]


@pytest.fixture(scope="module")
def npu() -> Environment:
    return ascend_or_stand_in()


@pytest.fixture(scope="module")
def pairs(npu: Environment) -> Pairs:
    return run_ranks(ascend.play_off_and_on, SCENARIOS, environment=npu, timeout=300)


@pytest.fixture(scope="module")
def undisturbed(npu: Environment) -> list[Logits]:
    return run_ranks(ascend.undisturbed, environment=npu)


@pytest.mark.parametrize("name", SCENARIOS)
def test_outputs_are_those_of_single_batches(pairs: Pairs, name: str) -> None:
    # Eager ones are those of the same requests, too: their logits do not depend on what else is in a batch.
    assert_equal([pair[name][0] for pair in pairs], [pair[name][1] for pair in pairs])


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_races_but_those_of_vllm_ascend(pairs: Pairs, name: str) -> None:
    for pair in pairs:
        off, on = (
            {(race.first, race.second) for race in (*outcome.races, *outcome.capture_races)} for outcome in pair[name]
        )
        assert on <= off


def test_graphs_agree_with_eager_steps(pairs: Pairs) -> None:
    for pair in pairs:
        assert_equal([pair["graphs, decode"][1]], [pair["eager, decode below the threshold"][0]])


def test_what_is_replayed(pairs: Pairs) -> None:
    for pair in pairs:
        assert replays(pair["graphs, decode"][0]) == replays(pair["graphs of single batches"][1]) == {(4, 1): 5}
        assert replays(pair["graphs, decode"][1]) == {(4, 2): 5}
        assert replays(pair["graphs, below the threshold"][1]) == {(4, 1): 5}
        assert replays(pair["graphs, second ubatch would be empty"][1]) == {(8, 1): 5}
        for name in ("graphs, not captured", "graphs, a rank cannot use them"):
            assert replays(pair[name][1]) == {}
            assert len(pair[name][1].marks) == 6 * STEPS


def test_who_splits(pairs: Pairs) -> None:
    for pair in pairs:
        assert {name for name in EAGER if pair[f"eager, {name}"][1].ubatches == {0, 1}} == SPLIT


def test_twins_are_captured_once_each_after_a_warm_up_and_a_notice(npu: Environment) -> None:
    for seen in run_ranks(graphs.captured, ascend.make, environment=npu):
        assert seen["native"] == [1, 2, 4, 8]
        assert seen["same keys"]
        assert seen["graphs"]
        assert seen["twins"] == [(8, 8, 1, 2), (4, 4, 1, 2), (2, 2, 1, 2)]
        assert seen["sent"] == [(said, {0: [n, n], 1: [n, n]}) for n in (4, 2, 1) for said in ("warm-up", "capture")]
        assert seen["steps"] == [STEPS] * 6
        assert not seen["raised"]


def test_the_ffn_side_hears_of_every_replay(npu: Environment) -> None:
    for seen in run_ranks(graphs.replayed, ascend.make, environment=npu):
        replay = ("replay", {0: [2, 2], 1: [2, 2]})
        assert seen["sent"] == [("eager", {0: [4, 4], 1: [5, 5]}), replay, replay]
        assert seen["broken"] == [replay]
        assert seen["flag"]
        assert not seen["raised"]
        assert seen["staged"] is None
        assert seen["lost"]  # it may have begun, and waits for nothing any more
        assert (len(seen["logits"]), seen["replays"]) == (3, 2)


def test_wrong_staged_state_is_an_error_and_no_replay(npu: Environment) -> None:
    for seen in run_ranks(graphs.staged_wrongly, ascend.make, environment=npu):
        assert seen["nothing"].startswith(
            "StagedStateError: no ubatches are staged for the replay of AFDBatchExecutionDescriptor"
        )
        assert "was captured for" in seen["another shape"]
        assert seen["replayed"] == "{8: 0, 4: 1, 2: 0}"
        assert seen["no runner"].startswith("StagedStateError: there is no ubatch runner")


def test_every_stage_of_every_graph_has_parameters_of_its_own(npu: Environment) -> None:
    layers = 2
    for seen in run_ranks(ascend.params, environment=npu):
        assert seen["during"] == [(True, True)] * 6  # and under the communicator of vllm-ascend
        assert seen["native again"]
        assert seen["native"] == dict.fromkeys((1, 2, 4, 8), layers)
        assert seen["twins"] == {8: 4, 4: 2, 2: 1}
        assert seen["recorded"] == [[layers] * 6] * 3
        assert seen["distinct"] == layers * (2 * 3 + 4)
        # One for each graph, which both stages share; none is the native one of as many tokens.
        assert seen["workspaces"] == 3 + 4
        assert seen["shared"]
        assert seen["weak"] == [True] * 3  # after a capture it is the graph's
        assert seen["left"] == 0


def test_a_failed_update_leaves_nothing_waiting_and_its_graph_is_given_up(
    npu: Environment, undisturbed: list[Logits]
) -> None:
    for seen, expected in zip(run_ranks(ascend.update_fails, environment=npu), undisturbed, strict=True):
        assert not seen["raised"]
        assert seen["twins"] == [2, 8]
        # In the next larger one there would be nothing real for the second ubatch: a single batch.
        assert seen["sent"] == []
        assert difference(seen["logits"], expected) < 1e-4


def test_a_graph_is_given_up_when_the_device_is_done_with_it(npu: Environment) -> None:
    for done in run_ranks(ascend.given_up, environment=npu):
        # Two stages of two layers: four events let the replay pass, and its end is waited for before the graph goes.
        assert done == [("fails", True, 0), ("synchronizes", True, 4), ("raises", False, 4)]


def test_every_stage_has_to_have_recorded_every_layer(npu: Environment) -> None:
    (seen,) = run_ranks(ascend.checks, world=1, environment=npu)
    accepted = {name for name, said in seen.items() if not said}
    assert accepted == {"two layers, None", "two layers, 2"}
    assert seen["nothing, None"] == "equal numbers of them"
    assert {name: seen[f"two layers, {name}"] for name in (0, 1, 3)} == {n: f"{n} of each" for n in (0, 1, 3)}


def test_metadata_of_other_layers_is_an_error_and_no_replay(npu: Environment, undisturbed: list[Logits]) -> None:
    for seen, expected in zip(run_ranks(ascend.other_layers, environment=npu), undisturbed, strict=True):
        assert seen["both"].startswith(
            "GraphParamsError: events, handles and operands of the stages with 2 tokens: [(2, 2, 2), (2, 2, 2)]; there have to be 1"
        )
        assert seen["one"].startswith("GraphParamsError: the stages have metadata of different layers")
        assert seen["replays"] == 0
        assert difference(seen["logits"], expected) < 1e-4


def test_a_failed_capture_leaves_no_parameters(npu: Environment) -> None:
    for seen in run_ranks(ascend.released, environment=npu):
        assert seen == {"params": 0, "native": True, "recorded": 0}


def test_a_failed_capture_releases_all_twins(npu: Environment, undisturbed: list[Logits]) -> None:
    points = POINTS[::3]
    for outcomes, expected in zip(
        run_ranks(graphs.interrupted, points, ascend.make, environment=npu), undisturbed, strict=True
    ):
        assert [outcome["error"] for outcome in outcomes] == [str(point) for point in points]
        for outcome in outcomes:
            assert (outcome["threads"], outcome["twins"], outcome["natives"], outcome["raised"]) == (1, [], 4, False)
            assert difference(outcome["logits"], expected) < 1e-4


def test_nothing_keeps_the_weights_after_the_shutdown(npu: Environment) -> None:
    for seen in run_ranks(graphs.ended, ascend.make, environment=npu):
        assert seen["alive"] == []
        assert seen["watched"] > 20


def test_state_of_a_stage_is_in_the_additional_part_of_its_context(npu: Environment) -> None:
    for first, second in run_ranks(ascend.look, environment=npu):
        assert first["foreign"] == second["foreign"] == []
        assert first["capturing"] == second["capturing"] is False
        assert [stage["tokens"] for stage in (first, second)] == [(4, 4, [True] * 4), (5, 5, [True] * 5)]
        # Of three requests with three tokens each: the second one is cut after its first token.
        assert (first["lengths"], second["lengths"]) == ([3, 1], [3, 3])
        # All tokens of the first stage are in it; the second reads what the first has cached.
        assert (first["state"], second["state"]) == ("PrefillNoCache", "ChunkedPrefill")


def test_a_failed_stage_ends_the_step_and_the_next_one_works(npu: Environment, undisturbed: list[Logits]) -> None:
    for seen, expected in zip(run_ranks(ascend.disturbed, environment=npu), undisturbed, strict=True):
        assert seen["errors"] == seen["wanted"]
        assert all(difference(found, expected) < 1e-4 for found in seen["logits"])
        assert not seen["alive"]


def test_there_are_workspaces_for_both_stages(npu: Environment) -> None:
    assert run_ranks(ascend.workspaces, environment=npu) == [[2, 1]] * 2


def test_graphs_without_latent_attention_are_refused(npu: Environment) -> None:
    for said in run_ranks(ascend.refused, environment=npu):
        assert "use_mla is False; accepted: True (a model with MLA)" in said
