"""Graphs of split batches: captured beside the native ones, replayed for what is staged, gone when something fails."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import eager, graphs
from tests.dbo.graphs import DBO, GRAPHS
from tests.dbo.test_eager import EVEN, IDLE
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Prompt, Scenario, assert_equal
from tests.sim.scheduler import Logits, difference

pytestmark = pytest.mark.vllm

STEPS = 16
"""Steps of the exchanges of a split forward pass: two stages, two layers, four each."""

SCENARIOS = {
    "decode": Scenario(EVEN, dbo=DBO, graphs=GRAPHS, races=True),
    "below the threshold": Scenario(EVEN, dbo=dataclasses.replace(DBO, decode=4), graphs=GRAPHS),
    "one rank is idle": Scenario(IDLE, dbo=DBO, graphs=GRAPHS),
    "second ubatch would be empty": Scenario(
        ({name: Prompt((3, 5)) for name in "abcd"}, {name: Prompt((4, 6)) for name in "efgh"}), dbo=DBO,
        graphs=dataclasses.replace(GRAPHS, sizes=(2, 8)),
    ),
    "not captured": Scenario(EVEN, dbo=DBO, graphs=dataclasses.replace(GRAPHS, sizes=(1, 2))),
}  # fmt: skip


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, tuple[Outcome, Outcome]]]:
    return run_ranks(eager.play_off_and_on, SCENARIOS)


@pytest.fixture(scope="module")
def undisturbed() -> list[Logits]:
    return run_ranks(eager.undisturbed)


@pytest.mark.parametrize("name", SCENARIOS)
def test_outputs_are_those_of_single_batches(pairs, name: str) -> None:
    assert_equal([pair[name][0] for pair in pairs], [pair[name][1] for pair in pairs])
    assert [race for pair in pairs for race in (*pair[name][1].races, *pair[name][1].capture_races)] == []


def replays(outcome: Outcome) -> dict[tuple[int, int], int]:
    return {key: count for key, count in outcome.replays.items() if count}


def test_decode_steps_replay_twins(pairs) -> None:
    for pair in pairs:
        off, on = pair["decode"]
        assert replays(off) == {(4, 1): 5}
        assert replays(on) == {(4, 2): 5}
        assert len(on.marks) == STEPS  # the prefill, split and eager


def test_captured_single_batches_keep_the_native_graphs(pairs) -> None:
    for pair in pairs:
        off, on = pair["below the threshold"]
        assert replays(on) == replays(off) == {(4, 1): 5}
    for pair in pairs:
        assert replays(pair["one rank is idle"][1]) == replays(pair["one rank is idle"][0]) != {}


def test_an_empty_second_ubatch_is_a_single_batch(pairs) -> None:
    # 4 tokens are padded to 8: nothing real would be left for the second ubatch.
    for pair in pairs:
        assert replays(pair["second ubatch would be empty"][1]) == {(8, 1): 5}


def test_shapes_that_are_not_captured_run_eager_ubatches(pairs) -> None:
    for pair in pairs:
        on = pair["not captured"][1]
        assert replays(on) == {}
        assert len(on.marks) == 6 * STEPS


def test_twins_are_captured_beside_the_native_graphs() -> None:
    for seen in run_ranks(graphs.captured):
        assert seen["native"] == [1, 2, 4, 8]
        assert seen["same keys"]
        assert seen["graphs"]  # each has its own
        # One token for each request, evenly divided: no twin for a single request.
        assert seen["twins"] == [(8, 8, 1, 2), (4, 4, 1, 2), (2, 2, 1, 2)]
        half = [(8, 4), (4, 2), (2, 1)]
        expected = [(said, {0: [n, n], 1: [n, n]}) for _, n in half for said in ("warm-up", "capture")]
        assert seen["sent"] == expected
        # The FFN side hears of each before it is done, and each is done once.
        assert seen["steps"] == [STEPS] * 6
        assert not seen["raised"]


def test_the_ffn_side_hears_of_every_replay(undisturbed: list[Logits]) -> None:
    for seen, _ in zip(run_ranks(graphs.replayed), undisturbed, strict=True):
        # 9 tokens of the prefill in 4 and 5; three decode requests in a graph of four.
        assert seen["sent"] == [
            ("eager", {0: [4, 4], 1: [5, 5]}), ("replay", {0: [2, 2], 1: [2, 2]}), ("replay", {0: [2, 2], 1: [2, 2]}),
        ]  # fmt: skip
        assert seen["broken"] == [("replay", {0: [2, 2], 1: [2, 2]})]
        assert seen["flag"]
        assert not seen["raised"]
        assert seen["staged"] is None
        assert len(seen["logits"]) == 3
        assert seen["replays"] == 3


def test_wrong_staged_state_is_an_error_and_no_replay() -> None:
    for seen in run_ranks(graphs.staged_wrongly):
        assert seen["nothing"].startswith("StagedStateError: no ubatches are staged for the replay of AFDBatchExecutionDescriptor")
        assert seen["another shape"].startswith("StagedStateError: [UBatchSlice(")
        assert "was captured for" in seen["another shape"]
        assert seen["replayed"] == "{8: 0, 4: 1, 2: 0}"  # the step in between
        assert seen["no runner"].startswith("StagedStateError: there is no ubatch runner")


# Native capture takes 64 steps of exchanges; then three times a warm-up and a capture of 16, each with a notice first.
POINTS = [65, 66, 73, 82, 83, 84, 91, 92, 100, 117, 140, 165, 166]


def test_a_failed_capture_releases_all_twins(undisturbed: list[Logits]) -> None:
    for outcomes, expected in zip(run_ranks(graphs.interrupted, POINTS), undisturbed, strict=True):
        assert [outcome["error"] for outcome in outcomes] == [str(point) for point in POINTS]
        for outcome in outcomes:
            assert outcome["threads"] == 1
            assert outcome["twins"] == []
            assert outcome["natives"] == 4
            assert not outcome["raised"]
            assert difference(outcome["logits"], expected) < 1e-4


def test_nothing_keeps_the_weights_after_the_shutdown() -> None:
    for seen in run_ranks(graphs.ended):
        assert seen["alive"] == []
        assert seen["watched"] > 20
