"""Decode steps with every number of padding requests, on vLLM's own runner and on vllm-ascend's: what is split, and what of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("vllm", reason="runs in the environment that tools/vllm_env makes")

from tests.dbo import ascend, graphs, padding
from tests.dbo.padding import MOST, Step
from tests.dbo.scenarios import Counts
from tests.sim.config import Graphs
from tests.sim.environments import VLLM, ascend_or_stand_in
from tests.sim.ranks import run_ranks

pytestmark = pytest.mark.vllm

ONE_SIZE, SIZES = (8,), (2, 5, 6, 16)
"""What is captured; there is no twin of five."""

EVERY = [(a, b) for a in range(9) for b in range(9) if (a, b) != (0, 0)]
SOME = sorted({(n, m) for n in range(1, MOST + 1) for m in (n, min(n + 3, MOST), MOST)}, reverse=True)
CASES = {
    "graphs of one size": (ONE_SIZE, EVERY),
    "graphs of several sizes": (SIZES, SOME),
    "eager": ((), [(a, b) for a, b in EVERY if a <= b]),
}

RUNNERS: dict[str, Any] = {"vLLM": (graphs.make, lambda: VLLM), "NPU": (ascend.make, ascend_or_stand_in)}

Found = dict[Counts, list[Step]]


@pytest.fixture(scope="module", params=[(runner, case) for runner in RUNNERS for case in CASES], ids=", ".join)
def found(request: pytest.FixtureRequest) -> tuple[str, str, Found]:
    runner, case = request.param
    (make, environment), (sizes, counts) = RUNNERS[runner], CASES[case]
    graphs = Graphs(sizes, "FULL_DECODE_ONLY") if sizes else None
    ranks = run_ranks(padding.decodes, make, counts, graphs=graphs, environment=environment(), timeout=300)
    return runner, case, {pair: [rank[pair] for rank in ranks] for pair in counts}


def half_of(counts: Counts, sizes: tuple[int, ...]) -> int:
    """Tokens of the first stage when a step is split; 0 when it is not."""
    half = padded(counts, sizes, even=True) // 2
    return half if min(counts) > half > 0 else 0


def padded(counts: Counts, sizes: tuple[int, ...], even: bool = False) -> int:
    """Tokens of a step with padding, which is the smallest graph that fits, or what the other rank has."""
    return min((size for size in sizes if size >= max(counts) and not (even and size % 2)), default=max(counts))


def steps(found: tuple[str, str, Found], split: bool | None = None) -> Iterator[tuple[Counts, int, Step]]:
    """The steps of all ranks: requests of all ranks, the rank, and what it saw."""
    _, case, pairs = found
    for counts, ranks in pairs.items():
        if split is None or bool(half_of(counts, CASES[case][0])) == split:
            for rank, step in enumerate(ranks):
                yield counts, rank, step


def test_every_count_of_padding_is_there(found) -> None:
    _, case, pairs = found
    sizes = CASES[case][0]
    for size in (size for size in sizes if size % 2 == 0):
        # Of a split batch up to one less than half of the rows are padding.
        seen = {size - n for counts in pairs for n in counts if half_of(counts, sizes) == size // 2}
        assert seen == set(range(size // 2))
    if len(sizes) == 1:
        assert {sizes[0] - n for counts in pairs for n in counts if n} == set(range(sizes[0]))


def test_logits_are_those_of_single_batches(found) -> None:
    assert {(counts, rank): step.off for counts, rank, step in steps(found) if not step.off < 1e-4} == {}


def test_what_is_split_and_replayed(found) -> None:
    _, case, _ = found
    sizes = CASES[case][0]
    for counts, _, step in steps(found):
        half, most = half_of(counts, sizes), max(counts)
        size = padded(counts, sizes, even=bool(half))
        assert step.replays == ({(size, 2 if half else 1): 1} if sizes else {}), counts
        told = {0: [half] * 2, 1: [size - half] * 2}
        assert step.sent == ([("replay" if sizes else "eager", told)] if half else []), counts
        assert size >= most


def test_each_stage_is_told_its_real_tokens(found) -> None:
    _, case, _ = found
    sizes = CASES[case][0]
    for counts, rank, step in steps(found, split=True):
        half = half_of(counts, sizes)
        real = [half, counts[rank] - half]
        assert step.real == real, counts
        # A graph was captured for all of its tokens; what is no request has no length.
        assert step.tokens == ([half, half] if sizes else real), counts
        first, second = (lengths[:count] for lengths, count in zip(step.lengths, real, strict=True))
        assert first + second == step.wanted, counts


def test_rows_without_requests_are_empty(found) -> None:
    _, case, _ = found
    if not CASES[case][0]:
        pytest.skip("a graph reads all rows, an eager step those of its requests")
    for counts, rank, step in steps(found, split=True):
        half = half_of(counts, CASES[case][0])
        assert step.rows[0] + step.rows[1] == step.wanted + [0] * (2 * half - counts[rank]), counts
        for starts, count in zip(step.starts, (half, counts[rank] - half), strict=True):
            assert starts[: count + 1] == list(range(count + 1)), counts
            # The padding is behind them, and is as many requests as the runner makes of it.
            assert starts == sorted(starts), counts
            assert starts[-1] in (count, half), counts


def test_steps_without_a_second_ubatch_are_not_split(found) -> None:
    for _, _, step in steps(found, split=False):
        assert (step.real, step.tokens, step.rows) == ([], [], [])
