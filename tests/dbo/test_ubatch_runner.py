"""The ubatch runner by itself: when there is one, where its stages compute, what a failure leaves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import stages
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm


def alone(function):
    return run_ranks(function, world=1, timeout=60)[0]


def test_there_is_one_for_two_ubatches_and_more_than_one_rank() -> None:
    built = alone(stages.whether_built)
    assert built == {
        "off": None,
        "one rank": None,
        "dbo": "AFDAscendUBatchRunnerV2",
        "two": "AFDAscendUBatchRunnerV2",
        "three": "parallel_config.num_ubatches is 3; this runner has exactly 2 stages",
        "host": "PlainHost",
    }


def test_stages_compute_where_the_caller_does_and_on_the_capture_stream() -> None:
    seen = alone(stages.which_streams)
    for name in ("eager", "capture"):
        assert seen[name] == [10, 12, 14, 16, 18, 20]
        assert seen[f"{name} 0"] == seen[f"{name} 1"] == [True, True]
    assert seen["left"] == 1


def test_a_failure_keeps_no_references() -> None:
    assert alone(stages.fields_of_failure) == {"error": "mine", "kept": False, "pending": None, "run": None}


def test_a_compiled_class_has_its_own_code_after_both_stages() -> None:
    assert alone(stages.compiled_class) == {
        "fails False": ["[0, 1, 2, 3, 4, 5]", "own"],
        "fails True": ["mine", "own"],
    }


@pytest.mark.parametrize(("batch_tokens", "real"), [(16, [8, 8]), (11, [8, 3]), (8, [8, 0]), (5, [5, 0])])
def test_a_stage_is_told_of_its_tokens_without_padding(batch_tokens: int, real: list[int]) -> None:
    from afd_backports.vllm_v026_mrv2_dbo import ubatch_runner
    from vllm.v1.worker.ubatch_utils import UBatchSlice

    told: list[Any] = []
    runner = ubatch_runner.StageSupport()
    runner.vllm_config = None
    runner.host = SimpleNamespace(
        metadata=SimpleNamespace(additional_kwargs=lambda stage: told.append(stage) or {"own": 1})
    )
    slices = [UBatchSlice(slice(0, 2), slice(0, 8)), UBatchSlice(slice(2, 4), slice(8, 16))]
    context: Any = SimpleNamespace(dp_metadata=SimpleNamespace(num_tokens_across_dp_cpu=[8, 8]), attn_metadata={})
    platform = mock.Mock()
    platform.set_additional_forward_context.return_value = {"theirs": 2}
    with mock.patch.object(ubatch_runner, "current_platform", platform):
        assert [runner.stage_kwargs(i, slices, batch_tokens, context) for i in range(2)] == [
            {"theirs": 2, "own": 1}
        ] * 2
    assert [stage.num_tokens for stage in told] == real
    assert [(stage.index, stage.num_stages, stage.slice) for stage in told] == [(0, 2, slices[0]), (1, 2, slices[1])]
    # The platform is told of all that the stage computes, and of no graph.
    for call in platform.set_additional_forward_context.call_args_list:
        assert (call.kwargs["num_tokens"], call.kwargs["cudagraph_runtime_mode"].name) == (8, "NONE")
