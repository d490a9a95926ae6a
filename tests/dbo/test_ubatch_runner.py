"""The ubatch runner by itself: when there is one, where its stages compute, what a failure leaves."""

from __future__ import annotations

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
