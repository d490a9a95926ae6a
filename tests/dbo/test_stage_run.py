"""What the stages of a run share, by itself: when it goes on, who is woken, whose error is raised; the handoff as an operator."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

import torch
from afd_backports.vllm_v026_mrv2_dbo import ubatching
from afd_backports.vllm_v026_mrv2_dbo.ubatching import StageCancelled, StageRun
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.vllm


def test_a_run_goes_on_until_it_is_cancelled() -> None:
    run = StageRun(2)
    assert (run.cancelled, run.failure, run.alone) == (False, None, False)
    run.check()
    run.raise_failure()
    run.cancel()
    assert run.cancelled
    with pytest.raises(StageCancelled):
        run.check()


def test_all_that_a_stage_may_wait_for_is_woken() -> None:
    run, barrier, turns = StageRun(2), threading.Barrier(3), [threading.Event() for _ in range(2)]
    run.watch(barrier, turns)
    assert not barrier.broken
    run.cancel()
    assert barrier.broken
    assert all(turn.is_set() for turn in turns)


def test_stages_are_woken_again_by_a_second_failure() -> None:
    run, turn = StageRun(2), threading.Event()
    run.watch(threading.Barrier(3), [turn])
    run.cancel()
    turn.clear()  # as a stage does when it begins to wait
    run.cancel(ValueError("late"))
    assert turn.is_set()


@pytest.mark.parametrize("first", [ValueError("first"), None])
def test_the_first_failure_is_the_one_that_is_raised_once(first: BaseException | None) -> None:
    run = StageRun(2)
    run.cancel(first)
    run.cancel(KeyError("second"))
    assert run.failure is first
    if first is not None:
        with pytest.raises(ValueError, match="first") as raised:
            run.raise_failure()
        assert raised.value is first
    assert run.failure is None
    run.raise_failure()


def test_nothing_refers_to_a_failure_that_was_raised() -> None:
    class OwnError(Exception):
        """One that can be watched."""

    run = StageRun(2)
    run.cancel(OwnError())
    gc.disable()
    try:
        try:
            run.raise_failure()
        except OwnError as error:
            kept = weakref.ref(error)
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("stages", "ended", "alone"), [(2, 0, False), (2, 1, True), (2, 2, True), (3, 1, False), (3, 2, True), (1, 0, True)])  # fmt: skip
def test_who_is_left(stages: int, ended: int, alone: bool) -> None:
    run = StageRun(stages)
    for stage in range(ended):
        run.end(stage)
        run.end(stage)  # once more means nothing
    assert run.alone is alone


@pytest.mark.parametrize("hidden_states", [None, torch.zeros(2)], ids=["plain", "operator"])
def test_a_handoff_is_one_turn_of_vllm(hidden_states: torch.Tensor | None) -> None:
    with mock.patch.object(ubatching.ubatching, "dbo_yield") as turn:
        ubatching.hand_over(hidden_states)
    assert turn.call_count == 1


@pytest.mark.parametrize(("hidden_states", "seen"), [(None, []), (torch.zeros(2), ["vllm.afd_hand_over.default"])])
def test_a_compiler_sees_a_handoff_of_hidden_states_as_one_operator(hidden_states: Any, seen: list[str]) -> None:
    class Operators(TorchDispatchMode):
        """Notes what is called."""

        called: list[str] = []  # noqa: RUF012

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.called.append(str(function))
            return function(*args, **(kwargs or {}))

    with mock.patch.object(ubatching.ubatching, "dbo_yield"), Operators() as operators:
        ubatching.hand_over(hidden_states)
    assert operators.called == seen


def test_the_operator_says_that_it_changes_the_hidden_states() -> None:
    # So a compiler keeps what comes before it before it, and what comes after it after it.
    operator = torch.ops.vllm.afd_hand_over.default
    assert [(a.name, a.alias_info is not None and a.alias_info.is_write) for a in operator._schema.arguments] == [
        ("hidden_states", True)
    ]
    with mock.patch.object(ubatching.ubatching, "dbo_yield") as turn:
        operator(torch.zeros(2))
    assert turn.call_count == 1


def test_outside_of_a_split_step_there_is_no_stage() -> None:
    assert ubatching.current_stage() is None
