"""Graphs of split batches: captured beside the native ones, replayed for what is staged, gone when something fails."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import eager, graphs
from tests.dbo.scenarios import STEPS
from tests.sim.ranks import run_ranks
from tests.sim.scheduler import Logits, difference

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def undisturbed() -> list[Logits]:
    return run_ranks(eager.undisturbed)


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
        assert seen["nothing"].startswith(
            "StagedStateError: no ubatches are staged for the replay of AFDBatchExecutionDescriptor"
        )
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


def test_a_graph_covers_what_reads_the_same_places() -> None:
    from afd_backports.vllm_v026_mrv2_dbo.graph_manager import covers
    from vllm.v1.worker.ubatch_utils import UBatchSlice

    def slices(first: tuple[int, int], second: tuple[int, int], half: int = 4, end: int = 8) -> list[UBatchSlice]:
        return [UBatchSlice(slice(*first), slice(0, half)), UBatchSlice(slice(*second), slice(half, end))]

    captured = slices((0, 4), (4, 8))
    assert all(covers(captured, slices((0, 4), (4, stop))) for stop in (5, 6, 7, 8))
    others = {
        "more rows": slices((0, 4), (4, 9)),
        "more rows of the first": slices((0, 5), (4, 8)),
        "rows that begin elsewhere": slices((0, 4), (5, 8)),
        "a straddling request": slices((0, 4), (3, 8)),
        "tokens of another size": slices((0, 4), (4, 8), end=10),
        "tokens of another half": slices((0, 4), (4, 8), half=3),
        "one stage": captured[:1],
    }
    assert [name for name, staged in others.items() if covers(captured, staged)] == []
    assert not covers(captured[:1], captured)
