"""Split steps of two DP ranks, eagerly: the same outputs, real interleaving, aborted runs, the state of the stages."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import torch

from tests.dbo import eager
from tests.sim.config import Dbo
from tests.sim.ranks import run_ranks
from tests.sim.scenario import Outcome, Prompt, Scenario, assert_equal
from tests.sim.trace import overlap

pytestmark = pytest.mark.vllm

FEW = ({"a": Prompt((3, 5, 7, 9, 11)), "d": Prompt((8, 9))}, {"b": Prompt(tuple(range(10, 31))), "c": Prompt((40, 41))})
MANY = (
    {"a": Prompt((3, 5, 7)), "b": Prompt((8, 9)), "c": Prompt(tuple(range(20, 31)), step=2), "d": Prompt((9,), tokens=2)},
    {"e": Prompt(tuple(range(10, 31))), "f": Prompt((40, 41)), "g": Prompt((42, 43, 44), step=3)},
)
EVEN = (
    {"a": Prompt((3, 5, 7, 9, 11)), "d": Prompt((8, 9)), "e": Prompt(tuple(range(21, 32)))},
    {"b": Prompt(tuple(range(10, 31))), "c": Prompt((40, 41)), "f": Prompt((22, 23, 24))},
)
IDLE = ({"a": Prompt((3, 5, 7)), "b": Prompt((8, 9))}, {})
SCENARIOS = {
    "few requests": Scenario(FEW, dbo=Dbo()),
    "requests come and go": Scenario(MANY, dbo=Dbo()),
    "chunked prefill": Scenario(FEW, chunk=4, dbo=Dbo()),
    "one rank is idle": Scenario(IDLE, dbo=Dbo()),
    "decode below the threshold": Scenario(EVEN, dbo=Dbo(decode=4)),
}
SPLIT = {name for name in SCENARIOS if name != "one rank is idle"}

Pairs = list[dict[str, tuple[Outcome, Outcome]]]


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return run_ranks(eager.play_off_and_on, {name: dataclasses.replace(s, races=True) for name, s in SCENARIOS.items()})


@pytest.mark.parametrize("name", SCENARIOS)
def test_outputs_are_those_of_single_batches(pairs: Pairs, name: str) -> None:
    assert_equal([pair[name][0] for pair in pairs], [pair[name][1] for pair in pairs])
    assert all(pair[name][0].ubatches == {0} for pair in pairs)
    wanted = {0, 1} if name in SPLIT else {0}
    assert all(pair[name][1].ubatches == wanted for pair in pairs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_ubatches_do_not_race(pairs: Pairs, name: str) -> None:
    assert [race for pair in pairs for race in pair[name][1].races] == []


def test_the_ubatches_interleave(pairs: Pairs) -> None:
    for pair in pairs:
        off, on = pair["few requests"]
        assert overlap(off.marks) == 0
        assert overlap(on.marks) > 0.7


def test_below_the_threshold_steps_are_whole(pairs: Pairs) -> None:
    for pair in pairs:
        marks = pair["decode below the threshold"][1].marks
        assert {mark.ubatch for mark in marks[:16]} == {0, 1}  # the prefill
        assert {mark.ubatch for mark in marks[16:]} == {0}


def test_without_ubatches_in_the_configuration_the_runner_is_native(pairs: Pairs) -> None:
    on = run_ranks(eager.play_on, dataclasses.replace(SCENARIOS["few requests"], dbo=None))
    assert_equal([pair["few requests"][0] for pair in pairs], on, tolerance=1e-9)
    assert all(outcome.ubatches == {0} for outcome in on)


# ---- failures -------------------------------------------------------------------------------------------------


def test_an_aborted_run_does_nothing_and_the_next_one_works() -> None:
    for seen in run_ranks(eager.abort):
        assert seen == {"threads": 3, "left": 1, "marks": 0, "logits": 3, "kept": [], "logged": 0}


def test_closing_does_not_wait_for_stages_that_never_had_a_turn() -> None:
    assert run_ranks(eager.close_begun) == [(3, 1), (3, 1)]


# ---- state ----------------------------------------------------------------------------------------------------


def test_each_stage_has_a_context_of_its_own_with_all_state_in_its_additional_part() -> None:
    for first, second, told in run_ranks(eager.look):
        # 9 tokens of three requests: 4 and 5, cut inside of the second one.
        assert (first["ubatch"], second["ubatch"]) == (0, 1)
        assert first["context"] != second["context"]
        assert first["foreign"] == second["foreign"] == []
        assert first["kwargs"]["afd"] == (0, 2, 4, slice(0, 4))
        assert second["kwargs"]["afd"] == (1, 2, 5, slice(4, 9))
        for stage, tokens in ((first, 4), (second, 5)):
            assert stage["tokens"] == tokens
            assert stage["kwargs"]["tokens"] == tokens
            assert stage["kwargs"]["across"] == stage["across"] == [tokens, tokens]
            assert stage["own mask"]
            assert torch.equal(stage["kwargs"]["mask"], torch.ones(tokens, dtype=torch.bool))
            assert len(stage["slots"]) == tokens
        # Blocks of 64 slots: one for each request, of which the second is in both stages.
        assert [slot // 64 for slot in first["slots"]] == [1, 1, 1, 2]
        assert [slot // 64 for slot in second["slots"]] == [2, 2, 3, 3, 3]
        assert (first["blocks"], second["blocks"]) == ([1, 2], [2, 3])
        assert (first["lengths"], second["lengths"]) == ([3, 1], [3, 3])
        assert told["sent"] == [{0: [4, 4], 1: [5, 5]}]
        # The host completes each ubatch before its metadata is built.
        assert told["requests"] == [["0!", "1!"], ["1!", "2!"]]
        # The metadata of each is built in the host's scope for it.
        assert told["built"] == [(4, 1), (5, 1)]
