"""Failures at every point of a step, of a capture, of the beginning and the end of a runner; on all ranks, and on one alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import lives, matrix, soak
from tests.dbo.points import ENDS, Point, at_all
from tests.sim.ranks import RankFailed, Team, run_ranks

pytestmark = pytest.mark.vllm

Points = dict[str, list[Point]]

LONG = bool(os.environ.get(matrix.LONG))
TIMEOUT = 3600.0 if LONG else 300.0


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    """Two DP ranks whose generated modules report their points."""
    with Team() as team:
        yield team


@pytest.fixture(scope="module")
def points(team: Team) -> Points:
    ranks = team.call(matrix.points_of_steps)
    return {kind: at_all([rank[kind] for rank in ranks]) for kind in ranks[0]}


def functions(points: Sequence[Point], *threads: str) -> set[str]:
    return {point.function for point in points if point.thread in threads}


def test_the_points_are_those_of_all_that_runs(points: Points) -> None:
    """A prefill and an eager decode are the same to the stages: four marks of each exchange, two handoffs in it."""
    for stage in ("stage 0", "stage 1"):
        for kind, times in (("prefill", 1), ("eager", 1), ("capture", 2), ("replay", 0)):
            of_stage = [point for point in points[kind] if point.thread == stage]
            marks = [point.function for point in of_stage if point.function.startswith("model.")]
            assert len(marks) == 8 * times, "two layers, four marks"
            handoffs = {point.number for point in of_stage if point.function.endswith("._cpu_yield")}
            assert len(handoffs) == 4 * times, "two layers, two handoffs"
    assert not {
        name for kind in points for name in functions(points[kind], "caller") if name.rpartition(".")[2] in ENDS
    }
    eager, replay, capture = (functions(points[kind], "caller") for kind in ("eager", "replay", "capture"))
    for name in (
        "dispatch.sync_cudagraph_and_dp_padding",
        "runner.UBatchExecution.execute_model",
        "slicer.create_ubatch_slices",
    ):
        assert name in eager & replay
    runner = "ubatch_runner.AFDAscendUBatchRunnerV2."
    assert {
        runner + "prepare",
        runner + "begin_capturable_run",
        runner + "begin_capturable_run.finish",
    } <= eager & capture
    assert runner + "prepare" in replay
    assert "slicer.merge_ubatch_outputs" in eager & capture
    assert {
        "graph_manager.TwinGraphs.staged_replay",
        "scopes.ReplayHooks.around",
        "graph_manager.UBatchGraphs.run_fullgraph",
    } <= replay
    assert {
        "graph_manager.UBatchGraphs.capture_twin_graphs",
        "graph_manager.UBatchGraphs.capture_twins.create_forward_fn",
    } <= capture


def test_a_step_fails_at_every_point_and_the_next_one_works(team: Team, points: Points) -> None:
    for problems in team.call(matrix.eager, matrix.chosen(points["eager"]), timeout=TIMEOUT):
        assert problems == {}


def test_a_replay_fails_at_every_point_and_the_next_one_works(team: Team, points: Points) -> None:
    chosen = matrix.chosen(points["replay"], briefly=common(points, "replay"))
    for problems in team.call(matrix.replay, chosen, timeout=TIMEOUT):
        assert problems == {}


def test_a_capture_fails_at_every_point_and_the_next_step_works(team: Team, points: Points) -> None:
    every = points["capture"]
    second = next(
        at for at, point in enumerate(every) if point.function.endswith(".create_forward_fn") and point.number == 2
    )
    warm_up = matrix.chosen(every[:second], briefly=common(points, "capture"))
    capture = matrix.chosen(every[second:], briefly={point.function for point in every})
    for problems in team.call(matrix.capture, warm_up + capture, timeout=TIMEOUT):
        assert problems == {}


def common(points: Points, kind: str) -> set[str]:
    """Functions that have nothing to do with what kind of step it is, and that eager steps fail in."""
    elsewhere = functions(points["eager"], "caller")
    return {
        name
        for name in functions(points[kind], "caller") & elsewhere
        if name.startswith(("slicer.", "dispatch.", "ubatching."))
    }


def test_a_prefill_fails_and_other_requests_take_its_place(team: Team, points: Points) -> None:
    for problems in team.call(matrix.prefill, once_per_module(points["prefill"]), timeout=TIMEOUT):
        assert problems == {}


def once_per_module(points: Sequence[Point]) -> list[Point]:
    """The last point of each module in each thread; in a long run, all."""
    return (
        list(points)
        if LONG
        else list({(point.thread, point.function.partition(".")[0]): point for point in points}.values())
    )


def test_nothing_keeps_the_weights_when_a_runner_ends_after_a_failure(team: Team, points: Points) -> None:
    chosen = {kind: once_per_module(points[kind]) for kind in ("eager", "replay", "capture")}
    for problems in team.call(lives.end, chosen, timeout=TIMEOUT):
        assert problems == {}


def test_nothing_keeps_the_weights_when_a_runner_ends_after_good_steps(team: Team) -> None:
    assert team.call(lives.end_well) == [[], []]


def test_a_runner_is_not_made_and_nothing_is_substituted_any_more(team: Team) -> None:
    points = at_all(team.call(lives.points_of_beginnings))
    begun = functions(points, "caller")
    assert {"scopes.substitute", "attention.ubatch_metadata_builders", "graph_manager.TwinGraphs.attach"} <= begun
    assert {
        "ubatch_runner.AFDAscendUBatchRunnerV2.__init__",
        "ubatch_runner.UBatchLifecycle.initialize_kv_cache",
    } <= begun
    for problems in team.call(lives.begin, matrix.chosen(points), timeout=TIMEOUT):
        assert problems == {}


def test_a_validation_fails_at_every_point_and_is_the_native_one_again() -> None:
    assert run_ranks(lives.validate, world=1) == [{}]


# ---- one rank alone -------------------------------------------------------------------------------------------

ALONE = (
    ("eager", "stage 0", "model.layer 0 dispatch"),
    ("eager", "stage 1", "model.layer 1 combine"),
    ("eager", "caller", "ubatch_runner.AFDAscendUBatchRunnerV2.prepare"),
    ("replay", "caller", "graph_manager.TwinGraphs.staged_replay"),
)


def find(points: Points, kind: str, thread: str, function: str) -> Point:
    return next(point for point in points[kind] if (point.thread, point.function) == (thread, function))


@pytest.mark.parametrize(("kind", "thread", "function"), ALONE)
def test_a_rank_that_fails_alone_leaves_the_other_no_longer_than_its_collective(
    points: Points, kind: str, thread: str, function: str
) -> None:
    assert run_ranks(lives.alone, kind, find(points, kind, thread, function), timeout=60) == [[], []]


def test_a_rank_that_dies_does_not_take_the_other_with_it(points: Points, tmp_path: Path) -> None:
    point = find(points, "eager", "stage 1", "model.layer 0 combine")
    with pytest.raises(RankFailed, match="rank 0 died without an answer"):
        run_ranks(lives.bereaved, point, tmp_path / "note", timeout=60)
    assert (tmp_path / "note").read_text(encoding="utf-8") == "[]"


def test_a_stage_in_a_collective_that_does_not_return_is_left_behind() -> None:
    assert run_ranks(lives.interrupted, timeout=60) == [[], []]


# ---- soak -----------------------------------------------------------------------------------------------------

STEPS = int(os.environ.get(matrix.LONG) or 200)


def test_hundreds_of_steps_with_failures_in_between(team: Team) -> None:
    """About 200 steps; `AFD_SOAK` says how many."""
    ranks = team.call(soak.points)
    points = {kind: at_all([rank[kind] for rank in ranks]) for kind in ranks[0]}
    assert all(len(found) > 50 for found in points.values())
    for soaked in team.call(soak.soak, points, STEPS, seed=STEPS, timeout=TIMEOUT):
        assert soaked.problems == {}
        assert soaked.kinds.keys() == points.keys()
        assert soaked.faults > STEPS // 4
        assert soaked.replays > STEPS // 20
        early, late = soaked.samples  # what one failure in ten keeps would be more than this
        assert late.tensors <= early.tensors + STEPS // 30
        assert late.streams <= early.streams
        assert late.objects <= early.objects * 1.01
        assert late.kilobytes <= early.kilobytes + 16_000
