"""The generated execute path, whole steps on two DP ranks: splitting a step does not change what it computes."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo.steps import PROMPTS, STEPS, Outcome, run_all
from tests.sim.ranks import run_ranks
from tests.sim.scheduler import difference

pytestmark = pytest.mark.vllm

Outcomes = list[dict[str, Outcome]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return run_ranks(run_all)


def scheduled(step: int) -> list[int]:
    """Real tokens of both ranks in a step: their prompts first, then one for each request."""
    return [sum(map(len, prompts.values())) if step == 0 else len(prompts) for prompts in PROMPTS]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_native_runner_runs_each_step_once(outcomes: Outcomes, rank: int) -> None:
    assert outcomes[rank]["native"].widths == [[scheduled(step)[rank]] for step in range(STEPS)]


@pytest.mark.parametrize("rank", [0, 1])
def test_without_a_ubatch_runner_the_path_is_the_native_one(outcomes: Outcomes, rank: int) -> None:
    native, whole = outcomes[rank]["native"], outcomes[rank]["whole"]
    assert whole.widths == native.widths
    assert whole.idle == native.idle
    assert whole.dummy == native.dummy
    assert set(whole.ubatches) == {1}
    assert whole.prepared == native.prepared  # once for each step
    assert whole.tokens == native.tokens
    assert difference(whole.logits, native.logits) == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_steps_are_split_where_the_ranks_agree(outcomes: Outcomes, rank: int) -> None:
    split = outcomes[rank]["split"]
    # 18 tokens against 26: cut at 13, in the middle of a prompt on both ranks; rank 0 pads its second ubatch.
    assert scheduled(0) == [18, 26]
    assert split.widths[0] == [13, 13]
    # One token for each of three requests, on both ranks.
    assert split.widths[1:] == [[1, 2]] * (STEPS - 1)
    assert split.ubatches[:STEPS] == [2] * STEPS
    # Attention metadata is built for the ubatches, and not for the whole batch.
    assert split.prepared == [2] * STEPS
    assert outcomes[rank]["native"].prepared == [1] * STEPS


@pytest.mark.parametrize("rank", [0, 1])
def test_split_steps_compute_the_same(outcomes: Outcomes, rank: int) -> None:
    native, split = outcomes[rank]["native"], outcomes[rank]["split"]
    assert split.tokens == native.tokens
    assert {len(tokens) for tokens in split.tokens.values()} == {STEPS + (1 if rank == 0 else 0)}
    assert difference(split.logits, native.logits) < 1e-4


def test_an_idle_rank_keeps_the_other_whole(outcomes: Outcomes) -> None:
    assert [outcome["split"].idle for outcome in outcomes] == [[3], [1]]


@pytest.mark.parametrize("rank", [0, 1])
def test_dummy_steps_are_split_too(outcomes: Outcomes, rank: int) -> None:
    assert outcomes[rank]["split"].dummy == [3, 4]
