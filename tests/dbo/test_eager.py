"""Split steps of two DP ranks, eagerly: aborted runs, the state of the stages."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import torch

from tests.dbo import eager
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm


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
