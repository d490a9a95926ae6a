"""Handoff: turns, vLLM's own functions, and what becomes of the sibling when a stage fails, at each of its turns."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import handoffs
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

TURNS = 4


def alone(function, *args):
    """Run in a process of its own: one that hangs is killed and shows its threads, one that leaves a thread fails."""
    return run_ranks(function, *args, world=1, timeout=60)[0]


def test_stages_take_turns() -> None:
    assert alone(handoffs.take_turns) == [(stage, turn, stage, stage) for turn in range(3) for stage in range(2)]


@pytest.mark.parametrize("function", [handoffs.upstream_functions, handoffs.replaced_set_stream])
def test_the_functions_of_vllm_work_on_the_contexts(function) -> None:
    log = alone(function)
    # The last handoff starts on the communication stream and ends on the computation stream.
    assert [where for stage, where in log if stage == 0] == ["compute", "comm", "compute", "compute", "compute"]
    assert [where for stage, where in log if stage == 1] == ["compute", "comm", "compute", "compute", "compute"]
    # Each step to the other stage is a handoff: 0, 1, then two steps of 0 and two of 1, and so on.
    assert [stage for stage, _ in log] == [0, 1, 0, 0, 1, 1, 0, 1, 0, 1]


def test_a_failed_stage_stops_its_sibling_at_every_handoff() -> None:
    outcomes = alone(handoffs.fail_everywhere, TURNS)
    assert len(outcomes) == 2 * TURNS
    for (who, turn), (errors, log) in outcomes.items():
        assert errors == {who: "OwnError", 1 - who: "StageCancelled"}, (who, turn)
        # Nobody does anything after the failure.
        assert log[-1] == (who, turn)
        assert log == [(stage, now) for now in range(TURNS) for stage in range(2)][: len(log)]


def test_code_that_catches_exceptions_is_stopped_too() -> None:
    assert alone(handoffs.swallow) == ({0: "StageCancelled", 1: "OwnError"}, [])


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 3), (3, 0), (1, 4), (4, 1)])
def test_a_stage_does_not_wait_for_one_that_has_ended(first: int, second: int) -> None:
    log = alone(handoffs.uneven, first, second)
    assert sorted(log) == [*((0, i) for i in range(first)), *((1, i) for i in range(second))]


def test_receives_are_done_at_the_end_of_a_stage() -> None:
    assert alone(handoffs.receive, "nothing") == ({}, ["receive of 0", "receive of 1"])


def test_a_failed_receive_ends_the_run() -> None:
    errors, log = alone(handoffs.receive, "hook")
    assert errors == {0: "OwnError", 1: "StageCancelled"}
    assert log == ["receive of 0"]


def test_nothing_is_received_after_a_failure() -> None:
    errors, log = alone(handoffs.receive, "stage")
    assert errors == {0: "OwnError", 1: "StageCancelled"}
    assert log == []


def test_a_cancelled_run_does_not_begin() -> None:
    assert alone(handoffs.cancel_parked) == ({0: "StageCancelled", 1: "StageCancelled"}, [])


def test_a_run_is_cancelled_while_a_stage_runs() -> None:
    assert alone(handoffs.cancel_running) == ({0: "StageCancelled", 1: "StageCancelled"}, [0])


def test_a_stage_whose_sibling_never_comes_is_released() -> None:
    assert alone(handoffs.broken_barrier) == {0: "StageCancelled"}
