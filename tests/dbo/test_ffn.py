"""What an FFN rank does with what it is told: the policy alone, and steps on the simulated device."""

from __future__ import annotations

import contextlib
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import torch
from afd_backports.vllm_v026_mrv2_dbo import ffn
from afd_backports.vllm_v026_mrv2_dbo.ffn import FFNControlError, FFNGraphPolicy
from afd_backports.vllm_v026_mrv2_dbo.host import FFNAction
from vllm.forward_context import DPMetadata

from tests.dbo import ffn_steps
from tests.sim.connector import Payload, Tokens
from tests.sim.environments import VLLM, ascend_or_stand_in
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

EAGER, CAPTURE, REPLAY, KEEP = FFNAction.EAGER, FFNAction.CAPTURE, FFNAction.REPLAY, FFNAction.KEEP


def payload(said: str, stages: dict[int, list[int]], kind: Any = Tokens) -> Payload:
    flags = {name: name in said for name in ("is_warmup", "is_graph_capturing", "is_graph_replaying")}
    return Payload({i: kind(torch.tensor(tokens, dtype=torch.int32)) for i, tokens in stages.items()}, **flags)


WHOLE, SPLIT, OTHER = {0: [4, 4]}, {0: [2, 2], 1: [2, 2]}, {0: [2, 2], 1: [2, 3]}
WARMUP, CAPTURING, REPLAYING = "is_warmup", "is_graph_capturing", "is_graph_replaying"

SEQUENCES = {
    "eager steps": [("", WHOLE, EAGER), ("", SPLIT, EAGER), ("", WHOLE, EAGER)],
    "warm-up, capture, replays": [(WARMUP, WHOLE, EAGER), (CAPTURING, WHOLE, CAPTURE), (REPLAYING, WHOLE, REPLAY), (REPLAYING, WHOLE, REPLAY)],
    "captured again": [(WARMUP, SPLIT, EAGER), (CAPTURING, SPLIT, CAPTURE), (WARMUP, SPLIT, EAGER), (CAPTURING, SPLIT, REPLAY), (CAPTURING, SPLIT, REPLAY)],
    "a whole batch is another shape": [(CAPTURING, SPLIT, CAPTURE), (CAPTURING, WHOLE, CAPTURE), (REPLAYING, SPLIT, REPLAY), (REPLAYING, WHOLE, REPLAY)],
    "other tokens on one rank": [(CAPTURING, SPLIT, CAPTURE), (CAPTURING, OTHER, CAPTURE), (CAPTURING, SPLIT, REPLAY)],
    "what runs eagerly there runs eagerly here": [(CAPTURING, WHOLE, CAPTURE), ("", WHOLE, EAGER), (REPLAYING, WHOLE, REPLAY)],
}  # fmt: skip


@pytest.mark.parametrize("moves", [True, False], ids=["captures move data", "captures move no data"])
@pytest.mark.parametrize("kind", [Tokens, DPMetadata])
@pytest.mark.parametrize("name", SEQUENCES)
def test_actions(name: str, kind: Any, moves: bool) -> None:
    policy, seen = FFNGraphPolicy(capture_moves_data=moves), []
    for said, stages, _ in SEQUENCES[name]:
        step = payload(said, stages, kind)
        seen.append(policy.action(step))
        if seen[-1] is CAPTURE:
            policy.captured(step)
    assert seen == [
        KEEP if said == CAPTURING and expected is REPLAY and not moves else expected
        for said, _, expected in SEQUENCES[name]
    ]


def test_asking_changes_nothing() -> None:
    policy = FFNGraphPolicy(capture_moves_data=True)
    assert [policy.action(payload(CAPTURING, WHOLE)) for _ in range(3)] == [CAPTURE] * 3  # none of them was completed
    with pytest.raises(FFNControlError, match="never captured here; captured: nothing"):
        policy.action(payload(REPLAYING, WHOLE))


def test_the_order_of_the_stages_does_not_matter() -> None:
    assert (
        ffn.ffn_key(payload("", {1: [3, 4], 0: [1, 2]}))
        == ffn.ffn_key(payload("", {0: [1, 2], 1: [3, 4]}))
        == ((0, (1, 2)), (1, (3, 4)))
    )


def test_a_replay_of_another_shape_is_refused() -> None:
    policy = FFNGraphPolicy(capture_moves_data=True)
    policy.captured(payload(CAPTURING, SPLIT))
    policy.captured(payload(CAPTURING, WHOLE))
    with pytest.raises(FFNControlError) as refused:
        policy.action(payload(REPLAYING, OTHER))
    assert str(refused.value) == (
        "a replay is announced for stage 0 with 2+2 tokens, stage 1 with 2+3 tokens, which was never captured here; "
        "captured: stage 0 with 2+2 tokens, stage 1 with 2+2 tokens; stage 0 with 4+4 tokens"
    )


def test_all_shapes_that_are_captured_are_named_in_their_order() -> None:
    policy = FFNGraphPolicy(capture_moves_data=True)
    sizes = [8, 3, 64, 1, 32, 5, 2, 16]
    for size in sizes:
        policy.captured(payload(CAPTURING, {0: [size]}))
    with pytest.raises(FFNControlError) as refused:
        policy.action(payload(REPLAYING, {0: [7]}))
    named = "; ".join(f"stage 0 with {size} tokens" for size in sorted(sizes))
    assert str(refused.value).endswith(f"captured: {named}")


def test_nothing_is_captured_any_more() -> None:
    policy = FFNGraphPolicy(capture_moves_data=True)
    policy.captured(payload(CAPTURING, SPLIT))
    policy.forget()
    with pytest.raises(FFNControlError, match="never captured"):
        policy.action(payload(REPLAYING, SPLIT))
    assert policy.action(payload(CAPTURING, SPLIT)) is CAPTURE


@pytest.mark.parametrize("said", [WARMUP + CAPTURING, WARMUP + REPLAYING, CAPTURING + REPLAYING])
def test_flags_that_contradict_each_other_are_refused(said: str) -> None:
    policy = FFNGraphPolicy(capture_moves_data=True)
    policy.captured(payload(CAPTURING, SPLIT))
    with pytest.raises(FFNControlError, match=r"contradicts itself: is_[a-z_]+ and is_[a-z_]+, for stage 0 with 2"):
        policy.action(payload(said, SPLIT))


def test_a_step_without_stages_is_refused() -> None:
    with pytest.raises(FFNControlError, match="without stages"):
        FFNGraphPolicy(capture_moves_data=True).action(payload("", {}))


def test_a_graph_is_captured_in_the_pool_that_the_plugin_has_given() -> None:
    device = mock.Mock(new=lambda: "graph", capture=mock.Mock(return_value=contextlib.nullcontext()))
    policy = FFNGraphPolicy(capture_moves_data=True)
    for pool in ("pool", None):
        steps = ffn.FFNSteps(lambda step: "output", lambda step: None, policy=policy, device_graphs=device, pool=pool)
        assert steps.step(payload(CAPTURING, WHOLE)) is CAPTURE
        device.capture.assert_called_with("graph", pool=pool)
        assert steps.graphs == {ffn.ffn_key(payload("", WHOLE)): ("graph", "output")}
        steps.release()


# ---- steps ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gpu", "npu"])
def steps(request: pytest.FixtureRequest) -> dict[str, Any]:
    # No model runner has been made on this NPU, so nothing of torch.cuda means it.
    npu = request.param == "npu"
    return run_ranks(ffn_steps.run, npu, world=1, environment=ascend_or_stand_in() if npu else VLLM)[0]


def test_a_graph_is_captured_once_and_replayed(steps: dict[str, Any]) -> None:
    # Each forward and each replay adds one; only the former is Python.
    assert steps["usual"] == [
        ("warm-up", "eager", 1, 1), ("capture", "capture", 2, 2), ("capture", "replay", 3, 2), ("replay", "replay", 4, 2), ("eager", "eager", 5, 3),
    ]  # fmt: skip
    assert steps["usual graphs"] == 1


def test_every_step_is_prepared_outside_of_the_graph(steps: dict[str, Any]) -> None:
    assert steps["prepared"] == ["warm-up", "capture", "capture", "replay", "eager"]
    assert steps["prepared under capture"] == []


def test_a_shape_is_kept_when_captures_move_no_data(steps: dict[str, Any]) -> None:
    assert steps["device"] == [("capture", "capture", 1, 1), ("capture", "keep", 1, 1), ("replay", "replay", 2, 1)]


def test_a_failed_capture_is_none(steps: dict[str, Any]) -> None:
    assert steps["failed"] == "OwnError: in the forward"
    assert steps["failed graphs"] == 1  # of another shape, from before
    assert steps["replay of it"].startswith(
        "FFNControlError: a replay is announced for stage 0 with 3+3 tokens, which was never captured here"
    )
    assert steps["other graph"] == ("replay", "replay", 3, 2)
    assert steps["tried again"] == [("capture", "capture", 4, 3), ("replay", "replay", 5, 3)]


def test_a_refused_step_is_not_prepared(steps: dict[str, Any]) -> None:
    assert steps["refused prepared"] == 0


def test_a_capture_has_its_scope(steps: dict[str, Any]) -> None:
    assert steps["scopes"] == ["in", "out"]


def test_the_end_of_the_graphs(steps: dict[str, Any]) -> None:
    assert steps["released"] == (0, "FFNControlError")
    assert steps["alive"] == []
